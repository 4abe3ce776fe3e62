"""Drawn models are well-formed, and the same everywhere."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from executorch_goldens.exporting.data import Example
from executorch_goldens.exporting.numerics.samples import STEPS, samples_of
from executorch_goldens.zoo.registry import SAMPLES, Case
from lab.fuzz import names
from lab.fuzz.chance import Chance
from lab.fuzz.model import COMPUTED, INPUT, LARGEST, LEAST, PARAMETER, Model
from lab.fuzz.sketch import OPERATORS, SYMBOLIC_SIZE
from lab.pairs.cases import example_of

#: Of the first models of seed 0. Another one means that every name means another model, those in
#: findings too.
DIGEST = "c63bd19b8113"


def models(count: int) -> Iterator[Model]:
    return (names.drawn(names.name(0, number)) for number in range(count))


def run(model: Model) -> tuple[torch.Tensor, ...]:
    """Return the outputs of a model in eager mode."""
    made: dict[str, Any] = {}
    exec(model.source(), made)
    with torch.no_grad():
        given = made["Model"]().eval()(*made["inputs"])
    return given if isinstance(given, tuple) else (given,)


def test_a_name_means_the_same_model_on_every_machine() -> None:
    texts = "".join(model.source() for model in models(50))
    assert hashlib.sha256(texts.encode()).hexdigest()[:12] == DIGEST


def run_on(given: Example) -> dict[str, tuple[tuple[torch.Tensor, ...], ...]]:
    """Return the samples of an example, as if it had a state."""
    return samples_of(Case("some-case", "tests", "something", lambda data: given), given, remembers=True)


def test_a_symbolic_dimension_is_run_at_each_size_as_that_of_any_case() -> None:
    of_example = {name: {SYMBOLIC_SIZE} for name in (*SAMPLES, *STEPS)}
    symbolic = [model for model in models(150) if model.symbolic]
    assert len(symbolic) > 5
    for model in symbolic:
        given = example_of(model.source(), "drawn_model")
        found = run_on(given)
        sizes = {name: {x.shape[0] for step in steps for x in step} for name, steps in found.items()}
        assert sizes == of_example | {"least": {LEAST}, "largest": {LARGEST}}
        # A sample on which eager raises would be left out.
        for steps in found.values():
            with torch.no_grad():
                given.module.eval()(*steps[-1])


def test_another_number_or_seed_is_another_model() -> None:
    texts = [model.source() for model in models(200)]
    assert len(set(texts)) == len(texts)
    assert names.drawn(names.name(1, 0)).source() != texts[0]


@pytest.mark.parametrize("name", ["drawn-7-123", "drawn-x-000123", "linear", "drawn-7-0000123"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(names.DrawnNameError, match=f"{name!r} is no name of a drawn model"):
        names.drawn(name)


def test_every_value_has_the_shape_and_dtype_that_it_was_drawn_with() -> None:
    for model in models(120):
        computed = [value for value in model.values.values() if value.kind == COMPUTED]
        whole = dataclasses.replace(model, outputs=tuple(value.number for value in computed))
        for value, given in zip(computed, run(whole), strict=True):
            assert (tuple(given.shape), str(given.dtype)) == (value.shape, f"torch.{value.dtype}"), (
                model.source()
            )


def test_what_issue_17_names_is_drawn() -> None:
    drawn = list(models(1500))
    inputs = [source for model in drawn for source in model.sources if source.value.kind == INPUT]
    assert {name for model in drawn for name in model.operators} == set(OPERATORS)
    assert {len(source.value.shape) for source in inputs} == set(range(6))
    assert any("channels_last" in source.layout for source in inputs)
    assert any(model.symbolic for model in drawn)
    assert any(len(set(model.outputs)) < len(model.outputs) for model in drawn)
    assert any(len(model.outputs) > 2 for model in drawn)
    assert any(is_shared(model) for model in drawn)
    assert any(has_equal_constants(model) for model in drawn)
    assert any(step.writes for model in drawn for step in model.steps)
    texts = "".join(model.source() for model in drawn)
    for text in (
        'padding="same"',
        "torch.cond",
        "dilation=(2",
        "stride=(3",
        "kernel" and "(2, 2)",
        "to(torch.int8)",
    ):
        assert text in texts


def is_shared(model: Model) -> bool:
    read = list(itertools.chain.from_iterable(set(step.arguments) for step in model.steps))
    held = {source.value.number for source in model.sources if source.value.kind == PARAMETER}
    return any(read.count(number) > 1 for number in held)


def has_equal_constants(model: Model) -> bool:
    held = [source.expression for source in model.sources if source.value.kind == PARAMETER]
    return len(set(held)) < len(held)


def test_chance_is_what_python_promises_to_keep() -> None:
    chance = Chance("a key")
    weights = {"often": 9.0, "rarely": 1.0}
    drawn = [chance.weighted(weights) for _ in range(1000)]
    assert 850 < drawn.count("often") < 950
    assert sorted(chance.permutation(6)) == list(range(6))
    assert {chance.between(2, 4) for _ in range(100)} == {2, 3, 4}
