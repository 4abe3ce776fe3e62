"""What of a quantized graph is no quantization: with its quantizations taken out it is not the float model."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401 - registers quantized_decomposed
from torch.fx import GraphModule, Node

from executorch_goldens.exporting.calls import CallSpec
from executorch_goldens.exporting.data import Data
from executorch_goldens.exporting.numerics.bare import ModelChange, change
from executorch_goldens.exporting.numerics.programs import flatten

ATEN, QUANTIZED = torch.ops.aten, torch.ops.quantized_decomposed
X = Data("bare").tensor("x", 4, 8)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16, eps=0.5)
        self.last = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.norm(self.first(x))))


class Held(nn.Module):
    """A layer whose weight is no parameter, as one that a batch norm was folded into is none of the model's."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", Data("bare").tensor("weight", 16, 8, bits=6, limit=13))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(nn.functional.linear(x, self.weight))


class Branching(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 100.0, lambda x: x * 2.0, lambda x: x * 3.0 + 1.0, (x,))


def graph_of(model: nn.Module) -> GraphModule:
    return torch.export.export(Data("bare").fill(model), (X,), strict=True).module(check_guards=False)  # type: ignore[return-value]


def rounded(module: GraphModule, scale: float, *targets: object) -> GraphModule:
    """Return a copy whose operators of some kinds are rounded to codes, in its branches as well."""
    made = copy.deepcopy(module)
    for inner in [each for each in made.modules() if isinstance(each, GraphModule)]:
        for node in [each for each in inner.graph.nodes if each.target in targets]:
            with inner.graph.inserting_after(node):
                codes = inner.graph.call_function(
                    QUANTIZED.quantize_per_tensor.default, (node, scale, 0, -128, 127, torch.int8)
                )
            with inner.graph.inserting_after(codes):
                number = inner.graph.call_function(
                    QUANTIZED.dequantize_per_tensor.default, (codes, scale, 0, -128, 127, torch.int8)
                )
            node.replace_all_uses_with(number, delete_user_cb=lambda user, codes=codes: user is not codes)
        inner.recompile()
    return made


def folded(module: GraphModule, scale: float) -> GraphModule:
    """Return a copy whose weights are constants of codes."""
    made = copy.deepcopy(module)
    for node in [each for each in made.graph.nodes if each.op == "get_attr" and "weight" in each.target]:
        weight = dict(made.named_parameters()).get(node.target, dict(made.named_buffers()).get(node.target))
        if weight is None or weight.dim() < 2:
            continue
        codes = QUANTIZED.quantize_per_tensor.default(weight.detach(), scale, 0, -8, 7, torch.int8)
        name = f"codes_{node.name}"
        made.register_buffer(name, codes)
        with made.graph.inserting_after(node):
            held = made.graph.get_attr(name)
        with made.graph.inserting_after(held):
            arguments = (held, scale, 0, -8, 7, torch.int8)
            number = made.graph.call_function(QUANTIZED.dequantize_per_tensor.default, arguments)
        node.replace_all_uses_with(number)
    made.recompile()
    return made


def changed(module: GraphModule, edit: Callable[[Node], object]) -> GraphModule:
    """Return a copy with operators edited."""
    made = copy.deepcopy(module)
    for node in made.graph.nodes:
        edit(node)
    made.recompile()
    return made


def other_eps(node: Node) -> None:
    if node.target is ATEN.layer_norm.default:
        node.args = (*node.args[:4], 1e-5)


def other_function(node: Node) -> None:
    if node.target is ATEN.relu.default:
        node.target = ATEN.exp.default


def found(plain: GraphModule, converted: nn.Module) -> ModelChange | None:
    with torch.no_grad():
        return change(plain, converted, CallSpec.from_arguments((X,), {}), [(X,)], flatten(plain(X)), 0)


LINEAR = (ATEN.linear.default, ATEN.relu.default)


@pytest.fixture(scope="module")
def normed() -> GraphModule:
    return graph_of(Normed())


@pytest.mark.parametrize("scale", [1e-3, 0.25, 8.0])
def test_quantizations_however_coarse_are_no_change(normed: GraphModule, scale: float) -> None:
    assert found(normed, rounded(normed, scale, *LINEAR)) is None


@pytest.mark.parametrize("scale", [0.03, 0.2])
def test_the_rounding_of_constants_that_are_codes_is_no_change(normed: GraphModule, scale: float) -> None:
    assert found(normed, folded(rounded(normed, 0.25, *LINEAR), scale)) is None


def test_other_roundings_explain_those_of_weights_that_are_none_of_the_models_and_no_other_operator() -> None:
    plain = graph_of(Held())
    assert found(plain, folded(plain, 0.03)) is None
    made = found(plain, changed(folded(plain, 0.03), other_function))
    assert made.where.startswith("aten.exp.default relu")


def test_an_operator_with_another_setting_is_named_beside_the_models(normed: GraphModule) -> None:
    made = found(normed, changed(rounded(normed, 0.25, *LINEAR), other_eps))
    assert made.where == "aten.layer_norm.default layer_norm of norm"
    operator = "aten.layer_norm.default layer_norm of norm"
    assert f"; {operator} ([16], 1e-05), where the model has {operator} ([16], 0.5, " in made.line
    assert made.line.startswith("without its quantizations output 0 has ")


def test_another_operator_is_named_though_weights_are_codes(normed: GraphModule) -> None:
    made = found(normed, changed(folded(normed, 0.03), other_function))
    assert made.where.startswith("aten.exp.default relu")
    assert "where the model has aten.relu.default relu" in made.line


def test_quantizations_of_a_branch_are_taken_out_and_its_change_is_seen() -> None:
    plain = graph_of(Branching())
    coarse = rounded(plain, 0.5, ATEN.mul.Tensor)
    assert coarse.code == plain.code
    assert found(plain, coarse) is None

    def other_number(module: GraphModule) -> GraphModule:
        made = copy.deepcopy(module)
        for inner in made.modules():
            for node in inner.graph.nodes if isinstance(inner, GraphModule) else ():
                node.args = tuple(30.0 if each == 3.0 else each for each in node.args)
            if isinstance(inner, GraphModule):
                inner.recompile()
        return made

    made = found(plain, other_number(coarse))
    assert made.where.startswith("cond")


def test_a_graph_that_computes_with_codes_in_operators_of_their_own_says_nothing(normed: GraphModule) -> None:
    made = changed(rounded(normed, 0.25, *LINEAR), other_eps)
    assert found(normed, made) is not None
    first = next(node for node in made.graph.nodes if node.target is ATEN.relu.default)
    with made.graph.inserting_before(first):
        made.graph.call_function(QUANTIZED.embedding_byte.default, ())
    assert found(normed, made) is None


def test_what_has_no_quantization_says_nothing(normed: GraphModule) -> None:
    assert found(normed, changed(normed, other_eps)) is None
    assert found(normed, nn.Identity()) is None
