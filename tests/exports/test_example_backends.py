"""Two backends of ExecuTorch's wheel that the harness does not know, from outside: ``tests/example_backends``."""

from __future__ import annotations

import dataclasses
import importlib
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_goldens.artifact import Lowered
from executorch_goldens.decode import Decoded, DecodeError, Schemas
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.program import Request
from executorch_goldens.exporting.recipe import stages
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.targets import EAGER, Target, TargetError
from tests import REPOSITORY
from tests.support.runner import Runner

EXAMPLE = REPOSITORY / "tests" / "example_backends"
#: As the distribution declares them, for it is not installed: what imports find beside its folder.
POINTS = "example_backends-1.0.dist-info"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with the distribution's metadata, as an editable install leaves it."""
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    groups = declared["entry-points"].items()
    lines = [
        line
        for group, points in groups
        for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
    ]
    folder = tmp_path / "site" / POINTS
    folder.mkdir(parents=True)
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: {declared['version']}\n"
    )
    return folder.parent


@pytest.mark.slow
def test_cells_of_both_backends_are_what_their_goldens_say(
    runner: Runner, site: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLE / "goldens" / release, runner.root)
    runner = dataclasses.replace(runner, directory=EXAMPLE)
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY / 'harness'}:{EXAMPLE}:{site}")
    cells = ("vulkan-fp32/two-delegates", "vulkan-fp32/tail", "cortex-m55/linear-relu")
    run = runner("--variations=1", *(f"--cell={cell}" for cell in cells))
    assert run.verdicts() == dict(zip(cells, ("stable", "corrupt", "stable"), strict=True)), run.output
    # The weight that the serializer takes from the wrong place is a known defect.
    assert run.code == 0, run.output


# What the package has for them


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)) + x


def model(data: Data) -> Example:
    return Example(Model(), (data.tensor("x", 2, 4),))


XNNPACK = "executorch.backends.xnnpack.partition.xnnpack_partitioner:XnnpackPartitioner"
OUTSIDE = Target(name="outside", description="", backend="outside", runs=EAGER, partitioner=XNNPACK)


def lowered_for(target: Target) -> Lowered:
    *_, reached = stages(Request(Case("model", "tests", "nothing", model), Lowering.for_target(target)))
    assert reached.result is not None
    return reached.result


def seven() -> int:
    return 7


def test_a_partitioner_that_is_none_is_named_with_its_function() -> None:
    target = replace(OUTSIDE, partitioner=f"{__name__}:seven")
    with pytest.raises(
        TargetError, match=f"partitioner: {__name__}:seven returns an int, and no Partitioner"
    ):
        Lowering.for_target(target)


def lower(program: torch.export.ExportedProgram) -> EdgeProgramManager:
    return to_edge(program)


def twice(lowered: LoweredBackendModule, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Run a delegate wrongly."""
    from executorch_goldens.exporting.inside import xnnpack

    return [2.0 * output for output in xnnpack.run_delegate(lowered, inputs)]


@pytest.mark.slow
def test_a_delegate_that_nothing_runs_leaves_the_program_unrun() -> None:
    made = lowered_for(OUTSIDE)
    assert made.not_run == "nothing runs delegates of XnnpackBackend: its target names no simulator"
    assert (len(made.delegates), made.samples) == (1, ())


@pytest.mark.slow
def test_a_delegate_is_run_by_the_simulator_of_its_target() -> None:
    simulator = "executorch_goldens.exporting.inside.xnnpack:run_delegate"
    made = lowered_for(dataclasses.replace(OUTSIDE, simulator=simulator))
    assert made.not_run == ""
    assert all(sample.outputs == sample.expected for sample in made.samples)
    wrong = lowered_for(dataclasses.replace(OUTSIDE, simulator=f"{__name__}:twice"))
    assert wrong.samples[0].outputs != wrong.samples[0].expected


def test_a_program_without_delegates_is_lowered_by_the_function_and_run() -> None:
    made = lowered_for(dataclasses.replace(OUTSIDE, partitioner="", lower=f"{__name__}:lower"))
    assert (made.delegates, made.not_run) == ((), "")
    assert "aten.relu.default" in made.graph
    assert all(sample.outputs == sample.expected for sample in made.samples)


# Vulkan's decoder and simulator


@pytest.fixture
def vulkan(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EXAMPLE)
    importlib.import_module("example_backends.vulkan.decoder")
    importlib.import_module("example_backends.vulkan.simulator")
    return importlib.import_module("example_backends.vulkan")


@pytest.fixture(scope="module")
def delegate() -> LoweredBackendModule:
    program = torch.export.export(Model(), (torch.ones(2, 4),))
    lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner()])
    return lowered.exported_program().graph_module.lowered_module_0


def decoded(vulkan: ModuleType, delegate: LoweredBackendModule, payload: bytes | None = None) -> Decoded:
    data = memoryview(delegate.processed_bytes if payload is None else payload)
    made: Decoded = vulkan.decoder.decode(data, Schemas.installed(), dict(compat.named_data(delegate)))
    return made


@pytest.mark.slow
def test_a_vulkan_payload_is_decoded_with_the_constants_of_the_named_data(
    vulkan: ModuleType, delegate: LoweredBackendModule
) -> None:
    (graph,) = decoded(vulkan, delegate).graphs
    assert [operator.type for operator in graph.operators] == [
        "aten.linear.default",
        "aten.relu.default",
        "aten.add.Tensor",
    ]
    assert [len(graph.inputs), len(graph.outputs)] == [1, 1]
    constants = [value.constant.shape for value in graph.values.values() if value.constant is not None]
    assert constants == [(4, 4), (4,)]
    assert decoded(vulkan, delegate).unread == ()


@pytest.mark.parametrize("size", [0, 29, 40])
def test_a_payload_that_was_cut_off_is_refused(
    vulkan: ModuleType, delegate: LoweredBackendModule, size: int
) -> None:
    with pytest.raises(DecodeError):
        decoded(vulkan, delegate, bytes(delegate.processed_bytes[:size]))


def test_bytes_behind_the_constants_are_unread(vulkan: ModuleType, delegate: LoweredBackendModule) -> None:
    (stray,) = decoded(vulkan, delegate, bytes(delegate.processed_bytes) + b"abc").unread
    assert stray.data == b"abc"


def test_a_tensor_that_is_read_after_its_memory_was_given_away_is_refused(
    vulkan: ModuleType, delegate: LoweredBackendModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.arange(8.0).reshape(2, 4)
    (output,) = vulkan.simulator.run(delegate, [x])
    torch.testing.assert_close(output, delegate.original_module.module()(x)[0])
    payload = decoded(vulkan, delegate)
    (graph,) = payload.graphs
    # The input is read last; now all that is computed has its memory.
    values = {
        name: dataclasses.replace(value, attributes={**value.attributes, "mem_obj_id": 0})
        for name, value in graph.values.items()
        if value.constant is None
    }
    graph = dataclasses.replace(graph, values={**graph.values, **values})
    shared = dataclasses.replace(payload, graphs=(graph,))
    monkeypatch.setattr(vulkan.simulator, "decode", lambda *_, **__: shared)
    with pytest.raises(RuntimeError, match="is read after %"):
        vulkan.simulator.run(delegate, [x])
