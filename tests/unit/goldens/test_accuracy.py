"""Accuracy of programs against eager and the float model, as goldens record it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest

from executorch_goldens.artifact import Lowered, Metric, Sample, Tensor
from executorch_goldens.goldens import equality, rendering
from executorch_goldens.goldens.accuracy import (
    EMPTY,
    ERROR,
    FIELD,
    OTHER_SHAPE,
    Accuracy,
    Nearness,
    error,
    is_worse,
    nearnesses,
    read,
    read_error,
    same,
    sqnr,
    text,
)
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import MANIFEST
from tests import GOLDENS
from tests.conftest import Artifacts
from tests.support import making
from tests.support.making import golden_of, lowered_by, with_texts

pytestmark = pytest.mark.usefixtures("own_flatc")


def program(actual: list[float], spread: list[float] | None = None) -> Lowered:
    """A program that should give 4 and 2, on the example alone."""
    values = (Tensor.from_array(np.float32([4.0, 2.0])),)
    spreads = (Tensor.from_array(np.float32(spread)),) if spread else ()
    sample = Sample("example", values, (Tensor.from_array(np.float32(actual)),), spreads)
    return making.lowered("", pte=b"", samples=(sample,))


def test_the_worst_element_counts_for_its_own_tolerance_and_not_for_the_widest() -> None:
    found = Accuracy.measure(program([4.2, 2.1], [0.5, 0.1]))
    assert found.error == pytest.approx(0.05)
    assert found.tolerance == pytest.approx(1.5 / 4.0)
    # Three times the root mean square of the spreads is 1.08, and so is the second element's tolerance.
    assert found.used == pytest.approx(0.2 / 1.5, rel=1e-5)
    near = program([4.0, 2.1], [0.5, 0.1])
    assert Accuracy.measure(near).used == pytest.approx(0.1 / (3.0 * math.sqrt((0.25 + 0.01) / 2)), rel=1e-5)


def test_what_is_exact_takes_nothing_and_what_may_not_move_takes_all() -> None:
    exact = program([4.0, 2.0], [0.0, 0.0])
    assert Accuracy.measure(exact) == Accuracy(0.0, 0.0, 0.0)
    assert Accuracy.measure(replace(program([4.0, 2.5], [0.0, 0.0]))).used == math.inf


SIGNAL = np.float32([3.0, -4.0, 0.0, 5.0])


def quantized(*samples: tuple[object, object]) -> Lowered:
    """A program of one output that should give the first of each pair by the float model, and gives the second."""
    found = []
    for number, (floats, outputs) in enumerate(samples):
        wanted, given = (Tensor.from_array(np.asarray(values)) for values in (floats, outputs))
        found.append(Sample(f"sample{number}", (given,), (given,), (), (wanted,)))
    return making.lowered("", pte=b"", samples=tuple(found))


@pytest.mark.parametrize(
    ("floats", "outputs", "expected"),
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
def test_an_output_is_measured_against_the_float_model(
    floats: object, outputs: object, expected: str
) -> None:
    (near,) = nearnesses(quantized((floats, outputs)))
    assert text(near) == expected
    assert text(read(FIELD, expected)) == expected


def test_all_samples_count_and_the_example_beside_them() -> None:
    lowered = quantized((SIGNAL, SIGNAL + np.float32([0.05, 0.05, 0.0, 0.0])), (SIGNAL, SIGNAL + 1))
    (near,) = nearnesses(lowered)
    assert text(near) == "sqnr 14.0 dB, cosine 0.98265; example 40.0 dB"
    assert near.sqnr == pytest.approx(40.0, abs=1e-3)
    assert Accuracy.measure(lowered).sqnr == near.sqnr
    assert sqnr(read(FIELD, text(near))) == 40.0


def test_a_program_that_was_not_quantized_or_not_run_has_no_accuracy() -> None:
    assert not list(nearnesses(program([4.0, 2.0])))
    assert not list(nearnesses(replace(program([4.0, 2.0]), samples=())))
    assert Accuracy.measure(program([4.0, 2.0])).sqnr is None


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
    one, other = read(FIELD, before), read(FIELD, after)
    assert same(one, other) == same(other, one) == is_same
    if not is_same:
        assert is_worse(one, other) == worse


def recorded(lowered: Lowered, accuracy: str | None) -> dict[str, str]:
    """The golden of a program, with another accuracy, or as before there was one."""
    texts = golden_of(lowered)
    line = "" if accuracy is None else f"accuracy 0: {accuracy}\n"
    manifest = re.sub(r"^accuracy 0: .*\n", line, texts.texts()[MANIFEST], flags=re.MULTILINE)
    return with_texts(texts, {MANIFEST: manifest})


@pytest.fixture
def lowered(artifacts: Artifacts) -> Lowered:
    """A real program, with outputs that are 40 dB from a float model's."""
    made = lowered_by(artifacts["steady"][0])
    samples = []
    for sample in made.samples:
        (output,) = sample.outputs
        samples.append(
            replace(
                sample, floats=(Tensor.from_array((output.array() * np.float32(1.01)).astype(np.float32)),)
            )
        )
    return replace(made, samples=tuple(samples))


def test_a_golden_has_the_accuracy_of_each_output_and_a_float_one_none(
    lowered: Lowered, artifacts: Artifacts
) -> None:
    texts = recorded(lowered, "sqnr 40.0 dB, cosine 0.99996")
    lines = texts.texts()[MANIFEST].splitlines()
    numerics = next(at for at, line in enumerate(lines) if line.startswith("numerics: "))
    assert lines[numerics + 1] == "accuracy 0: sqnr 40.0 dB, cosine 0.99996"
    assert lines[numerics + 2] == "error: 0 of the tolerance"
    float_one = rendering.render(artifacts["steady"][0], rendering.MadeWith({}, [], Numerics()))
    assert "accuracy" not in float_one.texts()[MANIFEST]


def test_goldens_are_equal_within_half_a_decibel_and_are_not_written_again(lowered: Lowered) -> None:
    reviewed, made = (
        recorded(lowered, "sqnr 41.3 dB, cosine 0.99996"),
        recorded(lowered, "sqnr 40.8 dB, cosine 0.9"),
    )
    worse = recorded(lowered, "sqnr 40.7 dB, cosine 0.99996")
    assert equality.equal(reviewed, made)
    assert equality.confirmed(reviewed, made) == reviewed
    assert not equality.equal(reviewed, worse)
    assert "accuracy 0: sqnr 40.7 dB" in equality.compared(worse, reviewed).texts()[MANIFEST]


def test_a_golden_without_accuracy_has_not_recorded_it_yet_and_gets_it(lowered: Lowered) -> None:
    before, made = recorded(lowered, None), recorded(lowered, "sqnr 41.3 dB, cosine 0.99996")
    assert equality.equal(before, made)
    assert equality.missing(before, made) == ("accuracy 0",)
    assert equality.confirmed(before, made) == made
    assert not equality.missing(made, made)


def facts_of_all_goldens() -> Iterator[tuple[str, str]]:
    """Yield the facts of all goldens of this repository."""
    for path in GOLDENS.rglob("*.txt"):
        with path.open(encoding="utf-8") as file:
            facts = (
                line.rstrip("\n").partition(": ") for line in takewhile(lambda line: line[:2] != "==", file)
            )
            yield from ((name, value) for name, _, value in facts)


def test_what_all_goldens_say_of_numbers_is_read_and_written_as_it_was() -> None:
    counted = Counter[str]()
    for name, value in facts_of_all_goldens():
        if name.startswith(FIELD):
            found = read(name, value)
            assert isinstance(found, Metric) or found.note in ("", EMPTY, OTHER_SHAPE), value
            assert text(found) == value
        elif name == ERROR:
            used = read_error(value)
            assert used is not None
            assert error(used) == value
        elif name == "numerics":
            checked = Numerics.read(value)
            assert checked is not None, value
            assert checked.text() == value
        counted[name.partition(" ")[0]] += 1
    assert counted["accuracy"] > 1000
    assert counted[ERROR] > 1000
    assert counted["numerics"] > 4000


@pytest.mark.parametrize(
    "found",
    [
        Metric("top_1", math.nan, math.inf, -1e-20),
        Nearness(math.inf, 1.0, odd=1, size=3, example=Nearness(off=0.5)),
        Nearness(12.5, -0.5, example=Nearness(note=EMPTY)),
        Nearness(odd=2, size=4),
    ],
)
def test_any_measure_is_read_as_it_was_written(found: Nearness | Metric) -> None:
    written = text(found)
    assert text(read("accuracy top_1", written)) == written
    assert same(read("accuracy top_1", written), read("accuracy top_1", written))


@pytest.mark.parametrize(
    "checked",
    [
        Numerics(),
        Numerics(fails=True),
        Numerics(not_run="the runtime lacks a kernel: aten::sin.out"),
        Numerics(
            0,
            True,
            ("aten::sin.out", "aten::cos.out"),
            ("mine",),
            (("eager does not end", ("zeros", "a: drawn")),),
        ),
        Numerics(unjudged=(("eager raises OSError", ("zeros",)), ("eager is not finite", ("drawn", "mine")))),
    ],
)
def test_any_checks_are_read_as_they_were_written(checked: Numerics) -> None:
    assert Numerics.read(checked.text()) == checked
