"""Differences from the golden, and new goldens: the text that a person sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Sample, Tensor
from executorch_goldens.diff.difference import Difference
from executorch_goldens.goldens import rendering
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import Record
from executorch_goldens.judging import verdict
from executorch_goldens.judging.verdict import Acceptance, Verdict
from executorch_goldens.zoo.targets import TARGETS
from tests.support.making import CELL, DUPLICATE_OUTPUTS, GRAPH, WRONG_CAT, failure, lowered, tosa
from tests.support.screens import of_verdict
from tests.support.verdicts import verdict as verdict_of

ORIGIN = rendering.MadeWith({"executorch": "1.4.1"}, ["seed0-heap0"], Numerics())


def texts(result: Lowered | Failure) -> Record:
    return rendering.render(Artifact(result, ()), ORIGIN)


def changed(golden: Lowered | Failure, now: Lowered | Failure, *refusals: tuple[str, str]) -> Verdict:
    failed = now if isinstance(now, Failure) else None
    return verdict.changed(CELL, Difference(texts(golden), texts(now)), failed, refusals)


def test_a_change_names_the_files_and_shows_the_lines(snapshot: SnapshotAssertion) -> None:
    assert of_verdict(changed(lowered(), lowered(GRAPH.replace("(a, b)", "(a, a)")))) == snapshot


def test_an_operator_that_is_left_outside_is_shown_with_the_partitioners_reason(
    snapshot: SnapshotAssertion,
) -> None:
    call = (
        "%sin : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%a,), kwargs = {})"
    )
    now = GRAPH.replace("    return", f"    {call}\n    return")
    refusals = (("aten.sin.default", "no table for it"), ("aten.cos.default", "not in the list"))
    assert of_verdict(changed(lowered(), lowered(now), *refusals)) == snapshot


def test_a_failure_that_goes_away_is_a_change_and_one_that_comes_may_be_recorded(
    snapshot: SnapshotAssertion,
) -> None:
    assert of_verdict(changed(failure(), lowered())) == snapshot(name="goes")
    comes = changed(lowered(), failure("no such thing"))
    assert comes.recordable
    assert of_verdict(comes) == snapshot(name="comes")


def new(result: Lowered | Failure, cell: Cell = CELL) -> Verdict:
    return verdict.new(cell, Artifact(result, ()), texts(result))


def test_a_new_golden_leads_with_what_a_person_has_to_decide(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    bare = replace(TARGETS["xnnpack-fp32"], name="bare", delegates=False)
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**TARGETS, "bare": bare})
    wanted, given = np.float32([1.0, -1.0]), np.float32([1.01, -1.01])
    outputs = (Tensor.from_array(given),)
    sample = Sample("example", outputs, outputs, floats=(Tensor.from_array(wanted),))
    whole = lowered(GRAPH, tosa(WRONG_CAT))
    shown = {
        "a failure": (new(failure("no such thing", "export")), "FAILURE"),
        "nothing delegated": (new(lowered()), "NO DELEGATE"),
        "a target without delegates": (new(lowered(), Cell("bare", "case")), ""),
        "delegated, and not run": (new(replace(whole, not_run="no kernel for it")), ""),
        "quantized": (new(replace(whole, samples=(sample,))), ""),
    }
    for name, (found, kind) in shown.items():
        assert found.recordable
        assert found.kind_of_new == kind
        assert of_verdict(found) == snapshot(name=name)


def test_only_what_was_recorded_or_stable_is_accepted() -> None:
    assert verdict_of("stable").accepted
    assert not verdict_of("new").accepted
    assert verdict_of("new", acceptance=Acceptance.RECORDED).accepted


def test_a_payload_that_differs_is_told_by_its_first_difference_from_the_golden() -> None:
    right, wrong = lowered(GRAPH, tosa(DUPLICATE_OUTPUTS)), lowered(GRAPH, tosa(WRONG_CAT))
    none, found = (Difference(texts(right), verdict.delegates_of(made)) for made in (right, wrong))
    assert verdict.payload_difference("delegate_0", none) is None
    assert verdict.payload_difference("delegate_0", found) is not None
    assert verdict.payload_difference("delegate_1", found) is None
    assert verdict.payload_difference("lowered", found) is None
