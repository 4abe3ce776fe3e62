"""Results of the mechanical mutants: their tables, and harness/lab/docs/mutants.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from executorch_goldens_plugins.compare.reach import map as maps
from lab import GOLDENS, markdown, tables
from lab.mutants.mechanical import OPERATORS, PLACES, drawing
from lab.mutants.mechanical.drawing import Mechanical
from lab.mutants.mechanical.reach import PACKAGE
from lab.mutants.mechanical.search import NONE, TRIED, Found
from lab.pages import Part

FOLDER = Path(__file__).parent
#: In the folder of a release: results of each drawn mutant, `Row` by `Row`.
FOUND = "found.tsv"
#: The drawing.
DRAWING = "drawing.tsv"
DRAWING_COLUMNS = ("seed", "sites", "drawn", "digest")
#: Survivors that were read: `EQUIVALENT` or `HOLE`, and why.
READ = "read.tsv"
READ_COLUMNS = ("mutant", "class", "why")
EQUIVALENT, HOLE = "equivalent", "hole"

#: What cells say of a mutant.
NOT_REACHED, UNTRIED, ALIVE, KILLED = SAID = ("not reached", "not tried", "alive", "killed")

#: Characters of code that a table shows.
SHOWN = 70


@dataclass(frozen=True)
class Row:
    """Results of one mutant; its fields are the columns of the table.

    Attributes
    ----------
    at, first, last
        First line of the function, and lines of the statement that is edited.
    alive
        Number of cells that are as they are without it.
    killed_by
        The cells that are not, with a blank between; `NONE` for a mutant that no cell kills.
    verdict, named
        The result for the first of these.
    """

    mutant: str
    operator: str
    place: str
    file: str
    at: int
    first: int
    last: int
    function: str
    old: str
    new: str
    alive: int
    killed_by: str
    verdict: str
    named: str

    @property
    def killers(self) -> tuple[str, ...]:
        return () if self.killed_by == NONE else tuple(self.killed_by.split())


COLUMNS = tuple(Row.__dataclass_fields__)


def text(drawn: Sequence[Mechanical], found: Mapping[str, Found], before: Sequence[Row] = ()) -> str:
    """Return the table of mutants with results; `before` has older ones of the same drawing."""
    rows = {row.mutant: row for row in before}
    for mutant in drawn:
        if (each := found.get(mutant.name)) is not None:
            site = mutant.site
            rows[mutant.name] = Row(
                *(mutant.name, site.operator, mutant.place, site.file, site.line, site.first, site.last),
                *(site.function, shown(site.old), shown(site.new), len(each.alive)),
                *(" ".join(each.killed_by) or NONE, each.verdict, each.named),
            )
    return tables.text(COLUMNS, (vars(rows[name]) for name in sorted(rows)))


def shown(code: str) -> str:
    code = drawing.one_line(code)
    return code if len(code) <= SHOWN else f"{code[: SHOWN - 3]}..."


def drawing_text(seed: int, sites: int, drawn: Sequence[Mechanical]) -> str:
    """Return the table of the drawn mutants; `sites` is how many they were drawn from."""
    values = (seed, sites, len(drawn), drawing.digest(drawn))
    return tables.text(DRAWING_COLUMNS, [dict(zip(DRAWING_COLUMNS, values, strict=True))])


def committed(release: str) -> list[Row]:
    """Return the rows of the committed table of a release; none without one."""
    numbers = ("at", "first", "last", "alive")
    return [
        Row(**{name: int(value) if name in numbers else value for name, value in row.items()})  # type: ignore[arg-type]
        for row in tables.read(FOLDER / release / FOUND, COLUMNS)
    ]


def of_drawing(release: str, digest: str) -> list[Row]:
    """Return the committed rows of a release if they are of a drawing."""
    drawn = tables.read(FOLDER / release / DRAWING, DRAWING_COLUMNS)
    return committed(release) if any(row["digest"] == digest for row in drawn) else []


def read_survivors(release: str) -> dict[str, tuple[str, str]]:
    """Return the class and the reason of each survivor that was read, by name."""
    rows = tables.read(FOLDER / release / READ, READ_COLUMNS)
    return {row["mutant"]: (row["class"], row["why"]) for row in rows}


@dataclass(frozen=True)
class Result:
    """What some cells say of a mutant, one of `SAID`."""

    row: Row
    core: str
    every: str
    #: Why an alive one is no hole; empty for one that is, or that nobody has read.
    equivalent: bool = False


def results(release: str, found: Sequence[Row]) -> list[Result]:
    """Return what the core and all cells of the map of a release say of each mutant."""
    known, of_core = maps.read(GOLDENS / release / maps.FILE), core.read(GOLDENS / release / core.FILE)
    read = read_survivors(release)
    functions = {(known.files[each.file], each.first): each for each in known.functions}
    made = []
    for row in found:
        function = functions.get((f"{PACKAGE}/{row.file}", row.at))
        numbers = known.cells_at(function, range(row.first, row.last + 1)) if function else ()
        cells = {known.cells[number].cell for number in numbers}
        killers = {*map(Cell.named, row.killers)}
        made.append(
            Result(
                row,
                _said(row, not cells.isdisjoint(of_core), not killers.isdisjoint(of_core)),
                _said(row, bool(cells), bool(killers)),
                read.get(row.mutant, ("",))[0] == EQUIVALENT and not killers,
            )
        )
    return made


def _said(row: Row, reached: bool, killed: bool) -> str:
    if killed:
        return KILLED
    return NOT_REACHED if not reached else ALIVE if row.alive or row.killers else UNTRIED


def figures(found: Sequence[Result]) -> Iterator[str]:
    """Yield the tables of what became of mutants, by operator and by place, and the total."""
    for what, names in (("operator", OPERATORS), ("place", PLACES)):
        said = [f"{who}: {each}" for who in ("core", "any") for each in SAID]
        yield from markdown.head((what, "drawn", *said, "equivalent"))
        for name in names:
            yield counts(name, [each for each in found if getattr(each.row, what) == name])
        yield counts("all", found)
        yield ""
    reached = [each for each in found if each.every in (ALIVE, KILLED) and not each.equivalent]
    shares = (
        f"{who} kills {number} ({100 * number / max(len(reached), 1):.0f}%)"
        for who, number in (
            ("the core", sum(each.core == KILLED for each in reached)),
            ("any cell", sum(each.every == KILLED for each in reached)),
        )
    )
    yield f"Of {len(reached)} that were tried and that nobody has read as equivalent, {', '.join(shares)}."
    verdicts = Counter(each.row.verdict for each in found if each.every == KILLED)
    yield f"Killed with the verdict: {', '.join(f'{name} {number}' for name, number in verdicts.most_common())}."


def counts(name: str, found: Sequence[Result]) -> str:
    """Return the row of a table for some mutants."""
    of_core, of_any = (Counter(getattr(each, who) for each in found) for who in ("core", "every"))
    said = [by[each] for by in (of_core, of_any) for each in SAID]
    values = (len(found), *said, sum(each.equivalent for each in found))
    return f"| {name} | {' | '.join(map(str, values))} |"


def parts() -> Iterator[Part]:
    """Yield harness/lab/docs/mutants.md."""
    yield Part("harness/lab/docs/mutants.md", "", lines)


def lines() -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Mutation testing"
    yield ""
    yield "Defects that nobody chose: mutation operators make every possible edit of the functions of a release of"
    yield "ExecuTorch that quantize, partition, rewrite and serialize, and a seed draws some of them."
    yield "The [map of reach](instruments.md#reach) has the lines that each cell runs. Each mutant is tried on"
    yield f"{TRIED} cells of the core that run its line, of unlike source, target and situation, one export each, until"
    yield f"one differs from its unedited export; what is left, on {TRIED} other cells of the zoo, then on {TRIED} of"
    yield "other sources. `core` and `any` count what the cells of the core, or of the map, are known to do."
    yield 'Written by `nox -s "lab(1.5.1)" -- mutants --update`.'
    yield ""
    yield from (f"- {name}: {does}" for name, does in OPERATORS.items())
    for release in releases.load().releases:
        found = committed(release)
        if found and (GOLDENS / release / maps.FILE).is_file():
            yield ""
            yield from of_release(release, found)


def of_release(release: str, found: Sequence[Row]) -> Iterator[str]:
    """Yield the part of a release."""
    (drawn,) = tables.read(FOLDER / release / DRAWING, DRAWING_COLUMNS)
    yield f"## Of ExecuTorch {release}"
    yield ""
    yield f"{drawn['drawn']} of {drawn['sites']} edits are drawn by seed {drawn['seed']} (digest `{drawn['digest']}`);"
    yield f"{len(found)} of them have results: those that no cell reaches, and those that were tried."
    yield ""
    said = results(release, found)
    yield from figures(said)
    yield ""
    yield from survivors([each.row for each in said if each.every == ALIVE], read_survivors(release))


def survivors(left: Sequence[Row], read: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the table of survivors that were read."""
    chosen = [row for row in left if row.mutant in read]
    classes = Counter(read[row.mutant][0] for row in chosen)
    yield f"Of the {len(left)} that are reached and alive, {len(chosen)} were read: {classes[EQUIVALENT]} are"
    yield f"equivalent to the original, {classes[HOLE]} are holes, with a situation that would kill them."
    yield ""
    yield from markdown.head(("mutant", "place", "where", "edit", "class", "why"))
    for row in chosen:
        where = f"{row.file.rpartition('/')[2]}:{row.first} {row.function}"
        edit = f"{_code(row.old)} → {_code(row.new)}"
        yield f"| {row.mutant} | {row.place} | {where} | {edit} | {' | '.join(read[row.mutant])} |"


def _code(code: str) -> str:
    return "`" + code.replace("|", "\\|") + "`"
