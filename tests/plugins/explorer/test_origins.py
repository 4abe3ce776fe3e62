"""The pass that made each operator of a delegate: recorded by real exports, kept beside results, read again."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

import pytest

from executorch_goldens.artifact import EDGE, EXPORTED, QUANTIZED, Artifact, Cell, Lowered, Outcome
from executorch_goldens.diff.side import GraphSide
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.observing import NOBODY
from executorch_goldens.goldens.outline import outline
from executorch_goldens.goldens.rendering import decode_delegates
from executorch_goldens.results import merging
from executorch_goldens.results.rows import OF_PLUGINS
from executorch_goldens.sweep.worker import warm_up
from executorch_goldens.zoo.registry import load
from executorch_goldens_plugins.explorer import origins
from executorch_goldens_plugins.explorer.marks import Marking
from executorch_goldens_plugins.explorer.origins import OriginsError, written
from tests import DATA

RESULTS = DATA / "report_results" / "stock" / "1.2.0"
ZOO = load(("models",))


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """The first export of a process makes shared state: the quantizers' patterns."""
    warm_up(("tosa-int", "xnnpack-int8"))


@functools.cache
def exported(target: str, case: str, marked: bool = True) -> Artifact:
    return export(ZOO[case], target, execute=False, observer=Marking() if marked else NOBODY)


def origins_of(artifact: Artifact) -> dict[str, set[str]]:
    """Return the origins of the operators of an artifact's only delegate, by their type; and constants of XNNPACK's."""
    assert isinstance(artifact.result, Lowered)
    (known,) = artifact.watched.origins
    (payload,) = decode_delegates(artifact.result)
    (graph,) = outline(payload).graphs
    side = GraphSide(graph)
    made = {name: operator.type for at, operator in enumerate(graph.operators) for name in side.outputs(at)}
    found: dict[str, set[str]] = {}
    for name, makers in known:
        found.setdefault(made.pop(name, "constant"), set()).add(written(makers))
    # Every operator has an origin.
    assert not made
    return found


@pytest.mark.slow
def test_a_pass_made_the_operators_of_a_softmax_and_the_edge_dialect_those_of_a_glu() -> None:
    made = origins_of(exported("tosa-fp", "softmax-glu"))
    assert made["REDUCE_MAX"] == made["REDUCE_SUM"] == {"DecomposeSoftmaxPass"}
    assert made["EXP"] == made["SUB"] == {"DecomposeSoftmaxPass → ExirToTosaPass"}
    # A gated linear unit is one operator of the model, and none of the edge dialect.
    assert made["SIGMOID"] == {f"{EDGE} → ExirToTosaPass"}
    assert made["SLICE"] == {"RewriteSlicePass"}


@pytest.mark.slow
def test_what_a_pass_made_before_quantization_is_still_known_in_the_payload() -> None:
    made = origins_of(exported("tosa-int", "softmax-glu"))
    assert made["REDUCE_MAX"] == {"DecomposeSoftmaxPass"}
    assert made["RESCALE"] == {"InsertRescaleInt32Pass"}
    assert made["TABLE"] == {"InsertTableOpsPass"}


def test_what_no_pass_made_is_the_models_or_the_quantizers() -> None:
    made = origins_of(exported("xnnpack-int8", "linear"))
    assert made["XNNFullyConnected"] == {EXPORTED}
    assert made["XNNConvert"] == {QUANTIZED}


def test_a_constant_that_a_pass_made_is_its_own() -> None:
    made = origins_of(exported("xnnpack-fp32", "conv-bn-relu"))
    # On the edge, conv2d is the convolution of any dimension.
    assert made["XNNConv2d"] == {EDGE}
    assert made["constant"] == {"FuseBatchNormPass"}


def test_a_constant_that_a_delegate_only_returns_has_an_origin() -> None:
    assert origins_of(exported("tosa-int", "cat-h-v")) == {"CONST": {"FuseConstantArgsPass"}}


@pytest.mark.parametrize(("target", "case"), [("tosa-fp+cf", "condition"), ("tosa-fp", "two-delegates")])
def test_operators_of_every_delegate_and_every_branch_have_an_origin(target: str, case: str) -> None:
    artifact = exported(target, case)
    assert isinstance(artifact.result, Lowered)
    payloads = decode_delegates(artifact.result)
    assert len(artifact.watched.origins) == len(payloads)
    graphs = 0
    for known, payload in zip(artifact.watched.origins, payloads, strict=True):
        for graph in outline(payload).graphs:
            graphs += 1
            side = GraphSide(graph)
            outputs = {name for at, _ in enumerate(graph.operators) for name in side.outputs(at)}
            assert outputs <= dict(known).keys()
    assert graphs > 1


@pytest.mark.parametrize(("target", "case"), [("tosa-int", "softmax-glu"), ("xnnpack-int8", "linear")])
def test_the_origins_change_no_byte_and_no_pass_and_are_kept_only_when_asked_for(
    target: str, case: str
) -> None:
    plain, watched = exported(target, case, marked=False), exported(target, case)
    assert plain.result == watched.result
    assert plain.watched.passes == watched.watched.passes
    assert plain.watched.origins == ()
    assert watched.watched.origins


def test_damaged_origins_are_one_error_that_names_the_file_and_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / origins.FILE
    assert origins.read(tmp_path) is None
    whole = {"format": 1, "artifacts": [{"variations": ["seed0-heap0"], "delegates": [{"x": [EXPORTED]}]}]}
    for text in (
        "{",
        "[]",
        "{}",
        json.dumps({**whole, "format": 2}),
        json.dumps({"format": 1}),
        json.dumps({"format": 1, "artifacts": [{"variations": ["a"], "delegates": [{"x": 1}]}]}),
        json.dumps({"format": 1, "artifacts": [{"variations": ["a"], "delegates": [{"x": []}]}]}),
        "[" * 100,
    ):
        file.write_text(text)
        with pytest.raises(OriginsError) as caught:
            origins.read(tmp_path)
        assert str(file) in str(caught.value)
        assert "run its cell again with --origins, or delete it" in str(caught.value)
    file.write_text(json.dumps(whole))
    assert origins.read(tmp_path) == origins.Origins(["seed0-heap0"], [{"x": [EXPORTED]}])
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OriginsError, match="is a link"):
        origins.read(tmp_path)


def test_what_a_variation_made_is_read_by_its_name(tmp_path: Path) -> None:
    artifact = exported("tosa-fp", "linear")
    cell = Cell("tosa-fp", "linear")
    outcomes = [Outcome(cell, name, artifact, 1.0, 1.0) for name in ("seed0-heap0", "seed1-heap1")]
    origins.write(tmp_path, outcomes)
    kept = origins.read(tmp_path, "seed1-heap1")
    assert kept is not None
    assert kept == origins.read(tmp_path)
    assert artifact.watched is not None
    assert [dict(each) for each in artifact.watched.origins] == [
        {value: tuple(makers) for value, makers in each.items()} for each in kept.delegates
    ]
    assert origins.read(tmp_path, "seed2-heap0") is None


def test_merged_results_have_the_origins_of_stable_cells(tmp_path: Path) -> None:
    shard = tmp_path / "shard"
    shutil.copytree(RESULTS, shard)
    shutil.copytree(RESULTS / "tosa-int" / "cat-h-v" / OF_PLUGINS, shard / "tosa-fp" / "linear" / OF_PLUGINS)
    merging.merge(merging.find([shard])["1.2.0"], tmp_path / "merged")
    (kept,) = (tmp_path / "merged" / "tosa-fp" / "linear").iterdir()
    assert [path.name for path in kept.iterdir()] == [origins.FILE]
