"""Drawn models are well-formed, the same everywhere, and stay well-formed while they are made smaller."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch_goldens.cli import ERROR
from executorch_goldens.errors import UsageError
from executorch_goldens.exporting.data import Example
from executorch_goldens.exporting.numerics.samples import STEPS, samples_of
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import SAMPLES, Case
from executorch_goldens_plugins.repro.program import example_in
from lab import DOCS
from lab.__main__ import main
from lab.fuzz import command as fuzz
from lab.fuzz import explained, names, page, search
from lab.fuzz.cause import Cause
from lab.fuzz.chance import Chance
from lab.fuzz.kept import Judged, Lines
from lab.fuzz.model import COMPUTED, INPUT, LARGEST, LEAST, PARAMETER, Model
from lab.fuzz.reduction import reduce, reductions
from lab.fuzz.search import results_of
from lab.fuzz.sketch import OPERATORS, SYMBOLIC_SIZE

#: Another one means that every name means another model: results so far cannot be gone on with, and the witnesses in
#: harness/lab/fuzz/explained.toml have to be found again.
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
    assert names.digest() == DIGEST


def example(model: Model, folder: Path) -> Example:
    """Return a model as an export takes it."""
    search.write(folder, "drawn", model)
    return example_in(folder / "drawn.py", "drawn_model")


def run_on(given: Example) -> dict[str, tuple[tuple[torch.Tensor, ...], ...]]:
    """Return the samples of an example, as if it had a state."""
    return samples_of(Case("some-case", "tests", "something", lambda data: given), given, remembers=True)


def test_a_symbolic_dimension_is_run_at_each_size_as_that_of_any_case(tmp_path: Path) -> None:
    of_example = {name: {SYMBOLIC_SIZE} for name in (*SAMPLES, *STEPS)}
    symbolic = [model for model in models(150) if model.symbolic]
    assert len(symbolic) > 5
    for model in symbolic:
        given = example(model, tmp_path)
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
def test_what_is_no_name_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--show", name]) == ERROR
    assert f"{name!r} is no name of a drawn model" in capsys.readouterr().err


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


def test_every_smaller_model_is_well_formed() -> None:
    for model in models(12):
        for smaller in reductions(model):
            assert len(run(smaller)) == len(smaller.outputs), smaller.source()


def test_a_model_is_reduced_to_what_shows_the_same() -> None:
    found = 0
    for model in models(60):
        if "softmax" not in model.operators or len(model.steps) < 3:
            continue
        small, tried = reduce(model, lambda each: "softmax" in each.operators)
        assert small.operators == ("softmax",)
        assert len(small.outputs) == 1
        assert not small.symbolic
        assert tried > 1
        run(small)
        found += 1
    assert found


# What is kept


def judged(model: str, verdict: str = "stable", target: str = "tosa-fp") -> Judged:
    return Judged(model, target, Cause(verdict, "lower, SomePass", "Error: …"), "Error: x", 2.0)


HEAD = {"release": "1.4.1", "drawing": "a"}


def test_a_file_that_a_stop_has_cut_goes_on(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "deep" / "results.jsonl", Judged, HEAD)
    assert lines.open() == []
    lines.add(judged("drawn-0-000000"))
    lines.add(judged("drawn-0-000001"))
    text = lines.file.read_text()
    lines.file.write_text(text[:-20])
    assert lines.open() == [judged("drawn-0-000000")]
    lines.add(judged("drawn-0-000001"))
    assert lines.file.read_text() == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"release": "1.5.1", "drawing": "a"}\n', "give this run another with --results"),
        ('{"release": "1.4.1", "drawing": "b"}\n', "give this run another with --results"),
        ("not JSON\n", "line 1, is no JSON"),
        ('{"release": "1.4.1", "drawing": "a"}\n{"model": 1}\n', "is no result"),
    ],
)
def test_results_of_something_else_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)):
        Lines(file, Judged, HEAD).open()
    assert file.read_text() == text


# The table of findings, and the page


def test_every_explanation_names_a_finding_and_has_a_witness() -> None:
    pages = {path.stem for path in (DOCS / "findings").glob("*.md")}
    rows = explained.load()
    assert rows
    for row in rows:
        assert row.finding in pages or re.fullmatch(r"#\d+|limit: .+", row.finding), row
        target, _, name = row.witness.partition("/")
        assert target in releases.load().release(row.release).targets
        assert set(row.operators) <= set(OPERATORS)
        assert not row.operators or set(row.operators) & set(names.drawn(name).operators), row
        re.compile(row.where)
        re.compile(row.what)


def test_the_page_gets_new_lines_for_a_release_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIGURES_FILE", "CAUSES_FILE"):
        monkeypatch.setattr(page, name, tmp_path / name)

    def shown() -> list[str]:
        return [line for part in page.parts() for line in part.lines()]

    rows = [judged("drawn-0-000000"), judged("drawn-0-000001", "failed"), judged("drawn-0-000002", "failed")]
    found = page.Found(rows)
    page.keep("1.4.1", found, ())
    one = shown()
    assert "| 1.4.1 | 3 | 3 | 1 | 0 | 2 | 0 | 0 | 0 | 0 | 0 | 1 | 2.0 |" in one
    assert "| 1.4.1 | failed | lower, SomePass | Error: … | 2 | tosa-fp/drawn-0-000001 |" in one
    page.keep("1.1.0", page.Found(rows[:1]), ())
    both = shown()
    assert any(line.startswith("| 1.1.0 | 1 | 1 | 1 |") for line in both)
    assert set(one) < set(both)
    page.keep("1.4.1", found, ())
    assert shown() == both
    table = (
        explained.Explanation("fused-relu", "tosa-*", "failed", "tosa-fp/drawn-0-000001", where="SomePass"),
    )
    assert page.figures("1.4.1", found, table)[-4:] == ("2", "0", "0", "2.0")


def test_what_is_imprecise_is_no_cause_to_look_into() -> None:
    rows = [judged("drawn-0-000001", "imprecise"), judged("drawn-0-000002", "failed")]
    found = page.Found(rows)
    ((cause, _),) = found.left(())
    assert cause.verdict == "failed"
    assert page.figures("1.4.1", found, ())[1:-1] == ("2", "2", "0", "0", "1", "0", "1", "0", "0", "0", "1")


def test_what_a_later_release_does_right_is_no_cause_to_look_into(tmp_path: Path) -> None:
    failed, other = judged("drawn-0-000001", "failed"), judged("drawn-0-000002", "failed")
    for version, rows in {
        "1.3.1": [judged("drawn-0-000002")],
        "1.4.1": [failed],
        "1.5.1": [judged("drawn-0-000001"), dataclasses.replace(other, cause=Cause("failed", "elsewhere"))],
    }.items():
        kept = Lines(results_of(tmp_path, version), Judged, {"release": version, "drawing": names.digest()})
        kept.open()
        for row in rows:
            kept.add(row)
    with results_of(tmp_path, "1.5.1").open("a") as file:
        file.write('{"model": "drawn-0-')
    found = page.Found([failed, other], fuzz.right_later(tmp_path, "1.4.1"))
    ((_, members),) = found.left(())
    assert members == [other]
    assert page.figures("1.4.1", found, ())[1:-1] == ("2", "2", "0", "0", "2", "0", "0", "0", "0", "1", "1")


def test_results_of_models_drawn_otherwise_say_nothing_of_these(tmp_path: Path) -> None:
    kept = Lines(results_of(tmp_path, "1.5.1"), Judged, {"release": "1.5.1", "drawing": "other"})
    kept.open()
    kept.add(judged("drawn-0-000001"))
    assert fuzz.right_later(tmp_path, "1.4.1") == frozenset()


def test_an_unknown_target_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--target", "no-target", "--models", "1"]) == ERROR
    assert "no-target" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--seed", "-1"], ["--first", "999999", "--models", "2"], ["--first", "-1"]]
)
def test_numbers_that_no_model_has_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", *words]) == ERROR
    assert "the models of a seed have the numbers 0 to 999999" in capsys.readouterr().err


@pytest.mark.slow
def test_a_failure_is_made_smaller_and_gets_a_script_and_a_second_run_makes_nothing_again(
    tmp_path: Path,
) -> None:
    parser = argparse.ArgumentParser()
    fuzz.add_to(parser.add_subparsers())
    searching = fuzz.search(
        parser.parse_args(["fuzz", "--target", "xnnpack-fp32", "--results", str(tmp_path)])
    )
    name = "drawn-1-000022"
    (row,) = searching.export([name], math.inf)
    assert explained.finding(row, explained.load()) == "unbatched-pool"
    assert list(searching.export([name], math.inf)) == []
    (minimal,) = searching.shrink([row], math.inf)
    assert len(names.drawn(name).steps) > len(minimal.operators)
    assert minimal.operators == ("max-pool2d",)
    assert "Attempting to convert non-NHWC compatible node to NHWC" in minimal.script
    assert "max_pool2d" in (searching.folder / "scripts" / "xnnpack-fp32" / f"{name}.py").read_text()
    assert (searching.folder / "minimal" / "xnnpack-fp32" / f"{name}.py").read_text() == minimal.source
    assert list(searching.shrink([row], math.inf)) == []


@pytest.mark.slow
def test_a_witness_shows_its_finding(release: str, tmp_path: Path) -> None:
    shown = [row for row in explained.load() if row.release == release]
    for row in shown:
        target, _, name = row.witness.partition("/")
        _, seed, number = name.split("-")
        words = ["--target", target, "--seed", seed, "--first", str(int(number)), "--models", "1"]
        assert main(["fuzz", *words, "--no-shrinking", "--results", str(tmp_path)]) == 0
    (file,) = tmp_path.glob("*/results.jsonl")
    found = {f"{row.target}/{row.model}": row for row in Lines(file, Judged, head(file)).open()}
    for row in shown:
        assert explained.finding(found[row.witness], explained.load()) == row.finding, found[row.witness]


def head(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text().splitlines()[0])
    return read
