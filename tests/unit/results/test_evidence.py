"""Evidence that a run keeps of a cell."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_goldens.artifact import Sample, Tensor
from executorch_goldens.goldens.labels import OF_RUN, OF_VARIATIONS, Labels
from executorch_goldens.judging.rightness import wrong_outputs
from executorch_goldens.results.evidence import Evidence, ShownTensor, tensors
from executorch_goldens.results.proposals import CellFile, ProposalError
from tests.support.making import lowered, outcome
from tests.support.runner import Runner


def test_evidence_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = ShownTensor(
        "output", "output 0", "example", "seed0-heap0", np.eye(2), np.ones((2, 2)), np.zeros((2, 2))
    )
    file = CellFile(evidence=Evidence(message=[("", "a")], agreeing=[["seed0-heap0"]], tensors=[kept]))
    file.write(tmp_path)
    first = (tmp_path / "cell.npz").read_bytes()
    time.sleep(2.1)  # An archive has the time to two seconds.
    file.write(tmp_path)
    assert (tmp_path / "cell.npz").read_bytes() == first
    read = CellFile.load(tmp_path, arrays=True).evidence
    assert (read.message, read.agreeing) == ([("", "a")], [["seed0-heap0"]])
    (tensor,) = read.tensors
    assert tensor.expected is not None
    assert (tensor.actual == np.eye(2)).all()
    assert (tensor.expected == 1).all()
    assert CellFile.load(tmp_path / "nowhere", arrays=True) == CellFile()
    (tmp_path / "cell.json").write_text("{")
    with pytest.raises(ProposalError, match="Run its cell again"):
        CellFile.load(tmp_path)


def test_the_first_sample_that_is_wrong_is_kept_beside_the_worst() -> None:
    right = Tensor.from_array(np.zeros(4, np.float32))
    outputs = {
        "example": np.zeros(4, np.float32),
        "extremes": np.array([1, 0, 0, 0], np.float32),
        "dense": np.array([3, 3, 3, 0], np.float32),
        "zeros": np.array([2, 2, 0, 0], np.float32),
    }
    samples = tuple(Sample(name, (right,), (Tensor.from_array(made),)) for name, made in outputs.items())
    program = lowered(samples=samples, bound=1e-6)
    kept = list(tensors([[outcome(program)]]))
    # The verdict names the first.
    assert [tensor.where for tensor in kept] == ["extremes", "dense"]
    assert [found.sample for found in wrong_outputs(program)] == ["extremes", "dense", "zeros"]
    right_now = lowered(samples=samples[:1], bound=1e-6)
    assert [tensor.where for tensor in tensors([[outcome(right_now)]])] == ["example"]
    worst = lowered(samples=samples[2:], bound=1e-6)
    assert [tensor.where for tensor in tensors([[outcome(worst)]])] == ["dense"]


def test_a_run_keeps_evidence_for_a_report(runner: Runner, artifacts: dict[str, Any]) -> None:
    runner.zoo("zoo_two", "alpha", "beta")
    runner.answers({"alpha": artifacts["wrong"], "beta": artifacts["set-of-strings"]})
    words = ("--variations", "0,4", "--models", "zoo_two", "--cell", "xnnpack-fp32/*")
    finished = runner(*words, "--explain", "off")
    assert finished.verdicts() == {"xnnpack-fp32/alpha": "corrupt", "xnnpack-fp32/beta": "order-only"}
    kept = CellFile.load(runner.sweeps / "xnnpack-fp32" / "alpha", arrays=True).evidence
    assert [tensor.kind for tensor in kept.tensors][:1] == ["output"]


def test_variations_that_disagree_are_shown_by_their_names() -> None:
    kept = Evidence(agreeing=[["seed0-heap0", "seed1-heap0"], ["seed2-heap1"]])
    assert kept.labels("changed", OF_RUN) == OF_RUN
    assert kept.labels("unstable", OF_RUN) == Labels("seed0-heap0", "seed2-heap1")
    assert Evidence().labels("order-only", OF_RUN) == OF_VARIATIONS
