"""Changed models: what each change leaves as it is, and where it does not fit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from executorch_goldens.comparing import candidates
from executorch_goldens.exporting import changing, rewriting
from executorch_goldens.exporting.changing import CHANGES, NotChangedError, changed
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.messages import ExportRequest
from executorch_goldens.sweep.worker import requested_case
from executorch_goldens.zoo.registry import CASES, Case, ZooError

X = torch.arange(24.0).reshape(2, 3, 4)


class Sliced(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:, 1:3], x[:, :2]], 2).mean(-1, keepdim=True)


class Cut(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1:]


class Clamped(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x + y, 1.0, 20.0)


class Bounded(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.hardtanh(torch.nn.functional.hardtanh(x), -2, 5)


def case_of(module: Callable[[], torch.nn.Module], *inputs: torch.Tensor) -> Case:
    return Case(
        name="small",
        family="small",
        guards="a small model",
        build=lambda data: Example(module(), inputs or (X,)),
    )


def run(case: Case, *changes: str) -> Any:
    """Return the outputs of a changed case, flat."""
    example = changed(case, changes).build(Data(case.name)) if changes else case.build(Data(case.name))
    found = example.module(*example.inputs)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("change", ["from-the-end", "ends", "rotated-back", "unknown", "turned", "deeper"])
def test_some_changes_compute_the_same(change: str) -> None:
    (found,), (expected,) = run(case_of(Sliced), change), run(case_of(Sliced))
    assert torch.equal(found.permute(1, 2, 0) if change == "rotated-back" else found, expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("read-twice-0", lambda x: (x, torch.relu(x))),
        ("read-outside-0", lambda x: (x, torch.fmod(x, 2.0))),
        ("parted-0", lambda x: (torch.fmod(x, 2.0),)),
        ("turned-inside-0", lambda x: (torch.relu(x),)),
        ("flattened-inside-0", lambda x: (torch.relu(x),)),
        ("clamped-inside-0", lambda x: (torch.clamp(x, -0.5, 0.75),)),
    ],
)
def test_a_value_inside_is_read_by_what_is_added(change: str, expected: Callable[..., Any]) -> None:
    (plain,) = run(case_of(Sliced))
    for one, other in zip(run(case_of(Sliced), change), expected(plain), strict=True):
        assert torch.equal(one, other)


def test_an_operator_is_applied_to_its_own_result() -> None:
    (found,) = run(case_of(Clamped, X, -2 * X), "again-1")
    assert torch.equal(found, torch.clamp(X - 2 * X - 2 * X, 1.0, 20.0))
    (found,) = run(case_of(Cut), "again-0")
    assert torch.equal(found, X[:, 2:])


def test_a_rewrite_everywhere_leaves_out_what_it_does_not_fit() -> None:
    _, of_last, of_first = run(case_of(Clamped, X, -2 * X), "read-twice-all")
    assert torch.equal(of_last, torch.ones_like(X))
    assert torch.equal(of_first, torch.relu(-X))
    (found,) = run(case_of(Bounded), "reshaped-inside-all")
    once = torch.softmax(X.clamp(-1, 1).reshape(2, 4, 3), -1)
    assert torch.allclose(found.reshape(2, 4, 3), torch.softmax(once.clamp(-2, 5), -1))
    with pytest.raises(NotChangedError, match="nothing"):
        changed(case_of(Bounded, torch.zeros(3)), ["reshaped-inside-all"]).build(Data("small"))


class Along(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(0, -1).sum(1).cumsum(0)


def test_operators_along_dimensions_work_on_four_of_them() -> None:
    case = changed(case_of(Along), ["as-images"])
    module = case.build(Data("along")).module
    (found,) = run(case_of(Along), "as-images")
    assert torch.equal(found, Along()(X))
    calls = {str(node.target): node.args[1] for node in module.graph.nodes if node.op == "call_function"}
    assert calls["aten.flip.default"] == [1, -1]
    assert calls["aten.sum.dim_IntList"] == [2]
    assert calls["aten.cumsum.default"] == 2
    with pytest.raises(NotChangedError, match="nothing"):
        changed(case_of(Bounded), ["as-images"]).build(Data("bounded"))


def test_numbers_of_one_operator_are_others() -> None:
    (found,) = run(case_of(Clamped, X, -2 * X), "lowered-0")
    assert torch.equal(found, torch.clamp(X - 2 * X, -1.0, 18.0))
    (found,) = run(case_of(Bounded), "raised-1")
    assert torch.equal(found, torch.clamp(X, 2, 4))


class Padded(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(torch.nn.functional.pad(x, (1, 0)), 2, 2)


def test_what_operators_leave_out_is_another_value() -> None:
    (found,) = run(case_of(Padded), "lowered-0")
    padded = torch.nn.functional.pad(X, (1, 0), value=-2.0)
    assert torch.equal(found, torch.nn.functional.avg_pool2d(padded, 2, 2))
    (found,) = run(case_of(Padded), "defaults")
    padded = torch.nn.functional.pad(X, (1, 0))
    assert torch.equal(found, torch.nn.functional.avg_pool2d(padded, 2, 2, 0, True, False))


class Summed(torch.nn.Module):
    """Has calls with keywords: numbers, and a mode."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        quotient = torch.div(x, 5, rounding_mode="floor")
        return torch.addmm(quotient, x, x)


def test_keywords_of_operators_are_others_and_unlike() -> None:
    x = X[0, :3, :3]
    (found,) = run(case_of(Summed, x), "lowered-0")
    assert torch.equal(found, torch.addmm(x // 5, x, x, beta=-1, alpha=-3))
    (found,) = run(case_of(Summed, -x), "flags")
    assert torch.equal(found, torch.addmm(torch.div(-x, 5, rounding_mode="trunc"), x, x))
    (found,) = run(case_of(torch.nn.GELU), "defaults")
    assert torch.equal(found, torch.nn.functional.gelu(X, approximate="tanh"))


def test_an_offset_that_is_left_out_is_another_one() -> None:
    (found,) = run(case_of(Strided), "raised-0")
    assert torch.equal(found, X.reshape(-1)[3:9].reshape(2, 3))


def test_an_operator_comes_before_a_model_or_after_it() -> None:
    (plain,), small = run(case_of(Bounded)), case_of(Bounded)
    assert torch.equal(run(small, "then-tanh")[0], torch.tanh(plain))
    assert torch.equal(run(small, "first-mul")[0], torch.clamp(X * 0.5, -1, 1).clamp(-2, 5))
    once, again = (run(small, "then-linear")[0] for _ in range(2))
    assert torch.equal(once, again)
    assert not torch.equal(once, plain)
    assert run(small, "first-linear")[0].shape == X.shape


class Indexed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[torch.tensor([1, 0])]


def test_indices_are_of_the_next_dimension() -> None:
    (found,) = run(case_of(Indexed), "next-dimension")
    assert torch.equal(found, X[:, [1, 0]])


@pytest.mark.parametrize(("shape", "other"), [((2, 3, 4), [2, 4, 3]), ((4, 5, 4), [4, 4, 5])])
def test_a_value_inside_has_another_shape_of_its_rank(shape: tuple[int, ...], other: list[int]) -> None:
    module = changed(case_of(Bounded, torch.zeros(shape)), ["reshaped-inside-0"]).build(Data("small")).module
    there, back = (
        node.args[1] for node in module.graph.nodes if node.target is torch.ops.aten.reshape.default
    )
    assert (there, back) == (other, list(shape))
    with pytest.raises(NotChangedError, match="no other shape"):
        changed(case_of(Bounded, torch.zeros(3)), ["reshaped-inside-0"]).build(Data("small"))


class Strided(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(x, (2, 3), (3, 1))


def test_inputs_of_whole_numbers_are_integers() -> None:
    (found,) = run(case_of(Cut, X + 0.75), "whole")
    assert found.dtype == torch.int32
    assert torch.equal(found, (X[:, 1:] + 1).int())


def test_operators_lack_the_tensors_that_they_may_do_without() -> None:
    layer = torch.nn.Linear(4, 2)
    (found,) = run(case_of(lambda: layer), "bare")
    assert torch.allclose(found, X @ layer.weight.T)


def test_arguments_of_operators_are_others() -> None:
    x = X.reshape(2, 3, 4)
    (found,) = run(case_of(Sliced), "flags")
    assert torch.equal(found, torch.cat([x[:, 1:3], x[:, :2]], 2).mean(-1))
    (found,) = run(case_of(lambda: torch.nn.Softmax(1)), "next-dimension")
    assert torch.equal(found, torch.softmax(X, 2))
    (found,) = run(case_of(lambda: torch.nn.Softmax(1)), "former-dimension")
    assert torch.equal(found, torch.softmax(X, 0))
    (found,) = run(case_of(Sliced), "many")
    assert torch.equal(found, run(case_of(Sliced))[0])
    (found,) = run(case_of(lambda: torch.nn.AvgPool2d(2, 1)), "longer-steps")
    assert torch.equal(found, torch.nn.functional.avg_pool2d(X, 2, 2))
    (found,) = run(case_of(lambda: torch.nn.AvgPool2d(1, 1)), "uneven")
    assert torch.equal(found, torch.nn.functional.avg_pool2d(X, (1, 2), (1, 2)))


@pytest.mark.parametrize(
    "change", [name for name in CHANGES if name.startswith("read-twice") or name == "ends"]
)
def test_a_change_that_there_is_nothing_for_is_none(change: str) -> None:
    with pytest.raises(NotChangedError):
        run(case_of(torch.nn.Identity), change)


def test_what_has_keywords_is_left_as_it_is() -> None:
    case = Case(
        name="keywords",
        family="small",
        guards="a call with a keyword",
        build=lambda data: Example(torch.nn.Softmax(1), (X,), dynamic_shapes=({0: torch.export.Dim("n")},)),
    )
    assert changed(case, ("as-it-is",)).build(Data("keywords")).dynamic_shapes
    with pytest.raises(NotChangedError, match="left as they are"):
        changed(case, ("rotated",)).build(Data("keywords"))


def test_an_export_that_is_asked_for_a_changed_case_makes_it() -> None:
    request = ExportRequest(
        id=0,
        target="",
        case="steady",
        scratch="",
        log="",
        cwd="",
        settings=Settings(default_interpreter(), ("tests.support.zoo",), (), 1, 60.0),
    )
    rotated = msgspec.structs.replace(request, changes=("rotated",))
    plain, other = map(requested_case, (request, rotated))
    assert (plain.name, other.name) == ("steady", "steady-x-rotated")


def test_a_kept_case_is_for_its_target_alone() -> None:
    here = sys.modules[__name__].__name__
    CASES.add(case_for(here))
    changing.keep(here, here, "kept-softmax", "rotated", target="tosa-int16")
    kept = CASES.within([here])["kept-softmax-x-rotated"]
    assert (kept.backends, kept.also, kept.module) == (("tosa-int16",), ("tosa-int16",), here)
    with pytest.raises(ZooError, match="'no-such' is no change"):
        changing.keep(here, here, "kept-softmax", "no-such", target="tosa-int16")


def case_for(module: str) -> Case:
    def build(data: Data) -> Example:
        return Example(torch.nn.Softmax(1), (X,))

    assert build.__module__ == module
    return Case(name="kept-softmax", family="small", guards="a small model", build=build)


def test_every_rewrite_that_comes_first_is_one() -> None:
    assert set(rewriting.FIRST) <= set(rewriting.REWRITES)
    assert list(CHANGES)[: len(rewriting.FIRST)] == list(rewriting.FIRST)
    assert {change for changes in candidates.ASKED.values() for change in changes} <= set(CHANGES)
