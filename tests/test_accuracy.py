"""How near programs are to eager, how near they had to be, and the table of it."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from executorch_goldens.artifact import Artifact, Cell, Lowered, Outcome, Sample, Tensor
from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.exporting.export import export
from executorch_goldens.exporting.observers import GridObserver
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.accuracy import Accuracy, is_worse, nearnesses, same, sqnrs
from executorch_goldens.judging.verdict import Verdict, objection
from executorch_goldens.registry import Case, Registry, ZooError, load
from executorch_goldens.results.rows import FILE
from executorch_goldens.targets import TARGETS, TargetError
from lab.__main__ import main
from lab.tolerances.command import PARTS, table
from tests.conftest import Artifacts, Runner

pytestmark = pytest.mark.usefixtures("own_flatc")


def program(actual: list[float], spread: list[float] | None = None) -> Lowered:
    """A program that should give 4 and 2, on the example alone."""
    values = (Tensor.of(np.float32([4.0, 2.0])),)
    spreads = (Tensor.of(np.float32(spread)),) if spread else ()
    sample = Sample("example", values, (Tensor.of(np.float32(actual)),), spreads)
    return Lowered("", (), b"", (sample,), 0.0, ())


def test_the_worst_element_counts_for_its_own_tolerance_and_not_for_the_widest() -> None:
    found = Accuracy.of(program([4.2, 2.1], [0.5, 0.1]))
    assert found.error == pytest.approx(0.05)
    assert found.tolerance == pytest.approx(1.5 / 4.0)
    # Three times the root mean square of the spreads is 1.08, and so is the second element's tolerance.
    assert found.used == pytest.approx(0.2 / 1.5, rel=1e-5)
    near = program([4.0, 2.1], [0.5, 0.1])
    assert Accuracy.of(near).used == pytest.approx(0.1 / (3.0 * math.sqrt((0.25 + 0.01) / 2)), rel=1e-5)


def test_what_is_exact_takes_nothing_and_what_may_not_move_takes_all() -> None:
    exact = program([4.0, 2.0], [0.0, 0.0])
    assert Accuracy.of(exact) == Accuracy(0.0, 0.0, 0.0)
    assert Accuracy.of(replace(program([4.0, 2.5], [0.0, 0.0]))).used == math.inf


# Against the float model

SIGNAL = np.float32([3.0, -4.0, 0.0, 5.0])


def quantized(*samples: tuple[object, object]) -> Lowered:
    """A program of one output that should give the first of each pair by the float model, and gives the second."""
    found = []
    for number, (floats, outputs) in enumerate(samples):
        wanted, given = (Tensor.of(np.asarray(values)) for values in (floats, outputs))
        found.append(Sample(f"sample{number}", (given,), (given,), (), (wanted,)))
    return Lowered("", (), b"", tuple(found), 0.0, ())


@pytest.mark.parametrize(
    ("floats", "outputs", "text"),
    [
        # A hundredth of the power of 50.
        (SIGNAL, SIGNAL + np.float32([0.5, -0.5, 0.0, 0.0]), "sqnr 20.0 dB, cosine 0.99778"),
        (SIGNAL, -SIGNAL, "sqnr -6.0 dB, cosine -1.00000"),
        (SIGNAL, 0 * SIGNAL, "sqnr 0.0 dB, cosine 0.00000"),
        (SIGNAL, SIGNAL, "exact"),
        (SIGNAL.astype(np.float64), SIGNAL * (1 + 1e-7), "sqnr over 100 dB, cosine 1.00000"),
        (SIGNAL * np.float32(6e37), -SIGNAL * np.float32(6e37), "sqnr -6.0 dB, cosine -1.00000"),
        (np.float32([2.0, 2.0]), np.float32([2.2, 2.2]), "sqnr 20.0 dB, cosine 1.00000"),
        (0 * SIGNAL, 0 * SIGNAL, "exact"),
        (0 * SIGNAL, np.float32([0.0, 0.25, 0.0, -0.5]), "no signal, off by 5.00e-01"),
        (np.int64([1, 2, 3, 4]), np.int64([1, 2, 3, 9]), "3 of 4 equal"),
        (np.array([True, False]), np.array([True, False]), "2 of 2 equal"),
        (np.complex64([3 + 4j, 0]), np.complex64([3 + 4j, 0.5]), "sqnr 20.0 dB, cosine 0.99504"),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), "empty"),
        (np.float32(2.0), np.float32([2.0]), "exact"),
        (np.float32([1.0]), np.float32([1.0, 2.0]), "of another shape than the float model's"),
        (np.float32([np.inf, np.nan, 1.0]), np.float32([np.inf, np.nan, 1.0]), "exact"),
        (
            np.float32([-np.inf, 3.0, 4.0]),
            np.float32([-9.0, 3.0, 4.5]),
            "sqnr 20.0 dB, cosine 0.99846, 1 of 3 not finite in one alone",
        ),
        (
            SIGNAL,
            np.full(4, np.nan, np.float32),
            "sqnr -inf dB, cosine 0.00000, 4 of 4 not finite in one alone",
        ),
    ],
)
def test_an_output_is_measured_against_the_float_model(floats: object, outputs: object, text: str) -> None:
    (near,) = nearnesses(quantized((floats, outputs)))
    assert near.text == text


def test_all_samples_count_and_the_example_beside_them() -> None:
    lowered = quantized((SIGNAL, SIGNAL + np.float32([0.05, 0.05, 0.0, 0.0])), (SIGNAL, SIGNAL + 1))
    (near,) = nearnesses(lowered)
    assert near.text == "sqnr 14.0 dB, cosine 0.98265; example 40.0 dB"
    assert near.sqnr == pytest.approx(40.0, abs=1e-3)
    assert Accuracy.of(lowered).sqnr == near.sqnr
    assert list(sqnrs([near.text])) == [40.0]


def test_a_program_that_was_not_quantized_or_not_run_has_no_accuracy() -> None:
    assert not list(nearnesses(program([4.0, 2.0])))
    assert not list(nearnesses(replace(program([4.0, 2.0]), samples=())))
    assert Accuracy.of(program([4.0, 2.0])).sqnr is None


@pytest.mark.parametrize(
    ("before", "after", "is_same", "worse"),
    [
        ("sqnr 41.3 dB, cosine 0.99996", "sqnr 40.8 dB, cosine 0.99990", True, True),
        ("sqnr 41.3 dB, cosine 0.99996", "sqnr 40.7 dB, cosine 0.99990", False, True),
        ("sqnr 41.3 dB, cosine 0.99996", "sqnr 41.9 dB, cosine 0.99996", False, False),
        ("sqnr 9.0 dB, cosine 0.9; example 40.0 dB", "sqnr 9.0 dB, cosine 0.9; example 39.0 dB", False, True),
        ("exact", "sqnr over 100 dB, cosine 1.00000; example exact", True, False),
        ("exact", "sqnr 48.0 dB, cosine 0.99999; example 47.0 dB", False, True),
        ("63 of 64 equal", "62 of 64 equal", True, True),
        ("63 of 64 equal", "61 of 64 equal", False, True),
        ("999 of 1000 equal", "994 of 1000 equal", True, True),
        ("no signal, off by 1.0e-03", "no signal, off by 1.0e-02", False, True),
        ("no signal, off by 1.0e-02", "exact", False, False),
        ("sqnr 9.0 dB, cosine 0.9", "sqnr 9.0 dB, cosine 0.9, 9 of 64 not finite in one alone", False, True),
        ("sqnr 9.0 dB, cosine 0.9", "of another shape than the float model's", False, True),
        ("empty", "empty", True, False),
        ("empty", "of another shape than the float model's", False, False),
    ],
)
def test_half_a_decibel_is_no_change(before: str, after: str, is_same: bool, worse: bool) -> None:
    assert same(before, after) == same(after, before) == is_same
    if not is_same:
        assert is_worse(before, after) == worse


def recorded(lowered: Lowered, accuracy: str | None) -> dict[str, str]:
    """The golden of a program, with another accuracy, or as before there was one."""
    texts = golden.render(
        Artifact(lowered, (), 1.0), golden.MadeWith({}, ["seed0-heap0", "seed4-heap1"], "equal")
    )
    line = "" if accuracy is None else f"accuracy 0: {accuracy}\n"
    manifest = re.sub(r"^accuracy 0: .*\n", line, golden.unsealed(texts)[golden.MANIFEST], flags=re.MULTILINE)
    return golden.sealed({**texts, golden.MANIFEST: manifest})


@pytest.fixture
def lowered(artifacts: Artifacts) -> Lowered:
    """A real program, with outputs that are 40 dB from a float model's."""
    made = artifacts["steady"][0].result
    assert isinstance(made, Lowered)
    samples = []
    for sample in made.samples:
        (output,) = sample.outputs
        samples.append(
            replace(sample, floats=(Tensor.of((output.array() * np.float32(1.01)).astype(np.float32)),))
        )
    return replace(made, samples=tuple(samples))


def test_a_golden_has_the_accuracy_of_each_output_and_a_float_one_none(
    lowered: Lowered, artifacts: Artifacts
) -> None:
    texts = recorded(lowered, "sqnr 40.0 dB, cosine 0.99996")
    lines = texts[golden.MANIFEST].splitlines()
    numerics = next(at for at, line in enumerate(lines) if line.startswith("numerics: "))
    assert lines[numerics + 1] == "accuracy 0: sqnr 40.0 dB, cosine 0.99996"
    float_one = golden.render(artifacts["steady"][0], golden.MadeWith({}, [], ""))
    assert "accuracy" not in float_one[golden.MANIFEST]


def test_goldens_are_equal_within_half_a_decibel_and_are_not_written_again(lowered: Lowered) -> None:
    reviewed, made = (
        recorded(lowered, "sqnr 41.3 dB, cosine 0.99996"),
        recorded(lowered, "sqnr 40.8 dB, cosine 0.9"),
    )
    worse = recorded(lowered, "sqnr 40.7 dB, cosine 0.99996")
    assert golden.equal(reviewed, made)
    assert golden.confirmed(reviewed, made) == reviewed
    assert not golden.equal(reviewed, worse)
    assert "accuracy 0: sqnr 40.7 dB" in golden.compared(worse, reviewed)[golden.MANIFEST]


def test_a_golden_without_accuracy_has_not_recorded_it_yet_and_gets_it(lowered: Lowered) -> None:
    before, made = recorded(lowered, None), recorded(lowered, "sqnr 41.3 dB, cosine 0.99996")
    assert golden.equal(before, made)
    assert golden.missing(before, made) == ("accuracy 0",)
    assert golden.confirmed(before, made) == made
    assert not golden.missing(made, made)


# Useless quantizations


class Attention(nn.Module):
    """Causal attention over six steps.

    Parameters
    ----------
    hide
        Hides what is masked in the scores, which it takes with the mask.
    """

    def __init__(self, data: Data, hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        for name, parameter in self.named_parameters():
            steps = data.generator(name).integers(-8, 9, parameter.shape)
            parameter.data = torch.tensor(steps / 8.0, dtype=torch.float32)
        self.register_buffer("mask", torch.ones(6, 6).triu(1).bool())
        self.hide = hide

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(-1, -2) / math.sqrt(8)
        return torch.softmax(self.hide(scores, self.mask), -1) @ self.value(x)


LOWEST = torch.finfo(torch.float32).min


def attending(hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[[Data], Example]:
    def build(data: Data) -> Example:
        steps = data.generator("x").integers(-8, 9, (1, 6, 8))
        return Example(Attention(data, hide), (torch.tensor(steps / 8.0, dtype=torch.float32),))

    return build


def judged(build: Callable[[Data], Example], target: str, **settings: Any) -> Verdict | None:
    """Return what is said against a case; None where nothing is."""
    case, cell = Case("attending", "tests", "something", build, **settings), Cell(target, "attending")
    found = objection(cell, [Outcome(cell, "seed0-heap0", export(case, target), 1.0, 1.0)])
    if found is not None:
        print(f"{found.name}: {cell}: {found.reason}", *found.detail, sep="\n  ")
    return found


def added(number: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda scores, mask: scores + torch.zeros(6, 6).masked_fill(mask, number)


@pytest.mark.parametrize(
    ("target", "hide", "operator"),
    [
        # Arm's quantizer makes them -255: one code is more than all scores.
        ("tosa-int", lambda scores, mask: scores.masked_fill(mask, LOWEST), "aten.where.self where"),
        ("tosa-int", added(-math.inf), "aten.add.Tensor add"),
        # XNNPACK's quantizes the sum, at no scale that there is for minus infinity.
        ("xnnpack-int8", added(LOWEST), "aten.add.Tensor add"),
        ("xnnpack-int8", added(-math.inf), "aten.add.Tensor add"),
    ],
    ids=["tosa-where", "tosa-sum", "xnnpack-sum", "xnnpack-infinity"],
)
def test_a_mask_that_takes_all_codes_is_named_with_its_scale(
    target: str, hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], operator: str
) -> None:
    found = judged(attending(hide), target)
    assert found is not None
    assert found.name == "imprecise"
    assert found.reason.startswith("useless quantization: output 0 is ")
    assert f"the floor of {target} is 20 dB" in found.reason
    named = "\n".join(found.detail)
    assert re.search(rf"quantizing {operator}: scale \S+, zero point \S+, range ", named), named


def test_a_quantization_whose_values_are_compared_is_not_named_for_what_it_costs_alone() -> None:
    """2.997 is not 3, and both are the same once what 3 is compared with is quantized as well."""
    case, cell = replace(load(("models",))["scaled-attention"], sqnr={}), Cell("tosa-int", "scaled-attention")
    found = objection(cell, [Outcome(cell, "seed0-heap0", export(case, "tosa-int"), 1.0, 1.0)])
    assert found is not None
    assert found.reason.startswith("useless quantization: output 1 is ")
    named = "\n".join(found.detail)
    assert "quantizing aten.add.Tensor add" in named, named
    assert "arange" not in named, named


def test_a_case_that_accepts_so_little_is_not_refused() -> None:
    build = attending(added(LOWEST))
    found = judged(build, "xnnpack-int8", sqnr={"xnnpack-int8": -math.inf})
    assert found is None or "useless" not in found.reason


def test_a_mask_of_a_sensible_size_is_no_useless_quantization() -> None:
    found = judged(attending(added(-8.0)), "xnnpack-int8")
    assert found is None or "useless" not in found.reason


@pytest.mark.parametrize("least", [math.inf, math.nan, "3", True], ids=str)
def test_an_sqnr_that_is_no_number_of_decibels_is_refused(least: Any) -> None:
    case = Case("some-case", "tests", "something", attending(torch.where), sqnr={"tosa-int": least})
    with pytest.raises(ZooError, match=r"sqnr: .* of tosa-int is no number of dB"):
        Registry().add(case)


def test_only_a_quantized_target_has_a_floor() -> None:
    with pytest.raises(TargetError, match="floor: only a quantized target has one"):
        replace(TARGETS["tosa-fp"], floor=20.0)
    with pytest.raises(TargetError, match="floor: nan is no finite number"):
        replace(TARGETS["tosa-int"], floor=math.nan)
    assert {name for name, target in TARGETS.items() if target.floor is None} == {
        name for name, target in TARGETS.items() if not target.is_quantized
    }


def test_the_ends_of_an_observer_on_the_grid_stay_numbers() -> None:
    observer = GridObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    observer(torch.tensor([LOWEST, 0.0, 1.0]))
    scale, _ = observer.calculate_qparams()
    assert scale.isfinite().all()


def row(target: str, case: str, difference: float | None, used: float | None) -> dict[str, object]:
    return {"target": target, "case": case, "difference": difference, "tolerance": difference, "used": used}


def test_a_line_counts_cells_by_the_part_of_the_tolerance_that_they_take() -> None:
    rows = [
        row("tosa-int", "exact", 0.0, 0.0),
        row("tosa-int", "near", 0.01, 0.05),
        row("tosa-int", "far", 0.03, 0.95),
        row("tosa-int", "wrong", None, None),
        row("tosa-fp", "exact", 0.0, 0.0),
    ]
    head, _, fp, int8 = table(("1.4.1", each) for each in rows)
    assert head.count("|") == fp.count("|") == int8.count("|") == len(PARTS) + 8
    assert fp.split(" | ")[2:6] == ["1", "1", "-", "-"]
    counts = ["1", *("0" for _ in PARTS[1:-1]), "1"]
    assert int8.split(" | ")[2:] == ["3", "1", "2.0e-02, 3.0e-02", "2.0e-02, 3.0e-02", *counts, "far, 0.95 |"]


def test_results_of_an_earlier_version_are_refused(
    tmp_path: Path,
    runner: Runner,
    release: str,
    artifacts: Artifacts,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runner.answers({"alpha": artifacts["steady"][0]})
    runner("--models", runner.zoo("one", "alpha"), "--cell", "xnnpack-fp32/alpha", "--variations", "1")
    results = shutil.copytree(runner.sweeps, tmp_path / "results")
    assert main(["tolerances", str(results)]) == 0
    assert f"| {release} | xnnpack-fp32 | 1 | 1 | - |" in capsys.readouterr().out
    file = results / FILE
    file.write_text(re.sub(r', "used": [^,]+', "", file.read_text()))
    assert main(["tolerances", str(results)]) == 2
    assert "earlier version" in capsys.readouterr().err
