"""Reviewed results of programs in other releases' runtimes: ``<goldens>/fielded/<N>-<M>.txt``, a line a program."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable, untrusted
from executorch_goldens.goldens.golden import GoldenError
from lab.fielded.judging import is_break

FOLDER = "fielded"

#: What ExecuTorch says of a pair (runtime/COMPATIBILITY.md, "Backward compatibility"): a program runs at least on the
#: first minor or major release that follows its own. Of a runtime older than the program it says nothing.
OWN, PROMISED, NOT_PROMISED = "its own release", "promised", "not promised"


@dataclass(frozen=True)
class Pair:
    """A release that makes programs, and one whose runtime runs them."""

    made: str
    run: str

    def __str__(self) -> str:
        return f"{self.made}-{self.run}"

    def file(self, root: Path) -> Path:
        """Return where its golden is below a root of goldens."""
        return untrusted.inside(root, FOLDER, f"{self}.txt")


@dataclass(frozen=True)
class Change:
    """A program whose result differs from the reviewed one; None for no result, and for a removed cell."""

    pair: Pair
    cell: Cell
    before: str | None
    after: str | None

    def line(self) -> str:
        """Return the line for a person."""
        if self.before is None:
            return f"new: {self.cell} of {self.pair.made} on {self.pair.run}: {self.after}"
        if self.after is None:
            return f"stale: {self.cell} of {self.pair.made} on {self.pair.run}: there is no such program"
        broken = is_break(self.after) and not is_break(self.before)
        return (
            f"{'broken' if broken else 'changed'}: {self.cell} of {self.pair.made} on {self.pair.run}: "
            f"{self.before} -> {self.after}"
        )


def promise(pair: Pair, versions: Collection[str]) -> str:
    """Return upstream's promise for a pair, given all `versions`.

    >>> known = ["1.1.0", "1.2.0", "1.2.1", "1.3.1"]
    >>> [promise(Pair("1.1.0", other), known) for other in known]
    ['its own release', 'promised', 'promised', 'not promised']
    >>> promise(Pair("1.2.0", "1.1.0"), known)
    'not promised'
    """
    if pair.made == pair.run:
        return OWN
    made, run = _minor(pair.made), _minor(pair.run)
    following = sorted(minor for minor in set(map(_minor, versions)) if minor > made)
    if made == run:
        return PROMISED if Version(pair.run) > Version(pair.made) else NOT_PROMISED
    return PROMISED if following[:1] == [run] else NOT_PROMISED


def _minor(version: str) -> tuple[int, int]:
    parsed = Version(version)
    return parsed.major, parsed.minor


def read(pair: Pair, root: Path) -> dict[Cell, str] | None:
    """Return the reviewed result of each program of a pair; None without a review; raise GoldenError."""
    path = pair.file(root)
    again = f"Bring it back with 'git checkout -- {path}'."
    try:
        text = untrusted.text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise GoldenError(path, f"cannot be read ({error})", again) from error
    lines: dict[Cell, str] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, spaces, outcome = line.partition("  ")
        target, slash, case = name.partition("/")
        if not slash or not spaces or not outcome:
            raise GoldenError(path, f"has a line that says nothing of a program: {line!r:.80}", again)
        lines[Cell(target, case)] = outcome
    return lines


def compared(
    pair: Pair, reviewed: Mapping[Cell, str], found: Mapping[Cell, str], known: Collection[Cell]
) -> list[Change]:
    """Return the differences, in the order of the cells.

    Parameters
    ----------
    found
        The results of the programs that were run.
    known
        All cells of the release that makes programs: what was reviewed of others is stale.
    """
    cells = sorted({*found, *(cell for cell in reviewed if cell not in known)})
    changes = (Change(pair, cell, reviewed.get(cell), found.get(cell)) for cell in cells)
    return [change for change in changes if change.before != change.after]


def accepted(
    reviewed: Mapping[Cell, str], found: Mapping[Cell, str], known: Collection[Cell]
) -> dict[Cell, str]:
    """Return the golden once `found` is accepted: programs that were not run keep their lines."""
    return {**{cell: text for cell, text in reviewed.items() if cell in known}, **found}


def text(pair: Pair, lines: Mapping[Cell, str], promised: str, tosa_tools: str) -> Iterator[str]:
    """Yield the lines of a golden."""
    yield f"# Programs of ExecuTorch {pair.made} in the runtime of {pair.run}: {promised}."
    yield f"# Payloads of TOSA in the reference model of tosa-tools {tosa_tools}. Read harness/lab/docs/fielded.md."
    for cell, outcome in sorted(lines.items()):
        yield f"{cell}  {outcome}"


def write(path: Path, lines: Sequence[str]) -> bool:
    """Write a golden unless it is there already; return whether it was written; raise GoldenError."""
    content = "".join(f"{line}\n" for line in lines)
    try:
        if path.exists() and path.read_text(encoding="utf-8") == content:
            return False
        durable.replace(path, content)
    except OSError as error:
        raise GoldenError(path, f"cannot be written ({error})", "Make it writable.") from error
    return True
