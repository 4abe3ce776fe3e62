"""The last question of an upgrade: do the base's programs still run in the head's runtime, with the same results?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from executorch_goldens.artifact import Cell
from executorch_goldens.results.compared import Column
from executorch_goldens_plugins.field import comparing, freezing
from executorch_goldens_plugins.field.format import DEVICE
from executorch_goldens_plugins.field.running import Runtime

if TYPE_CHECKING:
    from executorch_goldens_plugins.compare.making import Comparison

#: Note for a cell without a program to run.
UNFROZEN = "not frozen"


def ran(comparison: Comparison) -> Column:
    """Run the base's programs in the runtime of the head: of each cell, the worst that became of one of its programs.

    Raises
    ------
    executorch_goldens_plugins.field.running.RunningError
        For a runtime that cannot be used.
    """
    base, head = comparison.sides.base, comparison.sides.head
    cells = [each.cell for each in comparison.found if each.base.is_right]
    if not cells:
        return Column("old program", "programs", {}, ("programs: the base made none",))
    engines = freezing.engines_of(cells)
    words: dict[Cell, str] = {}
    lines, number = [], Counter[str]()
    with Runtime(base.toolchain.python, engines) as old, Runtime(head.toolchain.python, engines) as new:
        reuse = comparison.reuses[0] if comparison.reuses else None
        for cell, exports in freezing.exported(cells, comparison.variations, base.settings, reuse):
            try:
                programs = freezing.programs(cell, exports, old)
            except freezing.RefusedError as error:
                words[cell] = UNFROZEN
                number[UNFROZEN] += 1
                lines.append(f"{UNFROZEN}: {cell}: {error}")
                continue
            for program in programs:
                is_kept = program.engine == DEVICE
                result = comparing.kept(program) if is_kept else comparing.compare(program, new.run(program))
                number[result.word] += 1
                if not result.is_right:
                    lines.append(f"{result.word}: {cell} {program.name}: {result.reason}")
                if not result.is_right or words.get(cell) in (None, comparing.KEPT):
                    words[cell] = result.word
    found = ", ".join(f"{count} {word}" for word, count in number.items())
    lines.append(f"programs of the base in the runtime of the head: {found}")
    right = all(word in comparing.RIGHT or word == UNFROZEN for word in words.values())
    return Column("old program", "programs", words, lines, right)
