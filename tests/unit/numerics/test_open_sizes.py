"""The sizes that payloads with symbolic dimensions leave open."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from executorch_goldens.decode import Graph, Operator, Value
from executorch_goldens.decode.constant import Constant
from executorch_goldens.decode.tosa import DTYPES
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.numerics import open_sizes
from executorch_goldens.numerics.open_sizes import OPEN, SHAPE, OpenSizeError, sizes_of
from executorch_goldens.structure.outline import OutlineGraph, OutlineValue, outline
from tests import DATA, GOLDENS

#: A convolution with symbolic height and width, whose padding follows the sizes; see the README beside it.
PAYLOAD = DATA / "decode" / "1.5.1" / "tosa-shape-0.tosa"


@pytest.fixture
def payload() -> bytes:
    return PAYLOAD.read_bytes()


#: Operators that no golden of 1.4.1 has.
NOT_IN_THE_ZOO = {
    *("AVG_POOL2D_ADAPTIVE", "MAX_POOL2D_ADAPTIVE"),
    *("CLZ", "LOGICAL_RIGHT_SHIFT", "REDUCE_ALL", "REDUCE_PRODUCT"),
}


def image(height: int, width: int) -> np.ndarray[Any, Any]:
    return np.arange(3 * height * width, dtype=np.float32).reshape(1, 3, height, width) % 8


def listed(*sizes: int) -> Value:
    """Return a constant list of sizes."""
    data = np.array(sizes, np.int64).tobytes()
    return Value("", SHAPE, (len(sizes),), {}, Constant(SHAPE, (len(sizes),), data, DTYPES[SHAPE]))


def made(
    kind: str, attributes: Mapping[str, Any], *given: torch.Size | tuple[int, ...] | Value, rank: int
) -> tuple[int, ...]:
    """Return the shape that an operator's result of `rank` open dimensions gets."""
    names = tuple(f"input{number}" for number in range(len(given)))
    values = {
        name: each if isinstance(each, Value) else Value(name, "FP32", (OPEN,) * len(each))
        for name, each in zip(names, given, strict=True)
    }
    shapes = [tuple(each) for each in given if not isinstance(each, Value)]
    inputs = tuple(name for name, each in zip(names, given, strict=True) if not isinstance(each, Value))
    values["made"] = Value("made", "FP32", (OPEN,) * rank)
    graph = Graph("g", inputs, ("made",), values, (Operator(kind, names, ("made",), attributes),), {})
    return sizes_of(graph, shapes)["made"]


def channels_last(x: torch.Tensor) -> tuple[int, ...]:
    return (x.shape[0], *x.shape[2:], x.shape[1])


X = torch.empty(2, 3, 8, 11, device="meta")
WINDOW = {"stride": (2, 3), "pad": (1, 1, 1, 1)}


def test_a_convolution_has_as_many_windows_as_torch_s() -> None:
    weight = torch.empty(5, 3, 2, 4, device="meta")
    expected = functional.conv2d(X, weight, stride=(2, 3), padding=1, dilation=(2, 1))
    attributes = {**WINDOW, "dilation": (2, 1)}
    assert made("CONV2D", attributes, channels_last(X), channels_last(weight), rank=4) == channels_last(
        expected
    )


def test_a_depthwise_convolution_has_channels_times_multiplier_channels() -> None:
    weight = torch.empty(6, 1, 2, 4, device="meta")
    expected = functional.conv2d(X, weight, stride=(2, 3), padding=1, groups=3)
    attributes = {**WINDOW, "dilation": (1, 1)}
    assert made("DEPTHWISE_CONV2D", attributes, channels_last(X), (2, 4, 3, 2), rank=4) == channels_last(
        expected
    )


def test_a_transposed_convolution_is_as_large_as_torch_s() -> None:
    weight = torch.empty(3, 5, 2, 4, device="meta")
    expected = functional.conv_transpose2d(X, weight, stride=(2, 3), padding=1)
    attributes = {"stride": (2, 3), "out_pad": (-1, -1, -1, -1)}
    assert made("TRANSPOSE_CONV2D", attributes, channels_last(X), (5, 2, 4, 3), rank=4) == channels_last(
        expected
    )


def test_pools_have_as_many_windows_as_torch_s() -> None:
    expected = channels_last(functional.avg_pool2d(X, (2, 4), (2, 3), (1, 1)))
    given = channels_last(X)
    assert made("MAX_POOL2D", {**WINDOW, "kernel": (2, 4)}, given, rank=4) == expected
    adaptive = (listed(2, 4), listed(2, 3), listed(1, 1, 1, 1))
    assert made("MAX_POOL2D_ADAPTIVE", {}, given, *adaptive, rank=4) == expected
    assert made("AVG_POOL2D_ADAPTIVE", {}, given, listed(0), listed(0), *adaptive, rank=4) == expected


def test_what_moves_and_joins_has_the_shape_of_torch_s() -> None:
    shape = tuple(X.shape)
    assert made("TRANSPOSE", {"perms": (2, 0, 3, 1)}, shape, rank=4) == X.permute(2, 0, 3, 1).shape
    assert made("CONCAT", {"axis": 1}, shape, shape, rank=4) == torch.cat([X, X], 1).shape
    assert made("PAD", {}, shape, listed(0, 0, 1, 2, 0, 0, 3, 0), rank=4) == (2, 6, 8, 14)
    assert made("TILE", {}, shape, listed(1, 2, 1, 3), rank=4) == X.tile(1, 2, 1, 3).shape
    assert made("SLICE", {}, shape, listed(0, 0, 1, 0), listed(2, 3, 4, 11), rank=4) == (2, 3, 4, 11)
    assert made("RESHAPE", {}, shape, listed(6, 88), rank=2) == (6, 88)
    assert made("REDUCE_SUM", {"axis": 2}, shape, rank=4) == X.sum(2, keepdim=True).shape
    assert made("ARGMAX", {"axis": 2}, shape, rank=3) == X.sum(2).shape
    assert made("GATHER", {}, (2, 9, 4), (2, 5), rank=3) == (2, 5, 4)
    assert made("MATMUL", {}, (2, 3, 4), (2, 4, 5), rank=3) == (2, 3, 5)


def test_operands_are_broadcast() -> None:
    assert made("ADD", {}, (1, 4), (6, 1), rank=2) == (6, 4)
    # The shift of a product is not broadcast.
    assert made("MUL", {}, (6, 4), (1, 4), (1,), rank=2) == (6, 4)
    assert made("SELECT", {}, (1, 1), (1, 4), (6, 1), rank=2) == (6, 4)


def test_a_resize_has_the_size_that_its_scale_gives() -> None:
    # From 4 to 8 pixels and from 5 to 3: TOSA 1.1, RESIZE.
    given = (listed(4, 2, 2, 4), listed(-1, 0), listed(1, 1))
    assert made("RESIZE", {}, (1, 4, 5, 2), *given, rank=4) == (1, 8, 3, 2)


def test_a_rule_without_what_it_needs_names_the_tensor_and_the_operator() -> None:
    with pytest.raises(OpenSizeError, match="the sizes of made do not follow from the inputs of its MATMUL"):
        made("MATMUL", {}, (2, 3), (3, 2), rank=3)
    with pytest.raises(OpenSizeError, match="the sizes of made do not follow from the inputs of its ABS"):
        made("ABS", {}, (2, 3), rank=3)


@pytest.mark.parametrize(("height", "width"), [(8, 9), (4, 4), (16, 12), (5, 12)])
def test_a_payload_runs_at_every_size_that_it_is_given(payload: bytes, height: int, width: int) -> None:
    (output,) = numerics.run_model(payload, [image(height, width)])
    assert output.shape == (1, 2, (height + 1) // 2, (width + 1) // 2)


#: Sizes that the fixture is given: the least and the largest, odd ones, one of each.
GIVEN = [(4, 4), (16, 12), (5, 7), (7, 12), (16, 5), (9, 9)]


def inferred(folder: Path, payload: bytes, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shapes that tosa-tools' own ``infer_shapes`` gives the tensors of a payload of one input."""
    tool = Path(str(metadata.distribution("tosa-tools").locate_file("bin/infer_shapes")))
    (folder / "model.tosa").write_bytes(payload)
    (name,) = open_sizes._decoded(payload).graphs[0].inputs
    job = {"tosa_file": str(folder / "model.tosa"), "shapes": {name: list(shape)}}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    subprocess.run([tool, "job.json"], cwd=folder, check=True, capture_output=True)
    return shapes_in((folder / "resolved_model.tosa").read_bytes())


def shapes_in(payload: bytes) -> dict[str, tuple[int, ...]]:
    (graph,) = open_sizes._decoded(payload).graphs
    return {name: value.shape or () for name, value in graph.values.items() if value.dtype != SHAPE}


@pytest.mark.parametrize(("height", "width"), GIVEN)
def test_the_sizes_are_those_that_tosa_tools_infers(
    payload: bytes, tmp_path: Path, height: int, width: int
) -> None:
    shape = (1, 3, height, width)
    oracle = inferred(tmp_path, payload, shape)
    ours = shapes_in(open_sizes.with_sizes(payload, [shape]))
    assert {name: ours[name] for name in oracle if name in ours} == oracle
    assert not any(OPEN in sizes for sizes in ours.values())


def test_only_open_sizes_are_written(payload: bytes) -> None:
    written = open_sizes.with_sizes(payload, [(1, 3, 8, 9)])
    before, after = (np.frombuffer(each, np.int32) for each in (payload, written))
    changed = before != after
    assert changed.any()
    assert set(before[changed]) == {OPEN}
    assert not open_sizes.leaves_open(written)
    assert open_sizes.with_sizes(written, [(1, 3, 8, 9)]) is written


def test_sizes_that_contradict_what_the_payload_states_are_refused(payload: bytes) -> None:
    with pytest.raises(
        RuntimeError, match=r"\[1, 3, -1, -1\] where .* gives|is \[.*3\] where its \w+ gives \[.*4\]"
    ):
        numerics.run_model(payload, [image(8, 9).repeat(4, axis=1)[:, :4]])


def test_the_rules_give_the_sizes_that_goldens_state() -> None:
    """Of every operator of the zoo in TOSA, where the sizes are numbers."""
    checked = set()
    # The one argmax of 1.4.1 is a known defect.
    argmax = (GOLDENS / "1.5.1").glob("tosa-fp/argmax/delegate_*.tosa.txt")
    for path in sorted((*(GOLDENS / "1.4.1").glob("tosa-*/*/delegate_*.tosa.txt"), *argmax)):
        graphs = outline(path.read_text(encoding="utf-8")).graphs
        # Control flow has several.
        if len(graphs) == 1:
            graph = graph_of(graphs[0])
            sizes_of(graph, [graph.values[name].shape or () for name in graph.inputs])
            checked |= {operator.type for operator in graph.operators} & open_sizes.RULES.keys()
    computing = {kind for kind in open_sizes.RULES if kind.endswith("_SHAPE")} | {"DIM"}
    assert open_sizes.RULES.keys() - checked - computing == NOT_IN_THE_ZOO


def graph_of(outlined: OutlineGraph) -> Graph:
    """Return the names and sizes in the text of a graph."""
    values = {name: value_of(value) for name, value in outlined.values.items()}
    operators = tuple(
        Operator(
            operator.type,
            tuple(name for _, name in operator.inputs),
            tuple(name for _, name in operator.outputs),
            {name: number_or_numbers(text) for name, text in operator.attributes.items()},
        )
        for operator in outlined.operators
    )
    return Graph(outlined.name, outlined.inputs, outlined.outputs, values, operators, {})


def value_of(outlined: OutlineValue) -> Value:
    dtype, _, sizes = outlined.type.partition("[")
    # An empty list has no values in the text.
    if dtype == SHAPE and outlined.contents is not None and "values" in outlined.contents.facts:
        return listed(*numbers(outlined.contents.facts["values"]))
    return Value(outlined.name, dtype, numbers(sizes))


def number_or_numbers(text: str) -> object:
    found = numbers(text)
    return found[0] if found and "[" not in text else found


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"-?\d+", text)))


def test_an_operator_without_a_rule_is_named(payload: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_sizes.lacking(payload) == ""
    without = {kind: rule for kind, rule in open_sizes.RULES.items() if kind not in ("PAD", "CONV2D")}
    monkeypatch.setattr(open_sizes, "RULES", without)
    assert open_sizes.lacking(payload) == "no rule gives the sizes that CONV2D, PAD leaves open"
    with pytest.raises(RuntimeError, match="CONV2D, PAD"):
        numerics.run_model(payload, [image(8, 9)])


def test_a_payload_of_a_version_without_open_sizes_is_not_run(
    payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_sizes, "FIRST", (1, 2))
    assert "takes no dimension" in open_sizes.lacking(payload)
