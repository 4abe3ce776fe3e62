"""Decisions of people about cells: ``decisions.toml`` in a root of goldens, the only file that holds them.

A decision is a table; `FIELDS` has what each kind names::

    [[decision]]
    what = "failure"
    cause = "export: UserError: Could not guard on data-dependent expression"
    why = "torch.export refuses a branch on a value"
    releases = ["1.4.1", "1.5.1"]
    cells = [
        "tosa-int/gate",
    ]
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError, nearest
from executorch_goldens.files import durable, merging, untrusted
from executorch_goldens.goldens import findings, golden
from executorch_goldens.goldens.causes import general
from executorch_goldens.goldens.golden import UnwritableError
from executorch_goldens.goldens.quantities import BudgetLimits
from executorch_goldens.goldens.record import Record
from executorch_goldens.settings import releases
from executorch_goldens.settings.tables import TableError, as_declared
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import FAILS, RELEASE, UNDELEGATED

FILE = "decisions.toml"

FAILURE, NO_DELEGATE, KNOWN = "failure", "undelegated", "known"
IMPRECISE, REJECTED, BUDGET = "imprecise", "rejected", "budget"
#: The fields that each kind must have, and those that it may have.
FIELDS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    FAILURE: (("cause", "releases", "cells"), ("why",)),
    NO_DELEGATE: (("releases", "cells"), ("outside", "why")),
    KNOWN: (("verdict", "releases", "cells"), ("finding", "why")),
    IMPRECISE: (("unchecked", "why", "cells"), ("releases",)),
    REJECTED: (("cause", "why"), ()),
    BUDGET: (("limits", "cells"), ("releases", "why")),
}
#: Verdicts that a known defect may have.
DEFECTS = (
    *("corrupt", "imprecise", "unstable", "order-only", "failed", "crashed", "timed-out", "out-of-memory"),
    *("undecodable", "over-budget"),
)
#: Kinds of golden (`kind`) that is one only where it is expected, with the kind of decision that expects it.
EXPECTED = {FAILS: FAILURE, UNDELEGATED: NO_DELEGATE}
#: Kinds of decisions that a cell meets, or does not.
MET = (KNOWN, *EXPECTED.values())
#: Why decisions are superfluous: see `Misused`.
NO_CELL, UNMET, TWICE = "no cell", "unmet", "twice"


class DecisionError(UsageError):
    """Decisions that cannot be used; the message names the file, the table and the way out."""


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table ``[[decision]]``.

    Attributes
    ----------
    what
        A key of `FIELDS`.
    cause
        `cause_of` of a golden that fails, or its beginning up to a semicolon. Of a rejection, the cause of its group.
    outside
        Operators outside of delegates of a golden without delegates; unset for any.
    finding
        Of a known defect, what a finding of its cell has (`executorch_goldens.goldens.findings.cause`): its kind, and
        as many of its other fields as tell it from others; none for whatever has its `verdict`.
    unchecked
        An accepted output although nothing checks it: `executorch_goldens.goldens.unchecked.objection`.
    releases
        Versions of ExecuTorch; empty for all of them.
    cells
        Names, or patterns of names as `fnmatch` has them.
    """

    what: str
    verdict: str = ""
    cause: str = ""
    limits: BudgetLimits | None = None
    unchecked: tuple[str, ...] = ()
    outside: tuple[str, ...] | UnsetType = UNSET
    finding: Mapping[str, Any] | None = None
    why: str = ""
    releases: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.what not in FIELDS:
            raise ValueError(f"what: {self.what!r} is none of {', '.join(FIELDS)}")
        needed, may = FIELDS[self.what]
        for name in self.__struct_fields__[1:]:
            lacks = getattr(self, name) in ("", (), None, UNSET)
            if lacks and name in needed:
                raise ValueError(f"{name}: every decision {self.what!r} has one")
            if not lacks and name not in (*needed, *may):
                raise ValueError(f"{name}: no decision {self.what!r} has one")
        if self.what == KNOWN and not self.reason:
            raise ValueError("why: a known defect has a finding, or says why it is one")
        if self.finding is not None:
            _require_finding(self.finding)
        if self.what == KNOWN and self.verdict not in DEFECTS:
            raise ValueError(f"verdict: {self.verdict!r} is no defect's ({nearest(self.verdict, DEFECTS)})")
        patterns = [name for name in self.cells if is_pattern(name)]
        if unlike := [name for name in self.cells if name not in patterns and name.count("/") != 1]:
            raise ValueError(f"cells: {unlike[0]!r} is not TARGET/CASE")
        if self.what == IMPRECISE and patterns:
            raise ValueError(
                f"cells: {patterns[0]!r} is a pattern, and why says what is right in each cell: name them"
            )
        named = {FAILURE: ("cause", self.cause), KNOWN: ("finding", self.finding)}.get(self.what)
        if patterns and named is not None and not named[1]:
            raise ValueError(f"{named[0]}: {patterns[0]!r} takes every {named[0]}: name one")

    def is_about(self, cause: findings.Key) -> bool:
        """Return whether a known defect is what was found of a cell."""
        return self.finding is None or findings.matches(self.finding, cause)

    def expects(self, record: Record) -> bool:
        """Return whether it expects a golden of a cell that it is about."""
        if EXPECTED.get(kind(record)) != self.what:
            return False
        if self.what == NO_DELEGATE:
            return self.outside is UNSET or self.outside == outside_of(record)
        return f"{cause_of(record)}; ".startswith(f"{self.cause}; ")

    @property
    def reason(self) -> str:
        """A person's comment, or else the cause, or the finding."""
        return self.why or self.cause or (inline(self.finding) if self.finding is not None else "")

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.verdict or self.what, self.reason)))

    @property
    def identity(self) -> bytes:
        """All but the cells and the releases: what is written once for all of them."""
        fields = msgspec.to_builtins(self).items()
        return msgspec.json.encode(
            {name: value for name, value in fields if name not in ("releases", "cells")}
        )


def _require_finding(pattern: Mapping[str, Any]) -> None:
    """Raise ValueError for what is no part of a finding's key."""
    known = findings.KINDS.get(kind := pattern.get("kind", ""))
    if known is None:
        raise ValueError(f"finding: kind {kind!r} is unknown ({nearest(str(kind), findings.KINDS)})")
    for name in pattern:
        if name not in ("kind", *known):
            raise ValueError(f"finding: {kind!r} has no {name!r} ({nearest(name, ('kind', *known))})")


def inline(key: findings.Key) -> str:
    """Return a finding as it stands in the file.

    >>> inline({"kind": "wrong-values", "output": [0], "begins": "CONV2D (aten.convolution)"})
    '{kind = "wrong-values", output = 0, begins = "CONV2D (aten.convolution)"}'
    """
    # Only here: what reads decisions does without.
    import tomlkit

    table = tomlkit.inline_table()
    table.update(findings.short(key))
    return table.as_string()


def is_pattern(name: str) -> bool:
    """Return whether a name in `Decision.cells` is a pattern for several cells."""
    return any(sign in name for sign in "*?[")


@dataclass(frozen=True)
class Decisions:
    """The decisions of a root of goldens, for the cells of one release.

    Attributes
    ----------
    of_zoo
        Whether its cells are those of cases, and ``goldens review`` sees what its runs propose.
    """

    root: Path = Path()
    release: str = ""
    stated: tuple[Decision, ...] = ()
    of_zoo: bool = True

    @classmethod
    def of_root(cls, root: Path, release: str, of_zoo: bool = True) -> Decisions:
        """Read the file of a root; raise `DecisionError`."""
        return cls(root, release, read(root), of_zoo)

    @functools.cached_property
    def by_name(self) -> Mapping[str, list[Decision]]:
        """The decisions of the release, by name or pattern of a cell."""
        found = defaultdict[str, list[Decision]](list)
        for each in self._current:
            for name in each.cells:
                found[name].append(each)
        return found

    @property
    def _current(self) -> list[Decision]:
        return [each for each in self.stated if self.release in (each.releases or (self.release,))]

    @functools.cached_property
    def _patterns(self) -> list[str]:
        return [name for name in self.by_name if is_pattern(name)]

    def _about(self, what: str, cell: Cell) -> Iterator[tuple[str, Decision]]:
        for name in (str(cell), *(each for each in self._patterns if fnmatch.fnmatchcase(str(cell), each))):
            yield from ((name, each) for each in self.by_name.get(name, ()) if each.what == what)

    def about(self, what: str, cell: Cell) -> list[Decision]:
        """Return the decisions of a kind about a cell."""
        return [each for _, each in self._about(what, cell)]

    def misused(self, met: Mapping[Cell, Sequence[Decision]]) -> Iterator[Misused]:
        """Yield what is superfluous, once it is known which decisions each cell of the zoo meets."""
        file, every = self.root / FILE, set(map(str, met))

        def is_unmade(name: str) -> bool:
            # Of a golden whose case is gone the end of the run says that it is stale.
            is_stale = (self.root / self.release / f"{name}{golden.SUFFIX}").is_file()
            return name not in every and not is_stale and not fnmatch.filter(every, name)

        for each in self._current:
            if unmade := tuple(filter(is_unmade, each.cells)):
                yield Misused(file, NO_CELL, unmade, (each,))
        checked = {id(each): each for cell in met for what in MET for each in self.about(what, cell)}
        used = {id(each) for found in met.values() for each in found}
        for number, each in checked.items():
            if number not in used:
                yield Misused(file, UNMET, each.cells, (each,))
        for cell, found in met.items():
            if len(found) > 1:
                yield Misused(file, TWICE, (str(cell),), tuple(found))

    def budgets(self, cell: Cell) -> list[tuple[str, Mapping[str, float]]]:
        """Return the limits of a cell, each with the name or pattern that has them."""
        return [(name, msgspec.to_builtins(each.limits)) for name, each in self._about(BUDGET, cell)]

    @property
    def defects(self) -> dict[str, Decision]:
        """The known defects that name a cell, by its name."""
        return {name: each for name, found in self.by_name.items() for each in found if each.what == KNOWN}

    def known(self, cells: Iterable[Cell]) -> frozenset[Cell]:
        """Return those of some cells that have a known defect."""
        return frozenset(cell for cell in cells if self.about(KNOWN, cell))

    def unchecked(self, cell: Cell) -> tuple[str, ...]:
        """Return what is accepted of a cell although nothing checks it."""
        return tuple(name for each in self.about(IMPRECISE, cell) for name in each.unchecked)

    def missing(self, cell: Cell, record: Record, recorded: bool = False) -> Missing | None:
        """Return the decision to write before `record` may be the golden of a cell; None if none is missing."""
        what = kind(record)
        expectable = what == FAILS or (what and targets.delegates(cell.target))
        if not expectable or any(each.expects(record) for each in self.about(EXPECTED[what], cell)):
            return None
        return Missing(self.root, expected(cell, self.release, record), what, recorded, self.of_zoo)


class Misused(NamedTuple):
    """Decisions that a run of all cells shows to be superfluous.

    Attributes
    ----------
    how
        `NO_CELL` where no case makes cells of the names; `UNMET` where no cell shows what is decided; `TWICE` where
        one cell meets all of them.
    """

    file: Path
    how: str
    names: tuple[str, ...]
    decisions: tuple[Decision, ...]


class Missing(NamedTuple):
    """A decision that a person has to take before a golden is recorded, or stays.

    Attributes
    ----------
    what
        `FAILS` or `UNDELEGATED`.
    recorded
        Whether that is a golden already.
    of_zoo
        See `Decisions`.
    """

    root: Path
    decision: Decision
    what: str
    recorded: bool = False
    of_zoo: bool = True


#: No decisions.
NONE = Decisions()


def kind(record: Record) -> str:
    """Return `FAILS` or `UNDELEGATED` for a golden that is one only where it is expected; empty for any other."""
    if record.fails:
        return FAILS
    return "" if any(name.startswith("delegate ") for name in record.facts) else UNDELEGATED


def cause_of(record: Record) -> str:
    """Return why a golden fails, without parts of a single cell."""
    return general(record.inventory.failure or "")


def outside_of(record: Record) -> tuple[str, ...]:
    """Return the operators outside of the delegates of a golden."""
    return tuple(sorted(record.inventory.outside))


def expected(cell: Cell, release: str, record: Record, why: str = "") -> Decision:
    """Return the decision that expects a golden of a `kind`."""
    decided = functools.partial(
        Decision, EXPECTED[kind(record)], why=why, releases=(release,), cells=(str(cell),)
    )
    return decided(cause=cause_of(record)) if record.fails else decided(outside=outside_of(record))


# The file


def read(root: Path) -> tuple[Decision, ...]:
    """Return the decisions of a root, none where it has no file; raise `DecisionError`."""
    path = root / FILE
    try:
        found = parse(_text(path))
    except (OSError, ValueError) as error:
        if conflict := merging.conflict_in(path):
            way_out = merging.take_a_side(path, "let goldens review --expect bring it up to date")
            raise DecisionError(f"{path}: {conflict}. {way_out[:1].upper()}{way_out[1:]}") from error
        raise DecisionError(f"{path}: {error}. Correct it; docs/goldens.md has the fields") from error
    folders = root.iterdir() if root.is_dir() else ()
    known = sorted(
        {*releases.load().releases, *(each.name for each in folders if RELEASE.fullmatch(each.name))}
    )
    for number, each in enumerate(found, 1):
        for name in each.releases:
            if name not in known:
                raise DecisionError(
                    f"{path}: [[decision]] {number} ({each}): releases: {name!r} is unknown "
                    f"({nearest(name, known)}). Correct it, or delete the decision"
                )
    return found


def _text(path: Path) -> str:
    return untrusted.text(path.resolve(), untrusted.LARGEST_TOML) if path.is_file() else ""


def parse(text: str) -> tuple[Decision, ...]:
    """Return the decisions in the text of a file; raise ValueError, which names the line of the table."""
    tables = untrusted.toml_of(text)
    found = tables.pop("decision", [])
    if tables or not isinstance(found, list):
        raise ValueError(f"{next(iter(tables), 'decision')}: expected tables [[decision]]")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    decisions = []
    for index, table in enumerate(found):
        try:
            decisions.append(as_declared(table, Decision))
        except TableError as error:
            where = f"line {lines[index]}: " if len(lines) == len(found) else ""
            raise ValueError(f"{where}[[decision]] {index + 1}: {str(error).removeprefix(': ')}") from error
    return tuple(decisions)


_HEAD = re.compile(r"\s*\[\[\s*decision\s*\]\]")


def joined(stated: Iterable[Decision]) -> list[Decision]:
    """Return decisions merged where they agree: the releases of a cell, and the cells of what is decided.

    >>> one, other = (Decision(NO_DELEGATE, releases=(on,), cells=("a/b",)) for on in ("1.5.1", "1.10.0"))
    >>> [each.releases for each in joined([other, one])]
    [('1.5.1', '1.10.0')]
    """
    first: dict[bytes, Decision] = {}
    releases = defaultdict[tuple[bytes, str], set[str]](set)
    for each in stated:
        first.setdefault(each.identity, each)
        for cell in each.cells or ("",):
            releases[each.identity, cell].update(each.releases)
    cells = defaultdict[tuple[bytes, tuple[str, ...]], set[str]](set)
    for (identity, cell), versions in releases.items():
        cells[identity, tuple(sorted(versions, key=_in_order))].add(cell)
    whole = [
        msgspec.structs.replace(
            first[identity], releases=versions, cells=tuple(sorted(names)) if names != {""} else ()
        )
        for (identity, versions), names in cells.items()
    ]
    return sorted(whole, key=_place)


def _in_order(release: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part) if part.isdigit() else -1, part) for part in release.split("."))


def _place(decision: Decision) -> tuple[Any, ...]:
    return decision.identity, tuple(sorted(map(_in_order, decision.releases)))


def write(root: Path, stated: Iterable[Decision]) -> None:
    """Bring the file of a root to some decisions: tables that say the same stay as they are, with their comments.

    Raises
    ------
    UnwritableError
        Where it cannot be written.
    """
    path, wanted = root / FILE, joined(stated)
    try:
        before = _text(path)
        text = edited(before, wanted)
        if joined(parse(text)) != wanted:
            raise ValueError("it would not be read as it was written")
        if not wanted:
            path.unlink(missing_ok=True)
        elif text != before:
            durable.replace(path, text)
    except (OSError, ValueError) as error:
        raise UnwritableError(
            path, f"cannot be written ({error})", "Make room for it, then try again."
        ) from error


def edited(text: str, wanted: Sequence[Decision]) -> str:
    """Return the text of a file with its tables brought to `wanted`, which are `joined`."""
    preamble, *blocks = _blocks(text or "# Decisions about cells: docs/goldens.md.\n")
    left = {_place(each): each for each in wanted}
    made: list[tuple[Any, str]] = []
    for block, decision in zip(blocks, parse(text), strict=True):
        if now := left.pop(_place(decision), None):
            same = set(now.cells) == set(decision.cells)
            made.append((_place(now), block if same else _with_cells(block, now.cells)))
    for place, new in left.items():
        at = next((at for at, (other, _) in enumerate(made) if other > place), len(made))
        made.insert(at, (place, _table(new)))
    return "\n".join(
        f"{part.rstrip()}\n" for part in (preamble, *(block for _, block in made)) if part.strip()
    )


def _blocks(text: str) -> list[str]:
    """Return the text before the first table of a file, and that of each table, with the comment right above it."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if _HEAD.match(line):
            above: list[str] = []
            while blocks[-1] and blocks[-1][-1].startswith("#"):
                above.insert(0, blocks[-1].pop())
            blocks.append(above)
        blocks[-1].append(line)
    return ["\n".join(lines) for lines in blocks]


def _with_cells(block: str, cells: Sequence[str]) -> str:
    """Return the text of a table with these cells, a line changed for each that it has not."""
    # Only here: what reads decisions does without.
    import tomlkit

    document = tomlkit.parse(block)
    array: Any = document["decision"][0]["cells"]
    for name in set(array) - set(cells):
        array.remove(name)
    for at, name in enumerate(cells):
        if name not in array:
            array.insert(at, name)
    return tomlkit.dumps(document)


def _table(decision: Decision) -> str:
    import tomlkit

    table = msgspec.to_builtins(decision)
    for name in ("limits", "finding"):
        if fields := table.get(name):
            table[name] = tomlkit.inline_table()
            table[name].update(fields)
    if cells := table.get("cells"):
        table["cells"] = tomlkit.array().multiline(True)
        table["cells"].extend(cells)
    return tomlkit.dumps({"decision": [table]})


class Updated(NamedTuple):
    """What `update` did: goldens that need a decision, those of them that had none, and (cell, release) deleted."""

    found: int
    written: int
    gone: tuple[tuple[str, str], ...]


def update(root: Path) -> Updated:
    """Bring the expectations of a root up to date with its goldens: missing ones are written, stale ones deleted.

    Raises
    ------
    executorch_goldens.goldens.golden.GoldenError
        For a golden that cannot be read, and where the file cannot be written.
    DecisionError
        For a file that cannot be used.
    """
    goldens = {
        (str(cell), folder.name): record
        for folder in sorted(root.glob("*/"))
        if RELEASE.fullmatch(folder.name)
        for cell in golden.recorded(folder)
        if (record := golden.read(golden.file_of(folder, cell))) is not None and kind(record)
    }
    kept, gone = [], []
    for each in read(root):
        if each.what not in EXPECTED.values():
            kept.append(each)
            continue
        for name, on in ((name, on) for name in each.cells for on in each.releases):
            if is_pattern(name) or ((record := goldens.get((name, on))) and each.expects(record)):
                kept.append(msgspec.structs.replace(each, releases=(on,), cells=(name,)))
            else:
                gone.append((name, on))
    missing = [
        expected(Cell.named(name), on, record)
        for (name, on), record in goldens.items()
        if Decisions(root, on, tuple(kept)).missing(Cell.named(name), record)
    ]
    write(root, [*kept, *missing])
    return Updated(len(goldens), len(missing), tuple(gone))
