"""Changed models: what each change leaves as it is, and where it does not fit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from executorch_goldens.exporting.data import Data, Example, example_of
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.messages import ExportRequest
from executorch_goldens.sweep.worker import requested_case
from executorch_goldens.zoo.registry import CASES, Case, ZooError
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import CHANGING
from executorch_goldens_plugins.compare.exporting import args, changing, one_call, rewriting
from executorch_goldens_plugins.compare.exporting.changing import CHANGES, NotChangedError, changed

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


@pytest.mark.parametrize("change", ["rotated-back", "unknown", "turned"])
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


@pytest.mark.parametrize(("shape", "other"), [((2, 3, 4), [2, 4, 3]), ((4, 5, 4), [4, 4, 5])])
def test_a_value_inside_has_another_shape_of_its_rank(shape: tuple[int, ...], other: list[int]) -> None:
    module = changed(case_of(Bounded, torch.zeros(shape)), ["reshaped-inside-0"]).build(Data("small")).module
    there, back = (
        node.args[1] for node in module.graph.nodes if node.target is torch.ops.aten.reshape.default
    )
    assert (there, back) == (other, list(shape))
    with pytest.raises(NotChangedError, match="no other shape"):
        changed(case_of(Bounded, torch.zeros(3)), ["reshaped-inside-0"]).build(Data("small"))


@pytest.mark.parametrize("change", [name for name in CHANGES if name.startswith("read-twice")])
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
        settings=Settings(default_interpreter(), ("tests.support.zoo",), (), 1, 60.0, changing=CHANGING),
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


def test_weights_and_inputs_get_full_mantissas_and_stay_near_what_they_were() -> None:
    case = Case(
        "conv",
        "small",
        "a convolution",
        lambda data: Example(torch.nn.Conv2d(2, 3, 2), (X.reshape(1, 2, 3, 4),)),
    )
    plain, full = example_of(case), changed(case, ("mantissas",)).build(Data("conv"))
    assert not full.fill
    both = [(*each.module.state_dict().values(), *each.inputs) for each in (plain, full)]
    for was, now in zip(*both, strict=True):
        assert torch.allclose(was, now, rtol=1 / 16, atol=0)
        assert ((now * 2**12) % 1).any()


def test_a_model_of_one_call_takes_facts_of_others() -> None:
    one, other = (calls.read()[name] for name in ("relu-0000", "relu-0001"))
    change = calls.borrowing("users", other.name)
    made = changed(args.case(one), (change,)).build(Data(one.name)).module
    assert (made.users, made.after) == (other.users, one_call.AFTER[one.after])
