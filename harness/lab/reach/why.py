"""Why no cell reaches statements: ``why.toml``, read by hand from the sources of the release that it names.

A reason for a whole function holds on every release on which no cell reaches the function; one for lines, where the
function's code is the same.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import msgspec

from executorch_goldens.errors import HarnessError
from executorch_goldens_plugins.compare.reach.map import MappedFunction, ReachMap
from lab import tables
from lab.reach.owners import Counts, Owner

WHY = Path(__file__).with_name("why.toml")
#: Statements whose reason said that they cannot run, and whether each can, read by hand: ``random.Random(seed).sample``
#: of those that there were then, or of a kind, in order of file, function and line. What one showed was corrected.
SAMPLE = Path(__file__).with_name("sample.tsv")
COLUMNS = ("seed", "file", "function", "line", "verdict", "why")
#: An owner with more statements that no cell reaches has a reason for each of them.
FEW = 20
#: The kind of what can run, and the others, by what they say.
OPEN = "open"
KINDS = {
    "unused": "nothing that lowers a program calls it: an older way to lower, a property, a helper that is left",
    "backend": "only other backends, or their partitioners, quantizers and passes, call it",
    "guard": "what would lead there is normalized or refused before",
    "tool": "prints, checks or describes, for a person who asks",
    "earlier": "runs once a process, before a program is recorded: while modules are imported",
    OPEN: "a program could run it, and none here does",
}


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"owner": "class"}):
    """Why no cell reaches some functions of a class or of a module (``*``: all), and lines, as `place` has them.

    Without either, it is for all of the owner that has no other reason.
    """

    file: str
    kind: str
    why: str
    owner: str = ""
    functions: tuple[str, ...] = ()
    lines: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.file, self.owner or PurePosixPath(self.file).stem


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `WHY`."""

    release: str
    reason: tuple[Reason, ...]


#: What no cell reaches of an owner by its reason, None where there is none: lines of functions.
Explained: TypeAlias = dict[Reason | None, dict[MappedFunction, tuple[int, ...]]]


class WhyError(HarnessError):
    """A reason that does not hold, or that is missing."""

    def __init__(self, where: tuple[str, str], what: str) -> None:
        super().__init__(f"{WHY.name}: {' '.join(where)}: {what}")


class Reasons:
    """The reasons by what they are for, checked by the map of their release; raise `WhyError`."""

    def __init__(self, reading: Reading, known: ReachMap, left: Mapping[Owner, Counts]) -> None:
        self.release = reading.release
        self._rest: dict[tuple[str, str], Reason] = {}
        self._of: dict[tuple[str, str], tuple[MappedFunction, dict[int, Reason]]] = {}
        by_key = {owner.key: counts for owner, counts in left.items()}
        for reason in reading.reason:
            if reason.key not in by_key:
                raise WhyError(reason.key, f"{known.release} has no such owner")
            if reason.kind not in KINDS:
                raise WhyError(reason.key, f"{reason.kind!r} is no kind: {', '.join(KINDS)}")
            self._take(reason, known, by_key[reason.key])
        for owner, counts in left.items():
            without = self.by_reason(owner, counts).get(None, {})
            if counts.statements - counts.reached > FEW and without:
                lines = ", ".join(place(each, line) for each in without for line in without[each])
                raise WhyError(owner.key, f"lines {lines} have no reason")

    def _take(self, reason: Reason, known: ReachMap, counts: Counts) -> None:
        named = [*_named(reason, counts.missing)]
        if not named and (reason.kind != OPEN or self._rest.setdefault(reason.key, reason) is not reason):
            raise WhyError(reason.key, f"{reason.kind} names no functions and no lines")
        for function, line in named:
            where = reason.file, f"{function.name} {place(function, line)}"
            if line not in counts.missing[function] and reason.kind != OPEN:
                numbers = next(each.numbers for each in function.situations if line in each.lines)
                raise WhyError(where, f"{known.cells[min(numbers)].cell} reaches it: {reason.kind} is wrong")
            of_function = self._of.setdefault((reason.file, function.name), (function, {}))[1]
            if of_function.setdefault(line, reason) is not reason:
                raise WhyError(where, "it has two reasons")

    def by_reason(self, owner: Owner, counts: Counts) -> Explained:
        """Return what no cell reaches of an owner, of any release."""
        found: Explained = {}
        for function, lines in counts.missing.items():
            then, reasons = self._of.get((owner.file, function.name), (function, {}))
            if then.digest == function.digest:
                moved = zip(then.statements, function.statements, strict=True)
                reasons = {now: reasons[line] for line, now in moved if line in reasons}
            else:
                is_whole = len(lines) == len(function.statements) and len(reasons) == len(then.statements)
                reasons = dict.fromkeys(lines, next(iter(reasons.values()))) if is_whole else {}
            for line in lines:
                of_reason = found.setdefault(reasons.get(line, self._rest.get(owner.key)), {})
                of_reason[function] = (*of_reason.get(function, ()), line)
        return found


def _named(reason: Reason, functions: Collection[MappedFunction]) -> Iterator[tuple[MappedFunction, int]]:
    """Yield the statements that a reason names, as `Situation.lines` has them."""
    by_name = {each.name.rpartition(".")[2]: each for each in functions}
    by_place = {place(each, line): (each, line) for each in functions for line in each.statements}
    for name in by_name if reason.functions == ("*",) else reason.functions:
        if name not in by_name:
            raise WhyError(reason.key, f"it has no function {name!r}")
        yield from ((by_name[name], line) for line in by_name[name].statements)
    for line in reason.lines.split():
        if line not in by_place:
            raise WhyError(reason.key, f"it has no statement at {line!r}")
        yield by_place[line]


def place(function: MappedFunction, line: int) -> str:
    """Return the line of the file for one of `Situation.lines`; with ``-`` for a condition that is false."""
    return f"{function.first + line}" if line >= 0 else f"{function.first - line - 1}-"


def read() -> Reading:
    """Read `WHY`; raise `WhyError`."""
    try:
        return msgspec.convert(tomllib.loads(WHY.read_text(encoding="utf-8")), Reading)
    except (ValueError, msgspec.ValidationError) as error:
        raise WhyError((str(WHY.parent), "cannot be read"), str(error)) from error


def verdicts() -> dict[str, Counter[str]]:
    """Return how many statements of `SAMPLE` can run and cannot, by seed."""
    found: dict[str, Counter[str]] = {}
    for row in tables.read(SAMPLE, COLUMNS):
        found.setdefault(row["seed"], Counter())[row["verdict"]] += 1
    return found
