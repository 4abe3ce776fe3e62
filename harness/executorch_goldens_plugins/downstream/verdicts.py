"""Verdicts of compiled cells: do variations agree, is it the golden, and which side caused a change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens.artifact import Cell
from executorch_goldens.zoo.registry import FAILS
from executorch_goldens_plugins.downstream.compilers import KINDS, Died
from executorch_goldens_plugins.downstream.golden import Facts, Golden
from executorch_goldens_plugins.downstream.targets import TARGETS

#: The number that a fact begins with: of bytes, of cycles. What has more digits is none of either.
NUMBER = re.compile(r"\d{1,18}(?= bytes|$)")
#: Characters of a fact that a message shows: a size and a digest in full.
SHOWN = 100
#: Facts that a new cell shows.
OUTLINE = ("cycles", "scratch", "vgf")
#: Characters of a SHA-256 that do in a message.
SHORT = 12


@dataclass(frozen=True)
class CompileVerdict:
    """The verdict of a compiled cell.

    Attributes
    ----------
    name
        ``stable``, ``changed``, ``new``, ``unstable``, ``failed``, ``crashed``, ``timed-out`` or ``stale``.
    reason
        One line.
    facts
        Lines of detail.
    """

    cell: Cell
    name: str
    reason: str = ""
    facts: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the message."""
        yield f"{self.name}: {self.cell}" + (f": {self.reason}" if self.reason else "")
        yield from (f"  {fact}" for fact in self.facts)


def judge(
    cell: Cell, made: Mapping[str, tuple[Facts, ...] | Died], golden: Golden | None, head: Mapping[str, str]
) -> CompileVerdict:
    """Judge the compiled form of a cell.

    Parameters
    ----------
    made
        Name of each variation to what was made under it.
    head
        Head of the golden that would be recorded.
    """
    compiler = KINDS[TARGETS[cell.target].compiler].title
    found: list[tuple[str, tuple[Facts, ...]]] = []
    for variation, each in made.items():
        if isinstance(each, Died):
            return CompileVerdict(cell, each.verdict, f"{compiler} under {variation}: {each.reason}")
        found.append((variation, each))
    first, agreed = found[0]
    for variation, one in found[1:]:
        if one != agreed:
            reason = f"{compiler} makes different things of the same payloads under {first} and {variation}"
            return CompileVerdict(cell, "unstable", reason, tuple(differences(agreed, one)))
    if golden is None:
        return CompileVerdict(cell, "new", _unrecorded(agreed), tuple(_outline(agreed)))
    if golden.delegates != agreed:
        facts = tuple(differences(golden.delegates, agreed))
        return CompileVerdict(cell, "changed", whose(cell, golden, agreed, head), facts)
    if golden.head.get("arguments", "") != head.get("arguments", ""):
        reason = f"the arguments of {compiler}: {golden.head.get('arguments')} -> {head.get('arguments')}"
        return CompileVerdict(cell, "changed", reason)
    return CompileVerdict(cell, "stable")


def whose(cell: Cell, golden: Golden, made: Sequence[Facts], head: Mapping[str, str]) -> str:
    """Return where a change came from: the compiler's input, or the compiler."""
    distribution = TARGETS[cell.target].compiler
    title = KINDS[distribution].title
    before, after = golden.head.get(distribution), head[distribution]
    other = f" {before} -> {after}" if before != after else ""
    if [facts["tosa"] for facts in golden.delegates] != [facts["tosa"] for facts in made]:
        also = f"; {title} changed as well,{other}" if other else ""
        return f"before {title}: the TOSA payload changed{also}"
    return f"by {title}{other or ' of the same version'}, of the same TOSA payloads"


def differences(before: Sequence[Facts], after: Sequence[Facts]) -> Iterator[str]:
    """Yield the differences between two lists of delegates, a fact a line."""
    if len(before) != len(after):
        yield f"{len(before)} -> {len(after)} delegates"
    for index, (one, other) in enumerate(zip(before, after, strict=False)):
        for name in dict.fromkeys((*one, *other)):
            if one.get(name) != other.get(name):
                yield f"delegate {index}, {name}: {_change(one.get(name), other.get(name))}"


def _change(before: str | None, after: str | None) -> str:
    numbers = [NUMBER.match(text or "") for text in (before, after)]
    if numbers[0] and numbers[1]:
        difference = int(numbers[1][0]) - int(numbers[0][0])
        return f"{_short(before)} -> {_short(after)} ({difference:+})"
    return f"{_short(before)} -> {_short(after)}"


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return re.sub(rf"(sha256 [0-9a-f]{{{SHORT}}})[0-9a-f]+", r"\1", text)[:SHOWN]


def _unrecorded(made: Sequence[Facts]) -> str:
    """Report a missing golden; first, whether the compiler refuses the payload."""
    if refused := [index for index, facts in enumerate(made) if "refused" in facts]:
        return f"{FAILS}: {len(refused)} of {len(made)} delegates refused; there is no golden"
    return "there is no golden"


def _outline(made: Sequence[Facts]) -> Iterator[str]:
    for index, facts in enumerate(made):
        if "refused" in facts:
            yield f"delegate {index}: refused: {facts['refused']}"
        else:
            outline = (f"{name} {facts[name]}" for name in OUTLINE if name in facts)
            yield f"delegate {index}: {_short(', '.join(outline))}"
