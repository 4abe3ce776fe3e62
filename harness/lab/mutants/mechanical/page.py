"""Results of the mechanical mutants: their tables, and their part of harness/lab/docs/mutants.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import tables
from lab.mutants.mechanical import OPERATORS, PLACES, drawing
from lab.mutants.mechanical.drawing import Mechanical
from lab.mutants.mechanical.search import NOT_REACHED, Found
from lab.mutants.table import NONE

FOLDER = Path(__file__).parent
#: Results of each drawn mutant, `Row` by `Row`.
FOUND = FOLDER / "found.tsv"
#: The drawing, and its numbers of cells.
DRAWING = FOLDER / "drawing.tsv"
DRAWING_COLUMNS = ("seed", "sites", "drawn", "digest", "core", "others")
#: Survivors that were read: `EQUIVALENT` or `HOLE`, and why.
READ = FOLDER / "read.tsv"
READ_COLUMNS = ("mutant", "class", "why")
EQUIVALENT, HOLE = "equivalent", "hole"

#: Characters of code that a table shows.
SHOWN = 70


@dataclass(frozen=True)
class Row:
    """Results of one mutant; its fields are the columns of the table.

    Attributes
    ----------
    line
        The first of the statement that is edited.
    core, others
        Verdict of the cell that kills it, ``stable`` where all that it was tried on are, `NOT_REACHED`, or `NONE` where
        it was not tried: over the core, and over cells outside it.
    core_reach, others_reach
        Number of cells whose export runs its lines.
    killed_by
        The cell; `NONE` for a mutant that no cell kills.
    """

    mutant: str
    operator: str
    place: str
    file: str
    line: int
    function: str
    old: str
    new: str
    core: str
    core_reach: int
    others: str
    others_reach: int
    killed_by: str
    named: str

    @property
    def killed_by_core(self) -> bool:
        return self.core not in ("stable", NOT_REACHED, NONE)

    @property
    def killed(self) -> bool:
        return self.killed_by != NONE

    @property
    def reached(self) -> bool:
        return bool(self.core_reach or self.others_reach)


COLUMNS = tuple(Row.__dataclass_fields__)

#: Of a mutant that was not tried.
UNTRIED = Found("", 0, 0, "", NONE, NONE)


def rows(drawn: Sequence[Mechanical], core: Mapping[str, Found], others: Mapping[str, Found]) -> list[Row]:
    """Return a row for each mutant that was tried over the core."""
    made = []
    for mutant in drawn:
        if mutant.name not in core:
            continue
        first, then = core[mutant.name], others.get(mutant.name, UNTRIED)
        last = then if then.killed else first
        site = mutant.site
        made.append(
            Row(
                *(mutant.name, site.operator, mutant.place, site.file, site.first, site.function),
                *(shown(site.old), shown(site.new), first.verdict, first.reach, then.verdict, then.reach),
                *(last.cell or NONE, last.named),
            )
        )
    return made


def shown(code: str) -> str:
    code = drawing.one_line(code)
    return code if len(code) <= SHOWN else f"{code[: SHOWN - 3]}..."


def text(found: Sequence[Row]) -> str:
    return tables.text(COLUMNS, map(vars, found))


def drawing_text(seed: int, sites: int, drawn: Sequence[Mechanical], core: int, others: int) -> str:
    """Return the table of the drawn mutants.

    Parameters
    ----------
    sites
        How many it was drawn from.
    core, others
        Cells whose reach is recorded.
    """
    values = (seed, sites, len(drawn), drawing.digest(drawn), core, others)
    return tables.text(DRAWING_COLUMNS, [dict(zip(DRAWING_COLUMNS, values, strict=True))])


def committed() -> list[Row]:
    """Return the rows of the committed table."""
    numbers = ("line", "core_reach", "others_reach")
    return [
        Row(**{name: int(value) if name in numbers else value for name, value in row.items()})  # type: ignore[arg-type]
        for row in tables.read(FOUND, COLUMNS)
    ]


def read_survivors() -> dict[str, tuple[str, str]]:
    """Return the class and the reason of each survivor that was read, by name."""
    return {row["mutant"]: (row["class"], row["why"]) for row in tables.read(READ, READ_COLUMNS)}


def figures(found: Sequence[Row]) -> Iterator[str]:
    """Yield the tables of how many are killed, by operator and by place, and the total."""
    for what, names in (("operator", OPERATORS), ("place", PLACES)):
        columns = (what, "drawn", "core reaches", "core kills", "any reaches", "any kills", "survive")
        yield f"| {' | '.join(columns)} |"
        yield "|---|---:|---:|---:|---:|---:|---:|"
        for name in names:
            yield counts(name, [row for row in found if getattr(row, what) == name])
        yield counts("all", found)
        yield ""
    verdicts = Counter(row.core if row.killed_by_core else row.others for row in found if row.killed)
    yield f"Killed with the verdict: {', '.join(f'{name} {number}' for name, number in verdicts.most_common())}."


def counts(name: str, found: Sequence[Row]) -> str:
    def number(holds: Callable[[Row], bool]) -> int:
        return sum(map(holds, found))

    values = (
        len(found),
        number(lambda row: bool(row.core_reach)),
        number(lambda row: row.killed_by_core),
        number(lambda row: row.reached),
        number(lambda row: row.killed),
        number(lambda row: row.reached and not row.killed),
    )
    return f"| {name} | {' | '.join(map(str, values))} |"


def section(release: str) -> Iterator[str]:
    """Yield the lines of harness/lab/docs/mutants.md about mechanical mutants."""
    found, read = committed(), read_survivors()
    (drawn,) = tables.read(DRAWING, DRAWING_COLUMNS)
    yield "## Mechanical mutants"
    yield ""
    yield "These are not chosen by hand: mutation operators make every possible edit of the functions of ExecuTorch"
    yield f"{release} that quantize, partition, rewrite and serialize, {drawn['sites']} in all, and"
    yield f"{drawn['drawn']} of them are drawn by seed {drawn['seed']} (digest `{drawn['digest']}`)."
    yield "The [map of reach](instruments.md#reach) has the lines that each cell runs. Each mutant is tried on the six"
    yield "cheapest cells of the core that run its line, one export each, until one differs from its golden; what is"
    yield "left, on six cells outside the core. `reached` counts mutants whose line any of"
    yield f"{drawn['core']} cells of the core, or of {drawn['others']} others in the map, runs."
    yield "The figures are of a session before there was a map, with one record of each cell by coverage.py."
    yield "Written by `nox -s lab -- mutants --mechanical --update`."
    yield ""
    yield from (f"- {name}: {does}" for name, does in OPERATORS.items())
    yield ""
    yield from figures(found)
    yield ""
    yield from survivors(found, read)


def survivors(found: Sequence[Row], read: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the table of survivors that were read."""
    left = [row for row in found if row.reached and not row.killed]
    chosen = [row for row in left if row.mutant in read]
    classes = Counter(read[row.mutant][0] for row in chosen)
    yield "### Survivors that were read"
    yield ""
    yield f"Of the {len(left)} that are reached and not killed, {len(chosen)} were read: {classes[EQUIVALENT]} are"
    yield f"equivalent to the original, {classes[HOLE]} are holes, with a situation that would kill them."
    yield ""
    yield "| mutant | place | where | edit | class | why |"
    yield "|---|---|---|---|---|---|"
    for row in chosen:
        where = f"{row.file.rpartition('/')[2]}:{row.line} {row.function}"
        edit = f"{_code(row.old)} → {_code(row.new)}"
        yield f"| {row.mutant} | {row.place} | {where} | {edit} | {' | '.join(read[row.mutant])} |"


def _code(code: str) -> str:
    return "`" + code.replace("|", "\\|") + "`"
