"""Recording what an export runs changes no byte of it, and what a lowering imports is found without running it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens import patches
from executorch_goldens.artifact import DIFFERS, Artifact, Cell, Outcome
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, Settings, default_interpreter
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from executorch_goldens_plugins.compare.exporting.instrument import instrument
from executorch_goldens_plugins.compare.reach import map as maps
from executorch_goldens_plugins.compare.reach.code import module_of
from executorch_goldens_plugins.compare.reach.edits import PACKAGES
from executorch_goldens_plugins.compare.reach.unused import imported
from tests import GOLDENS
from tests.support.shortened import Pair

#: A small cell of each family of targets; the last fails in each release.
CELLS = (
    *("tosa-fp/permute-sum", "tosa-int/linear", "xnnpack-fp32/upsample", "xnnpack-int8/conv-bn-relu"),
    "xnnpack-fp32/lstm",
)
#: Cells that are exported with and without probes: two quickly, the others beside them slowly.
TWO = ("tosa-int/linear", "xnnpack-fp32/linear")
TWELVE = (
    *TWO,
    *("tosa-fp/argmax", "tosa-fp/conv2d-depthwise-scaled", "tosa-fp/permute-clone", "tosa-fp/two-delegates"),
    *("tosa-int/cat-of-cats", "tosa-int/elu-family", "xnnpack-fp32/permute-clone", "xnnpack-fp32/relu-clone"),
    *("xnnpack-int8/conv-bn-relu", "xnnpack-int8/linear"),
)
#: Files all of whose functions are probed: helpers, a pass of each program, visitors and annotators.
PROBED = (
    "executorch/backends/arm/_passes/arm_pass_utils.py",
    "executorch/backends/arm/_passes/remove_noop_pass.py",
    "executorch/backends/arm/operators/op_tosa_conv2d.py",
    "executorch/backends/arm/quantizer/quantization_annotator.py",
    "executorch/backends/xnnpack/operators/op_linear.py",
    "executorch/backends/xnnpack/quantizer/xnnpack_quantizer_utils.py",
    "executorch/exir/passes/spec_prop_pass.py",
)
QUANTIZER = "executorch/backends/arm/quantizer/arm_quantizer.py"
#: Imports what lowers and quantizes, and prints which files of the packages that loaded.
LOWERED = """
import sys
import torch
from executorch.backends.arm.quantizer import TOSAQuantizer
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer
from executorch.exir import to_edge_transform_and_lower

for partitioner in (XnnpackPartitioner(), TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))):
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch()
for name, module in [*sys.modules.items()]:
    if name.partition(".")[0] in ("executorch", "torchao") and getattr(module, "__file__", None):
        print(module.__file__)
"""


@pytest.fixture(scope="module")
def exported(release: str) -> dict[str, tuple[Outcome, Outcome]]:
    """Each cell exported without recording, and with it."""
    names = patches.select("auto", releases.load().release(release).patches)
    plain = Settings(default_interpreter(), ("models",), names, 1, EXPORT_TIMEOUT, execute=False)
    cells = [Cell(*cell.split("/")) for cell in CELLS]
    sides = []
    for settings in (plain, replace(plain, instrument=instrument(PACKAGES))):
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


@pytest.mark.parametrize("cells", [TWO, pytest.param(TWELVE, marks=pytest.mark.slow)], ids=len)
def test_an_export_whose_functions_are_compared_has_the_same_bytes(
    cells: Sequence[str], release: str
) -> None:
    # The base is the head: nothing may differ.
    packages = Path(sysconfig.get_path("purelib"))
    probes = {
        file: (str(packages / file), tuple(module_of(packages / file).functions))
        for file in PROBED
        if (packages / file).is_file()
    }
    names = patches.select("auto", releases.load().release(release).patches)
    plain = Settings(
        *(default_interpreter(), ("models",), names, 1, EXPORT_TIMEOUT),
        execute=False,
        instrument=instrument([*probes]),
    )
    named = [Cell.named(cell) for cell in cells]
    made: list[list[Outcome]] = []
    for settings in (plain, replace(plain, instrument=instrument([*probes], probes))):
        with Sweep(named, variations((0,)), settings) as sweep:
            made.append([outcome for cell in named for outcome in sweep.outcomes(cell)])
    for cell, without, probed in zip(named, *made, strict=True):
        assert Pair(cell, without, probed).differing == ()
        assert isinstance(without.result, Artifact)
        assert isinstance(probed.result, Artifact)
        assert probed.result.reach == without.result.reach
        verdicts = {each.function: each.verdict for each in probed.result.probes}
        assert verdicts
        assert DIFFERS not in verdicts.values(), verdicts
        assert without.result.probes == ()


def test_the_files_that_a_lowering_imports_are_those_that_its_files_name(release: str) -> None:
    site_packages = Path(sysconfig.get_path("purelib"))
    known = maps.read(GOLDENS / release / maps.FILE)
    found = imported(site_packages, {known.files[each.file] for each in known.functions if each.situations})
    done = subprocess.run([sys.executable, "-c", LOWERED], capture_output=True, text=True, check=True)
    loaded = {Path(line).relative_to(site_packages).as_posix() for line in done.stdout.splitlines()}
    # The folder of flatc, which resources are asked for by a string.
    assert {name for name in loaded if name.endswith(".py")} - found == {"executorch/data/bin/__init__.py"}
