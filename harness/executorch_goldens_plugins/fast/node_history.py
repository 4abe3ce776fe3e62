"""Let copies of a node share its history.

Every pass copies the whole history of every node that it visits (``NodeSource``), which grows with every pass: a
third of the time of an LSTM's export. Nothing in a history is changed after it was made
(``torch/fx/traceback.py``); nor is any of it in a golden.
"""

from __future__ import annotations

from executorch_goldens.patches.guard import by_release
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    torch.fx.traceback:NodeSource  d7684b27ae81a2a9 1.1.0  a1d0eaac6658dadd 1.2.0  0e29c3d55d6345c3 1.3.1 1.4.1 1.5.1
    """
)


def _install(release: str) -> None:
    from torch.fx.traceback import NodeSource

    NodeSource.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]


SHORTCUT = Shortcut("node-history", None, "copies of a node share its history", FITS, _install)
