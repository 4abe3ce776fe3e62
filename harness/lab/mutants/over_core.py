"""Every mutant over the core of the zoo, cell by cell until one detects it; none is tied to a cell chosen for it.

A mutant first meets the cells that its edit most likely reaches, which saves time and no cell: one that nothing detects
has met all of them. What was found is kept in a file, and a session that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.record import TRACE
from executorch_goldens.running import core
from executorch_goldens.running.plan import Plan
from executorch_goldens.sweep.sweep import Sweep, SweepError
from executorch_goldens.words.verdicts import reason
from executorch_goldens.zoo.targets import find
from lab.mutants import lines
from lab.mutants.mutant import Mutant, Mutated
from lab.mutants.table import NONE, Judged, judge

#: Share of all mutants that must be detected.
DETECTED = 0.95

#: Columns of the table of what was found: the fields of `Found`.
COLUMNS = ("mutant", "cell", "verdict", "named", "tried")
HEAD = ("| mutant | detected by | verdict | named | cells tried |", "|---|---|---|---|---:|")

#: Mutants go in an order that nobody chose: those that a stopped session has tried are a sample of all.
SHUFFLE = 15


@dataclass(frozen=True)
class Found:
    """The core's result for a mutant.

    Attributes
    ----------
    mutant
        Its name.
    cell
        The cell that detects it; empty where none does.
    verdict, named
        The result for that cell, as in `Judged`.
    tried
        Number of cells that it has met.
    """

    mutant: str
    cell: str
    verdict: str
    named: str
    tried: int

    def row(self) -> str:
        return f"| {self.mutant} | {self.cell or NONE} | {self.verdict} | {self.named} | {self.tried} |"


class Kept:
    """The results of earlier sessions with the same core, mutants and hash seeds."""

    def __init__(self, file: Path, planned: Plan) -> None:
        self.file = file
        self.settings = (planned.root / core.FILE).read_text(encoding="utf-8") + repr(planned.variations)

    def key(self, mutant: Mutant) -> str:
        return hashlib.sha256(f"{self.settings}{mutant.edits!r}".encode()).hexdigest()[:12]

    def read(self, mutants: Sequence[Mutant]) -> dict[str, Found]:
        """Return the known results of some of `mutants`, by name."""
        keys = {(mutant.name, self.key(mutant)) for mutant in mutants}
        return lines.read(self.file, keys, Found)

    def add(self, mutant: Mutant, found: Found) -> None:
        lines.add(self.file, found, self.key(mutant))


def shuffled(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Return `mutants` in an order of chance that is the same each time, those that are said to survive at the end."""
    order = list(mutants)
    random.Random(SHUFFLE).shuffle(order)
    return sorted(order, key=lambda mutant: bool(mutant.caught_by))


def likeliest_first(mutant: Mutant, cells: Sequence[Cell], texts: dict[Cell, str]) -> list[Cell]:
    """Return `cells`, first those whose golden has the edited pass or operator; then those of its backend.

    Observers are in the quantized ones.
    """
    functions = [edit.function.lower().rpartition(":")[::2] for edit in mutant.edits]
    words = [qualified.partition(".")[0] for _, qualified in functions]
    words += [module.rpartition(".")[2].removeprefix("op_").removeprefix("tosa_") for module, _ in functions]
    backends = {"arm": "tosa", "xnnpack": "xnnpack"}
    its = {backends.get(module.split(".")[2], "") for module, _ in functions}
    observers = all(module.startswith("torchao.quantization.") for module, _ in functions)

    def rank(cell: Cell) -> int:
        if observers:
            return 0 if find(cell.target).is_quantized else 2
        if "" not in its and cell.target.partition("-")[0] not in its:
            return 2
        return 0 if any(word in f"{cell} {texts[cell]}" for word in words) else 1

    return sorted(cells, key=rank)


def passes_and_operators(folder: Path, cell: Cell) -> str:
    """Return the names of the passes and operators that a golden has, in lower case."""
    record = golden.read(golden.file_of(folder, cell))
    sections = record.sections if record is not None else {}
    lines = "\n".join(text for name, text in sections.items() if name.startswith(("delegate_", TRACE)))
    return " ".join(
        line.rpartition(" ")[2] if "operator " in line else line.partition(": ")[2].partition(" ")[0]
        for line in lines.splitlines()
        if line.startswith("  operator ") or not line.startswith(" ")
    ).lower()


def with_golden(folder: Path) -> list[Cell]:
    """Return the cells of the core that must be as their golden: others are known to be wrong without a mutant."""
    return [cell for cell in core.read(folder / core.FILE) if golden.file_of(folder, cell).is_file()]


def search(planned: Plan, mutants: Sequence[Mutant], kept: Kept) -> Iterator[Found]:
    """Yield the core's result for each mutant; raise SweepError where a cell is not stable without one."""
    committed = with_golden(planned.root)
    texts = {cell: passes_and_operators(planned.root, cell) for cell in committed}
    known = kept.read(mutants)
    # One for each target warms the templates up.
    controls = list({cell.target: cell for cell in reversed(committed)}.values())
    installed: dict[Cell, Sequence[str]] = {}
    stable: set[Cell] = set()
    with Sweep(
        controls, planned.variations, planned.settings, lasting=True, further_patches=installed
    ) as sweep:
        for mutant in shuffled(mutants):
            found = known.get(mutant.name)
            if found is None:
                found = Found(mutant.name, "", "stable", NONE, len(committed))
                for tried, cell in enumerate(likeliest_first(mutant, committed, texts), 1):
                    mutated = Mutated(cell.target, cell.case, mutant.name)
                    installed[mutated] = (mutant.name,)
                    judged = Judged.from_verdict(
                        mutant, judge(planned, cell, sweep.again(mutated, planned.variations))
                    )
                    if not judged.detected:
                        continue
                    if cell not in stable:
                        unmutated = (
                            sweep.outcomes(cell)
                            if cell in controls
                            else sweep.again(cell, planned.variations)
                        )
                        control = judge(planned, cell, unmutated)
                        if control.name != "stable":
                            raise SweepError(f"without a mutant, {cell} is {control.name}: {reason(control)}")
                        stable.add(cell)
                    found = Found(mutant.name, str(cell), judged.verdict, judged.named, tried)
                    break
                kept.add(mutant, found)
            yield found


def section(release: str, cells: int, found: Sequence[Found], mutants: Sequence[Mutant]) -> Iterator[str]:
    """Yield the lines of harness/lab/docs/mutants.md about the core."""
    yield "## Over the core of the zoo"
    yield ""
    linked = "[core](../../../docs/running.md#tiers)"
    yield f"Each mutant over the {cells} cells of the {linked} of {release} that have a golden,"
    yield "until one differs from its golden. No cell was chosen for a mutant. Written by"
    yield "`nox -s lab -- mutants --tier core --update`."
    yield ""
    yield from HEAD
    by_name = {each.mutant: each for each in found}
    yield from (by_name[mutant.name].row() for mutant in mutants if mutant.name in by_name)
    yield ""
    yield summary(found, mutants)


def summary(found: Sequence[Found], mutants: Sequence[Mutant]) -> str:
    """Return how many of the mutants were tried, and how many of all were detected."""
    detected = sum(bool(each.cell) for each in found)
    part = detected / len(mutants)
    return f"{len(found)} of {len(mutants)} mutants were tried; {detected} are detected ({part:.1%})."


def is_enough(found: Sequence[Found], mutants: Sequence[Mutant]) -> bool:
    """Return whether enough mutants are detected; an untried one is not."""
    return sum(bool(each.cell) for each in found) >= DETECTED * len(mutants)
