"""Folders of installed packages with a pass, and a map of cells that reach it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens_plugins.compare.reach import code
from executorch_goldens_plugins.compare.reach import map as maps
from lab.reach import building

FILE = "executorch/backends/arm/_passes/fold.py"
OTHER = "executorch/backends/arm/_passes/other.py"
TORCHAO = "torchao/quantization/pt2e/utils.py"
FOLD = '''\
"""A pass."""
from torchao.quantization.pt2e import utils

LIMITS = {"int8": 127}


class Fold:
    """Folds."""

    def call(self, node):
        if node.rank > 4:
            raise ValueError(node)
        scale = LIMITS["int8"] * node.scale
        if node.users:
            scale = self.half(scale)
        return scale

    def half(self, scale):
        return scale / 2


def unused(node):
    return node
'''
UTILS = '''\
"""Helpers."""


def rounded(value):
    return round(value)
'''
PLAIN, LIKE = Cell("tosa-int", "plain"), Cell("tosa-int", "plain-too")
USERS, INT16 = Cell("tosa-int", "users"), Cell("tosa-int16", "users")
#: Statements of `FOLD` that each cell runs, in the order of their seconds: 1, 2, 3 and 4.
RAN = {
    PLAIN: (11, -11, 13, 14, -14, 16),
    LIKE: (11, -11, 13, 14, -14, 16),
    USERS: (11, -11, 13, 14, 15, 16, 19),
    INT16: (11, -11, 13, 14, 15, 16, 19),
}


def packages(folder: Path, fold: str = FOLD, utils: str = UTILS, file: str = FILE) -> Path:
    """Write a folder of packages, and return it."""
    for name, text in ((file, fold), (TORCHAO, utils)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def known(base: Path, slower: float = 1.0, every: Mapping[Cell, tuple[int, ...]] = RAN) -> maps.ReachMap:
    """Return the map of what cells run, and of the helper, which those with users run.

    The first takes a second, and each one more; each is so many times slower.
    """
    records = [
        building.ReachRecord(
            "models", cell, slower * seconds, "", {FILE: ran, **({TORCHAO: (5,)} if 15 in ran else {})}
        )
        for seconds, (cell, ran) in enumerate(every.items(), 1)
    ]
    return building.build("1.5.1", "a lock", "2026-01-01", records, base)


def function(text: str, name: str) -> code.Function:
    return code.module(text).functions[name]
