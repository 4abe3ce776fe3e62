"""An upgrade's last question: whether what the base made still runs, and gives the same, in the runtime of the head."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from executorch_goldens.against.making import Comparison
from executorch_goldens.against.outcome import RIGHT
from executorch_goldens.programs import comparing, freezing
from executorch_goldens.programs.format import DEVICE, EXECUTORCH, REFERENCE_MODEL
from executorch_goldens.programs.running import Runtime
from executorch_goldens.targets import RUNTIME, find


def lines(comparison: Comparison) -> Iterator[str]:
    """Yield what becomes of the programs of the base, a line for each that is not as it was, then how many are.

    Raises
    ------
    executorch_goldens.programs.running.RunningError
        For a runtime that cannot be used.
    """
    base, head = comparison.sides.base, comparison.sides.head
    cells = [each.cell for each in comparison.found if each.base.state == RIGHT]
    if not cells:
        yield "programs: the base made none"
        return
    runs = {find(cell.target).runs == RUNTIME for cell in cells}
    engines = [engine for engine, is_run in ((EXECUTORCH, True), (REFERENCE_MODEL, False)) if is_run in runs]
    settings = dataclasses.replace(base.settings, reuse=comparison.reuse)
    number: Counter[str] = Counter()
    with Runtime(base.toolchain.python, engines) as old, Runtime(head.toolchain.python, engines) as new:
        for cell, exports in freezing.exported(cells, comparison.variations, settings):
            try:
                programs = freezing.programs(cell, exports, old)
            except freezing.RefusedError as error:
                number["not frozen"] += 1
                yield f"not frozen: {cell}: {error}"
                continue
            for program in programs:
                ran = program.engine != DEVICE
                result = comparing.compare(program, new.run(program)) if ran else comparing.kept(program)
                number[result.word] += 1
                if not result.is_right:
                    yield f"{result.word}: {cell} {program.name}: {result.reason}"
    words = ", ".join(f"{count} {word}" for word, count in number.items())
    yield f"programs of the base in the runtime of the head: {words}"
