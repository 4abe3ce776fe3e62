"""Programs of which the runtime lacks a part: what is emitted runs, and the part that is lacking elsewhere."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import torch
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.numerics.walking import nothing_runs
from executorch_goldens.judging.comparison import compare, numerics_of
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import Case
from tests.exports.conftest import exported
from tests.support.making import CELL, lowered_by, objection, outcome
from tests.support.screens import measured, of_verdict

RELEASE = releases.load().release(version("executorch"))

pytestmark = pytest.mark.usefixtures("own_flatc")

GIVEN = torch.linspace(-1.0, 1.0, 16).reshape(2, 8)


class Cache(torch.nn.Module):
    """Adds to a state that starts from ones."""

    def __init__(self, first: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("kept", torch.full((2, 8), first))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.add_(x * 2.0)
        return self.kept + 1.0


class Nonzero(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(x > 0.5)


@pytest.mark.parametrize("target", [pytest.param("tosa-fp", marks=pytest.mark.slow), "xnnpack-fp32"])
def test_a_state_whose_first_value_is_not_in_the_program_is_wrong(
    target: str, snapshot: SnapshotAssertion
) -> None:
    found = objection(exported(Cache(), GIVEN, target=target))
    assert measured(of_verdict(found)) == snapshot


def test_a_state_is_kept_from_step_to_step() -> None:
    artifact = exported(Cache(0.0), GIVEN, target="tosa-fp")
    assert objection(artifact) is None
    assert {"second step", "third step"} <= {sample.name for sample in lowered_by(artifact).samples}


@pytest.mark.parametrize("target", ["tosa-fp", pytest.param("xnnpack-fp32", marks=pytest.mark.slow)])
def test_an_operator_outside_of_delegates_is_run_by_its_own_kernel(target: str) -> None:
    found = objection(exported(Nonzero(), GIVEN, target=target))
    assert found.name == "corrupt"


class Spectrum(torch.nn.Module):
    """Has operators on complex numbers, which the runtime has no kernels for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.istft(torch.polar(x.abs(), x), n_fft=4, hop_length=2, window=torch.ones(4))


class Median(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2.0).median(dim=1).values + 1.0


#: An operator of one's own: the variant that a program calls is a schema alone, for a device has its kernel.
OWN = torch.library.Library("tests_walking", "DEF")
OWN.define("halves(Tensor x) -> (Tensor, Tensor)")
OWN.define("halves.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))")


@torch.library.impl(OWN, "halves", "CompositeExplicitAutograd")
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:, :4].clone(), x[:, 4:].clone()


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, other = torch.ops.tests_walking.halves(x * 2.0)
        return one - other


@pytest.mark.parametrize("target", [pytest.param("tosa-fp", marks=pytest.mark.slow), "xnnpack-fp32"])
def test_an_operator_whose_called_variant_is_a_schema_alone_runs_as_the_other_one(target: str) -> None:
    artifact = exported(Halves(), GIVEN, target=target)
    assert objection(artifact) is None
    made = lowered_by(artifact)
    assert (made.in_eager, bool(made.samples)) == (("tests_walking::halves.out",), True)


def test_what_neither_the_runtime_nor_eager_has_a_kernel_for_is_named() -> None:
    OWN.define("nowhere.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    lacking = ("aten::polar.out", "tests_walking::halves.out", "tests_walking::nowhere.out")
    assert (
        nothing_runs(lacking) == "neither the runtime nor eager has a kernel for tests_walking::nowhere.out"
    )
    assert nothing_runs(lacking[:2]) == ""


@pytest.mark.parametrize(
    ("module", "target", "operators"),
    [
        (Spectrum(), "xnnpack-fp32", ("aten::polar.out",)),
        pytest.param(Median(), "tosa-fp", ("aten::median.dim_values",), marks=pytest.mark.slow),
        (Median(), "xnnpack-fp32", ("aten::median.dim_values",)),
    ],
)
def test_an_operator_without_a_kernel_runs_in_eager_and_is_named(
    module: torch.nn.Module, target: str, operators: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    artifact = exported(module, torch.linspace(0.1, 1.0, 30).reshape(3, 10), target=target)
    assert objection(artifact) is None
    made = lowered_by(artifact)
    assert (made.in_eager, bool(made.samples)) == (operators, True)
    assert numerics_of(artifact).text().endswith(f"; with eager in place of {', '.join(operators)}")
    assert of_verdict(compare(CELL, [outcome(artifact)], None, RELEASE).verdict) == snapshot


def test_where_the_product_has_the_kernels_of_the_wheel_alone_the_program_does_not_run(
    snapshot: SnapshotAssertion,
) -> None:
    def build(data: Data) -> Example:
        return Example(Median(), (GIVEN,), fill=False)

    case = Case("some-case", "tests", "something", build, kernels="selective")
    found = objection(export(case, "xnnpack-fp32"))
    assert of_verdict(found) == snapshot


class Branches(torch.nn.Module):
    """Calls delegates in each branch of a condition, and for each row in a loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def scaled(row: torch.Tensor) -> torch.Tensor:
            return row * 3.0 + 1.0

        chosen = torch.cond(x.sum() > 1.0, scaled, lambda rows: rows - 0.5, (x,))
        return torch._higher_order_ops.map(scaled, chosen) * 2.0


def test_delegates_within_control_flow_run_where_the_program_jumps() -> None:
    artifact = exported(Branches(), GIVEN + 0.1)
    assert objection(artifact) is None
    made = lowered_by(artifact)
    assert len(made.delegates) > 2
    assert len(made.samples) == 4
