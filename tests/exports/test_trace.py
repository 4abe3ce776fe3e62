"""An export under watch: passes that ran, changed the graph, and the serializer of each operator."""

from __future__ import annotations

import hashlib

import pytest
import torch
from executorch.backends.arm._passes.arm_pass import ArmPass
from executorch.exir import to_edge
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch_goldens.artifact import PARTITIONING, STAGE, Lowered, PassRun, Watched
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.trace import OUTSIDE, Fingerprints, Watch
from executorch_goldens.judging.divergence import divergence
from executorch_goldens.zoo.registry import load
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens.zoo.variations import Omission

ZOO = load(("models",))


class AddOne(PassBase):
    """Changes the graph if `does`; reports a change in any case."""

    def __init__(self, does: bool) -> None:
        self.does = does

    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        if self.does:
            *_, output = graph_module.graph.nodes
            with graph_module.graph.inserting_before(output):
                graph_module.graph.call_function(torch.add, (output.args[0], 1))
        return PassResult(graph_module, True)


def traced() -> torch.fx.GraphModule:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.add(torch.relu(x), 2)

    return torch.fx.symbolic_trace(Model())


def test_a_pass_that_only_says_so_has_not_changed_the_graph() -> None:
    module = traced()
    with Watch() as watch:
        AddOne(does=False)(module)
        AddOne(does=True)(module)
    assert [(run.pipeline, run.name, run.changed) for run in watch.passes] == [
        (OUTSIDE, "AddOne", False),
        (OUTSIDE, "AddOne", True),
    ]


@pytest.mark.parametrize(
    ("target", "operator", "reason"),
    [
        ("tosa-int", "aten.add.Tensor", "Node was not marked as quantized in the Arm backend."),
        ("xnnpack-fp32", "aten.add.Tensor", "invalid dtype"),
    ],
)
def test_what_a_partitioner_leaves_outside_is_noted_with_its_reason(
    target: str, operator: str, reason: str
) -> None:
    watched = export(ZOO["call-counter"], target).watched
    assert (operator, reason) in watched.refusals


def test_the_run_of_a_pass_that_is_left_out_hands_the_graph_on() -> None:
    module = traced()
    nodes = len(module.graph.nodes)
    with Watch(omission=Omission(2)) as watch:
        for _ in range(3):
            AddOne(does=True)(module)
    assert [run.start for run in watch.passes] == [1, 3]
    assert len(module.graph.nodes) == nodes + 2


def test_a_class_that_calls_the_method_of_its_base_is_one_run() -> None:
    class Twice(AddOne):
        def __call__(self, graph_module: torch.fx.GraphModule) -> PassResult | None:
            return super().__call__(graph_module)

    with Watch() as watch:
        Twice(does=True)(traced())
        AddOne(does=True)(traced())
    assert [(run.name, run.start) for run in watch.passes] == [("Twice", 1), ("Twice", 1), ("AddOne", 2)]


def test_after_the_watch_everything_is_as_before() -> None:
    compat.load_backends(TARGETS["xnnpack-fp32"])
    owners = [PassBase, ArmPass, *compat.visitor_classes()["xnnpack"].values()]
    assert len(owners) > 2
    before = [dict(vars(owner)) for owner in owners]
    with pytest.raises(RuntimeError, match="inside"), Watch():
        raise RuntimeError("inside")
    assert [dict(vars(owner)) for owner in owners] == before


def test_what_torch_calls_a_symbolic_size_is_not_told() -> None:
    def with_symbolic_sizes(skipped: int) -> torch.fx.GraphModule:
        sizes = ShapeEnv()
        symbols = [sizes.create_unbacked_symint() for _ in range(skipped + 2)][skipped:]
        module = traced()
        with FakeTensorMode(shape_env=sizes):
            for node, size in zip(module.graph.nodes, symbols, strict=False):
                node.meta["val"] = torch.empty(2, size)
        return module

    one, other = with_symbolic_sizes(0), with_symbolic_sizes(3)
    assert fingerprint(one) == fingerprint(other) != fingerprint(traced())
    first, second, *_ = other.graph.nodes
    second.meta["val"] = first.meta["val"]
    assert fingerprint(one) != fingerprint(other)


def fingerprint(module: torch.fx.GraphModule) -> str:
    return Fingerprints().digest(module)


def test_a_fingerprint_does_not_see_names() -> None:
    one, other = traced(), traced()
    for node in other.graph.nodes:
        node.name = f"{node.name}_renamed"
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda node: node.update_arg(1, 3),
        lambda node: setattr(node, "target", torch.sub),
        lambda node: node.update_arg(0, node.args[0].args[0]),
        lambda node: node.meta.update(delegation_tag="tag0"),
        lambda node: node.meta.update(input_qparams={0: "scale=0.5"}),
    ],
    ids=["argument", "operator", "edge", "tag", "quantization"],
)
def test_a_fingerprint_sees_all_that_later_passes_act_on(change: object) -> None:
    module = traced()
    fingerprints = Fingerprints()
    before = fingerprints.digest(module)
    assert fingerprints.digest(module) == before
    add = next(node for node in module.graph.nodes if node.target is torch.add)
    change(add)  # type: ignore[operator]
    assert fingerprints.digest(module) == fingerprint(module) != before


@pytest.mark.parametrize(
    "change",
    ["moved to another node", "written in place", "written in an item", "a list's item replaced"],
)
def test_a_fingerprint_sees_what_changes_where_no_argument_is_replaced(change: str) -> None:
    module = traced()
    first, second, *_ = (node for node in module.graph.nodes if node.op == "call_function")
    first.meta["input_qparams"] = {0: "scale=0.5", 1: ("scales", [0.5, 0.5])}
    first.meta["val"] = [torch.ones(2)]
    fingerprints = Fingerprints()
    before = fingerprints.digest(module)
    if change == "moved to another node":
        second.meta["input_qparams"] = first.meta.pop("input_qparams")
    elif change == "written in place":
        first.meta["input_qparams"][0] = "scale=0.25"
    elif change == "written in an item":
        first.meta["input_qparams"][1][1][0] = 0.25
    else:
        first.meta["val"][0] = torch.ones(3)
    assert fingerprints.digest(module) == fingerprint(module) != before


def runs(target: str) -> tuple[tuple[PassRun, ...], tuple[str, ...]]:
    artifact = export(ZOO["conv-bn-relu"], target)
    return artifact.watched.passes, artifact.watched.visitors


def test_a_tosa_export_records_its_passes_by_pipeline_and_its_visitors() -> None:
    passes, visitors = runs("tosa-int")
    assert {run.pipeline for run in passes} >= {"arm annotation", "arm backend", OUTSIDE}
    changing = {run.name for run in passes if run.pipeline == "arm backend" and run.changed}
    assert {"FoldAndAnnotateQParamsPass", "RewriteConvPass"} <= changing
    entered = {run.name for run in passes if run.pipeline == "arm backend"}
    assert "DecomposeSoftmaxPass" in entered - changing
    assert "tosa tosa.CONV2D.default" in visitors
    assert not [name for name in visitors if name.startswith("xnnpack")]


def test_the_tags_of_a_partitioner_are_put_in_the_order_that_is_asked_for() -> None:
    def tags(omission: Omission | None) -> tuple[int, str]:
        artifact = export(ZOO["two-delegates"], "tosa-fp", omission=omission)
        assert artifact.watched is not None
        assert isinstance(artifact.result, Lowered)
        (run,) = (run for run in artifact.watched.passes if run.pipeline == PARTITIONING)
        return run.start, run.fingerprint

    start, order = tags(None)
    other = tuple(reversed(order.split()))
    assert len(other) == 2
    assert tags(Omission(start, other)) == (start, " ".join(other))


def test_an_xnnpack_export_records_its_passes_and_visitors() -> None:
    passes, visitors = runs("xnnpack-fp32")
    changing = [run.name for run in passes if run.pipeline == "xnnpack" and run.changed]
    assert "FuseBatchNormPass" in changing
    assert "xnnpack aten.convolution.default" in visitors


def test_a_visitor_that_inherits_its_method_is_recorded_as_well() -> None:
    artifact = export(ZOO["equal-buffers"], "tosa-fp")
    assert artifact.watched is not None
    assert {name.partition(".")[2].partition(".")[0].upper() for name in artifact.watched.visitors} >= {"ADD"}


@pytest.mark.parametrize("write", ["in place", "another tensor"])
def test_a_fingerprint_sees_the_values_of_constants(write: str) -> None:
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
    fingerprints = Fingerprints()
    before = fingerprints.digest(program.graph_module, program)
    assert fingerprints.digest(program.graph_module, program) == before
    weight = program.state_dict["weight"]
    if write == "in place":
        with torch.no_grad():
            weight[0, 0] += 1
    else:
        program.state_dict["weight"] = torch.nn.Parameter(weight + 1)
    assert fingerprints.digest(program.graph_module, program) != before


def test_a_fingerprint_takes_a_constant_of_one_element_with_any_stride() -> None:
    column = torch.ones(2, 5)[:1, 0]
    assert column.stride() == (5,)

    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    scaled = Scaled()
    scaled.factor = column
    program = torch.export.export(scaled, (torch.ones(3),))
    (held,) = program.constants.values()
    assert held.stride() == (5,)
    assert Fingerprints().digest(program.graph_module, program)


def test_the_stages_are_recorded_from_export_to_program() -> None:
    artifact = export(ZOO["two-delegates"], "tosa-int")
    assert artifact.watched is not None
    stages = [run.name for run in artifact.watched.passes if run.pipeline == STAGE]
    assert stages == ["exported", "quantized", "edge", "delegate_0", "delegate_1", "lowered", "pte"]


def test_programs_that_differ_in_their_memory_plan_diverge_there(own_flatc: None) -> None:
    def watched(capture: int = 0) -> Watched:
        program = torch.export.export(torch.nn.Sequential(*[torch.nn.Tanh()] * 4), (torch.zeros(64),))
        with Watch(capture) as watch:
            watch.stage("pte", bytes(to_edge(program).to_executorch().buffer))
        return watch.result()

    reusing = watched()
    with compat.without_reuse():
        found = divergence(reusing.passes, watched().passes)
    assert found.name == "MemoryPlanningPass"
    lines = watched(found.number).kept.splitlines()
    assert lines[0] == "%0 input: 256 bytes at 1:0"
    assert lines[-1].startswith("arenas [0, ")


def test_the_text_behind_one_fingerprint_is_kept_when_asked_for() -> None:
    passes = export(ZOO["linear"], "tosa-fp").watched.passes  # type: ignore[union-attr]
    number = next(n for n, run in enumerate(passes, 1) if run.pipeline == "arm backend" and run.changed)
    kept = export(ZOO["linear"], "tosa-fp", capture=number).watched.kept  # type: ignore[union-attr]
    assert hashlib.sha256(kept.encode()).hexdigest().startswith(passes[number - 1].fingerprint)
