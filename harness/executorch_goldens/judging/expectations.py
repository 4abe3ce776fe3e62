"""Goldens that are a decision: of a failure, and of a program that delegates nothing.

Neither is recorded, and neither is green, unless a person expects it. A case expects it of itself::

    @case(guards="...", expects={"tosa-int": {"1.5.1": "FAILURE"}})

``expected.toml`` in a root of goldens has the others::

    [[expected]]
    what = "FAILURE"
    releases = ["1.4.1", "1.5.1"]
    cells = ["tosa-int/gate"]
    why = "torch.export refuses a branch on a value"

A name in `cells` may be a pattern. One that takes failures names their `cause` as well, and takes those of no other.
"""

from __future__ import annotations

import fnmatch
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.goldens import golden, merging, toml
from executorch_goldens.goldens.causes import cause, general
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.reading import reading
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import FAILS, UNDELEGATED

FILE = "expected.toml"
#: Operators outside of delegates that are named.
SHOWN_OUTSIDE = 3

#: Case to target to release to what is expected there, as cases state it.
OfCases = Mapping[str, Mapping[str, Mapping[str, str]]]


class ExpectationError(UsageError):
    """An ``expected.toml`` that cannot be used; the message names the file and the way out."""


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table ``[[expected]]``.

    Attributes
    ----------
    what
        `FAILS` or `UNDELEGATED`.
    releases
        Versions of ExecuTorch.
    cells
        Names, or patterns of names as `fnmatch` has them.
    cause
        Of failures: the only one that is expected (`cause_of`); any where it is empty.
    why
        A person's comment.
    """

    what: str
    releases: tuple[str, ...]
    cells: tuple[str, ...]
    cause: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        if self.what not in (FAILS, UNDELEGATED):
            raise ValueError(f"'what' is {self.what!r}, neither {FAILS!r} nor {UNDELEGATED!r}")
        patterns = [name for name in self.cells if is_pattern(name)]
        if patterns and self.what == FAILS and not self.cause:
            raise ValueError(f"{patterns[0]!r} takes every failure: name their cause")

    def covers(self, cell: Cell, release: str, texts: Texts) -> bool:
        """Return whether this expects the golden `texts` of a cell, by its kind."""
        if release not in self.releases or not any(
            fnmatch.fnmatchcase(str(cell), name) for name in self.cells
        ):
            return False
        return not self.cause or cause_of(texts) in (self.cause, general(self.cause))


@dataclass(frozen=True)
class Expectations:
    """Expected results of the cells of a root of goldens on one release.

    Attributes
    ----------
    root
        Of the goldens.
    stated
        Those of its file.
    of_cases
        Expectations that cases of the zoo declare.
    of_zoo
        Whether its cells are those of cases, and ``goldens review`` sees what its runs propose.
    """

    root: Path
    release: str
    stated: tuple[Expected, ...] = ()
    of_cases: OfCases = field(default_factory=dict)
    of_zoo: bool = True

    def missing(self, cell: Cell, texts: Texts, recorded: bool = False) -> str:
        """Return the text to write before `texts` may be the golden of a cell; empty if none is missing.

        Parameters
        ----------
        recorded
            Whether they are its golden already.
        """
        what = self._kind(cell, texts)
        if not what or self.by_case(cell) == what or self._entries(cell, what, texts):
            return ""
        ways = [f"in its @case, {line_of(cell, self.release, what)}"] if self.of_zoo else []
        ways.append(
            f'in {self.root / FILE}, a table [[expected]] with what = "{what}", releases = ["{self.release}"], '
            f'cells = ["{cell}"]'
        )
        by = "goldens review --accept GROUP --expect" if self.of_zoo else ""
        if recorded:
            by = shlex.join(["goldens", "review", "--expect", f"--goldens={self.root}"])
        written = f" ({by} writes it)" if by else ""
        return f"a {what} is recorded only if it is expected: {'; or '.join(ways)}{written}"

    def stale(self, cell: Cell, texts: Texts) -> str:
        """Return which expectation the artifact `texts` of a cell does not meet any more; empty where none is."""
        what = self._kind(cell, texts)
        expected = self.by_case(cell)
        if expected and expected != what:
            return f"its @case expects {expected} of it on {self.release}: delete that"
        named = [
            each.what
            for each in self.stated
            if each.what != what and self.release in each.releases and str(cell) in each.cells
        ]
        return f"{self.root / FILE} expects {named[0]} of it on {self.release}: delete that" if named else ""

    def of_no_cell(self, cells: Iterable[Cell]) -> Iterator[tuple[str, str]]:
        """Yield expectations of missing cells on the release, with the reason why they can go."""
        there = {str(cell) for cell in cells}
        for each in self.stated:
            if self.release in each.releases:
                gone = (name for name in each.cells if name not in there and not is_pattern(name))
                yield from (
                    (name, f"{self.root / FILE} expects {each.what} of it, and it is no cell")
                    for name in gone
                )

    def _kind(self, cell: Cell, texts: Texts) -> str:
        """Return the `kind` of a golden, where a program for its target is to have delegates."""
        what = kind(texts)
        return "" if what == UNDELEGATED and not targets.delegates(cell.target) else what

    def by_case(self, cell: Cell) -> str:
        """Return the expectation of the case of a cell; empty for none."""
        return self.of_cases.get(cell.case, {}).get(cell.target, {}).get(self.release, "")

    def _entries(self, cell: Cell, what: str, texts: Texts) -> bool:
        return any(each.what == what and each.covers(cell, self.release, texts) for each in self.stated)


def kind(texts: Texts) -> str:
    """Return `FAILS` or `UNDELEGATED` for a golden that is a decision; empty for any other."""
    if golden.FAILURE in texts:
        return FAILS
    return "" if any(name.startswith("delegate ") for name in golden.fields(texts)) else UNDELEGATED


def cause_of(texts: Texts) -> str:
    """Return why a golden fails, without parts of a single cell; empty if it does not fail."""
    return general(": ".join(cause(texts[golden.FAILURE]))) if golden.FAILURE in texts else ""


def words(texts: Texts) -> str:
    """Return the message for a golden that is a decision."""
    if golden.FAILURE in texts:
        return cause_of(texts)
    outside = sorted(reading(texts).outside)
    more = ", …" if len(outside) > SHOWN_OUTSIDE else ""
    return f"outside: {', '.join(outside[:SHOWN_OUTSIDE])}{more}" if outside else "no operator is left"


def line_of(cell: Cell, release: str, what: str) -> str:
    """Return the argument by which a case expects something of itself.

    >>> line_of(Cell("tosa-int", "gate"), "1.5.1", "FAILURE")
    'expects={"tosa-int": {"1.5.1": "FAILURE"}}'
    """
    return f'expects={{"{cell.target}": {{"{release}": "{what}"}}}}'


def is_pattern(name: str) -> bool:
    """Return whether a name in `Expected.cells` is a pattern for several cells."""
    return any(sign in name for sign in "*?[")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    expected: tuple[Expected, ...] = ()


def read(root: Path) -> tuple[Expected, ...]:
    """Return the expectations in the file of a root; none without a file; raise `ExpectationError`."""
    path = root / FILE
    if not path.is_file():
        return ()
    try:
        return of_tables(untrusted.toml(path))
    except (OSError, ValueError) as error:
        if conflict := merging.conflict_in(path):
            way_out = merging.take_a_side(path, "let goldens review --expect bring it up to date")
            raise ExpectationError(f"{path}: {conflict}. {way_out[:1].upper()}{way_out[1:]}") from error
        raise ExpectationError(f"{path}: expected tables [[expected]] ({error})") from error


def of_tables(read: Mapping[str, Any]) -> tuple[Expected, ...]:
    """Return the expectations in the tables of a file; raise ValueError for invalid ones."""
    return msgspec.convert(read, _File).expected


def write(root: Path, stated: Iterable[Expected]) -> None:
    """Replace the file of a root, a table for each cause and its releases; raise `GoldenError`."""
    path = root / FILE
    # Only here: what reads them does without.
    import tomlkit

    document = tomlkit.document()
    document.add(
        tomlkit.comment(
            "Goldens that are a failure, or of a program that delegates nothing: docs/goldens.md."
        )
    )
    document.add(tomlkit.comment('"goldens review --expect" brings it up to date, and keeps each why.'))
    there = joined(stated)
    document["expected"] = toml.tables(map(msgspec.to_builtins, there))
    toml.replace(path, document if there else None, "Make room for it, then try again.")


def joined(stated: Iterable[Expected]) -> list[Expected]:
    """Return expectations merged where they agree: the releases of a cell, and the cells of a cause.

    >>> one, other = (Expected("FAILURE", (release,), ("a/b",), why="it") for release in ("1.5.1", "1.10.0"))
    >>> [each.releases for each in joined([other, one])]
    [('1.5.1', '1.10.0')]
    """
    releases: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for each in stated:
        for cell in each.cells:
            releases[each.what, each.cause, each.why, cell].update(each.releases)
    cells: dict[tuple[str, str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for (what, cause_, why, cell), versions in releases.items():
        cells[what, cause_, why, tuple(sorted(versions, key=_in_order))].add(cell)
    found: list[Any] = [
        {"what": what, "cause": cause_, "why": why, "releases": versions, "cells": tuple(sorted(names))}
        for (what, cause_, why, versions), names in sorted(cells.items())
    ]
    return [Expected(**each) for each in found]


def _in_order(release: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part) if part.isdigit() else -1, part) for part in release.split("."))
