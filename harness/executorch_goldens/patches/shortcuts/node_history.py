"""Let copies of a node share its history.

Every pass copies the whole history of every node that it visits (``NodeSource``), which grows with every pass: a
third of the time of an LSTM's export. Nothing in a history is changed after it was made
(``torch/fx/traceback.py``); nor is any of it in a golden.
"""

from __future__ import annotations

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = {
    "torch.fx.traceback:NodeSource": {
        "d7684b27ae81a2a9796ec4ba00cbf5e21753d9c295ba41e4d1a8ea13c1772965": "1.1.0",
        "a1d0eaac6658dadd7d3d57ea2a9a67267d77f500752d7fbe2afde0e863c075e6": "1.2.0",
        "0e29c3d55d6345c34657e0c97227bd3d35cb7d4949a689171a7224ff48d5c74f": "1.3.1 1.4.1 1.5.1",
    },
}


def _install() -> None:
    from torch.fx.traceback import NodeSource

    NodeSource.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]


SHORTCUT = Shortcut(
    "node-history",
    "copies of a node share its history",
    by_release(FITS),
    _install,
)
