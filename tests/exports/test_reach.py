"""Recording what an export runs changes no byte of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from executorch_goldens import patches
from executorch_goldens.artifact import Artifact, Cell, Outcome
from executorch_goldens.reach.edits import PACKAGES
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from lab.shortcuts.command import Pair

#: A small cell of each family of targets; the last fails in each release.
CELLS = (
    *("tosa-fp/permute-sum", "tosa-int/linear", "xnnpack-fp32/upsample", "xnnpack-int8/conv-bn-relu"),
    "xnnpack-fp32/lstm",
)
QUANTIZER = "executorch/backends/arm/quantizer/arm_quantizer.py"


@pytest.fixture(scope="module")
def exported(release: str) -> dict[str, tuple[Outcome, Outcome]]:
    """Each cell exported without recording, and with it."""
    names = patches.select("auto", releases.load().release(release).patches)
    plain = Settings(default_interpreter(), ("models",), names, 1, EXPORT_TIMEOUT, execute=False)
    cells = [Cell(*cell.split("/")) for cell in CELLS]
    sides = []
    for settings in (plain, replace(plain, reach=PACKAGES)):
        with Sweep(cells, variations((0,)), settings) as sweep:
            sides.append([outcome for cell in cells for outcome in sweep.outcomes(cell)])
    return dict(zip(CELLS, zip(*sides, strict=True), strict=True))


@pytest.mark.slow
def test_a_recorded_export_has_the_same_bytes(exported: dict[str, tuple[Outcome, Outcome]]) -> None:
    found = {cell: Pair(Cell(*cell.split("/")), *both).differing for cell, both in exported.items()}
    assert found == dict.fromkeys(CELLS, ())


@pytest.mark.slow
def test_each_export_has_what_it_ran_itself_also_one_that_fails(
    exported: dict[str, tuple[Outcome, Outcome]],
) -> None:
    recorded = {}
    for cell, (plain, reaching) in exported.items():
        assert isinstance(plain.result, Artifact)
        assert isinstance(reaching.result, Artifact)
        assert plain.result.reach == {}
        recorded[cell] = reaching.result.reach
    assert all(recorded.values())
    assert {cell for cell, reach in recorded.items() if QUANTIZER in reach} == {"tosa-int/linear"}
