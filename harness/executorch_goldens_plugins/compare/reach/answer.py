"""Which of the edited lines the exports of the head ran."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens_plugins.compare.reach.code import Statement, module_of
from executorch_goldens_plugins.compare.reach.edits import CodeEdit, Edits

#: Places without a cell that are named.
SHOWN = 6


@dataclass(frozen=True)
class Answer:
    """The edited lines of a comparison: those that ran, and those that did not.

    A line is a statement, however many lines of text it takes. One outside of functions ran where a function did that
    uses a name of it; an import is none.

    Attributes
    ----------
    reached
        Number of lines that ran.
    unreached
        The places of those that did not, as ``file:12-14``.
    raising
        Number of lines that only lead to an exception, and did not run.
    """

    reached: int
    unreached: tuple[str, ...]
    raising: int

    @property
    def asked(self) -> int:
        """The number of lines that could run."""
        return self.reached + len(self.unreached)

    @property
    def is_void(self) -> bool:
        """True if there are lines that could run, and none did."""
        return not self.reached and bool(self.unreached)

    def line(self) -> str:
        """Return it in words; empty where no edited line can run.

        >>> Answer(7, ("executorch/exir/pass_base.py:212-213", "executorch/exir/pass_base.py:215"), 1).line()
        '7 of 9 edited lines reached; 1 more only raises; not reached: executorch/exir/pass_base.py:212-213, 215'
        """
        if not self.asked and not self.raising:
            return ""
        raising = {0: "", 1: "1 more only raises"}.get(self.raising, f"{self.raising} more only raise")
        places = [*_by_file(self.unreached)]
        more = f" and {len(places) - SHOWN} more files" if len(places) > SHOWN else ""
        missing = f"not reached: {'; '.join(places[:SHOWN])}{more}" if places else ""
        reached = f"{self.reached} of {self.asked} edited lines reached"
        return "; ".join(filter(None, (reached, raising, missing)))


def _by_file(places: Collection[str]) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for place in places:
        file, _, line = place.rpartition(":")
        lines.setdefault(file, []).append(line)
    yield from (f"{file}:{', '.join(of_file)}" for file, of_file in lines.items())


def answer(edits: Edits, reached: Mapping[str, Collection[int]], head: Path) -> Answer:
    """Return which edited lines ran; see `statements_run`."""
    ran = statements_run(edits, reached, head)
    raising = 0
    unreached: list[str] = []
    for number, edit in enumerate(edits.every):
        for place, statement in enumerate(_of_head(edit)):
            if (number, place) not in ran:
                raising += bool(edit.function) and statement.raises
                if not (edit.function and statement.raises):
                    unreached.append(_place(edit, statement))
    return Answer(len(ran), tuple(unreached), raising)


def statements_run(
    edits: Edits, reached: Mapping[str, Collection[int]], head: Path
) -> frozenset[tuple[int, int]]:
    """Return the edited statements that ran, by the number of the edit and the number in it.

    Parameters
    ----------
    reached
        Lines of the head's files that ran, by the path below site-packages.
    head
        The head's site-packages.
    """
    found = set[tuple[int, int]]()
    for number, edit in enumerate(edits.every):
        ran = not edit.function and any(_ran(reached, file, name, head) for file, name in edit.users)
        lines = reached.get(edit.file, ()) if edit.function else ()
        found.update((number, place) for place, each in enumerate(_of_head(edit)) if ran or _in(lines, each))
    return frozenset(found)


def _of_head(edit: CodeEdit) -> Sequence[Statement]:
    """Return the statements of an edit that may run: of an import, nothing runs that could be asked about."""
    return edit.head if edit.function else [each for each in edit.head if not each.is_import]


def _in(lines: Collection[int], statement: Statement) -> bool:
    return any(statement.first <= line <= statement.last for line in lines)


def _ran(reached: Mapping[str, Collection[int]], file: str, name: str, head: Path) -> bool:
    """Return whether a function of the head ran."""
    lines = reached.get(file, ())
    function = module_of(head / file).functions.get(name) if lines else None
    return function is not None and any(_in(lines, statement) for statement in function.statements)


def _place(edit: CodeEdit, statement: Statement) -> str:
    lines = (
        f"{statement.first}" if statement.first == statement.last else f"{statement.first}-{statement.last}"
    )
    return f"{edit.file}:{lines}"
