"""The pytest process of `lab.bench.exports`, one per seed: it exports each cell as a plain test would."""

from __future__ import annotations

import pytest

from executorch_goldens import patches
from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.exporting.entry import export
from executorch_goldens.settings import releases
from executorch_goldens.sweep.worker import set_kernels
from executorch_goldens.zoo.registry import load
from lab.bench.exports import drawn


@pytest.fixture(scope="session", autouse=True)
def installed() -> tuple[str, ...]:
    set_kernels(1, False)
    release = installed_release()
    names = patches.select("auto", releases.load().release(release).patches)
    patches.apply(names, release)
    return names


@pytest.mark.parametrize("cell", drawn(), ids=str)
def test_export(cell: Cell, installed: tuple[str, ...]) -> None:
    assert export(load(("models",))[cell.case], cell.target, installed).result
