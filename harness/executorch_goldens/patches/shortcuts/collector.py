"""Let the garbage collector run only after very many objects: a child ends before that.

It takes 4 to 6% of an export, and a seventh of the time of a template's imports. Cycles of graphs and nodes are not
freed: an LSTM's export takes 72 MB more (584 to 656), a small one 7 MB.
"""

from __future__ import annotations

import gc

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Objects, made and not freed again, that the collector waits for: some hundreds of MB, more than an export of the zoo
#: leaves, and a bound for a model that leaves far more.
COLLECTED_AFTER = 1_000_000


def _install() -> None:
    gc.set_threshold(COLLECTED_AFTER, 10, 10)


SHORTCUT = Shortcut(
    "collector",
    "the garbage collector waits for very many objects",
    by_release({}),
    _install,
    unguarded="gc is Python's own, and when it collects is no part of what a release promises",
)
