"""Differences from the golden, and new goldens: the text that a person sees."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from executorch_goldens.artifact import (
    Artifact,
    Cell,
    Failure,
    Lowered,
    Sample,
    Tensor,
)
from executorch_goldens.goldens import rendering
from executorch_goldens.judging import verdict
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.zoo.targets import TARGETS
from tests.support.making import (
    CELL,
    DUPLICATE_OUTPUTS,
    GRAPH,
    WRONG_CAT,
    failure,
    lowered,
    tosa,
)

ORIGIN = rendering.MadeWith({"executorch": "1.4.1"}, ["seed0-heap0"], "none")


def texts(result: Lowered | Failure) -> dict[str, str]:
    return rendering.render(Artifact(result, (), 1.0), ORIGIN)


def test_a_change_names_the_files_and_shows_the_lines() -> None:
    found = verdict.changed(CELL, texts(lowered()), texts(lowered(GRAPH.replace("(a, b)", "(a, a)"))))
    assert found.name == "changed"
    assert "graph.txt" in found.reason
    assert "manifest.txt" not in found.reason
    text = "\n".join(found.detail)
    assert "-    return (a, b)" in text
    assert "+    return (a, a)" in text
    assert "golden" in text


def test_an_operator_that_is_left_outside_is_shown_with_the_partitioners_reason() -> None:
    call = (
        "%sin : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%a,), kwargs = {})"
    )
    now = GRAPH.replace("    return", f"    {call}\n    return")
    refusals = (("aten.sin.default", "no table for it"), ("aten.cos.default", "not in the list"))
    found = verdict.changed(CELL, texts(lowered()), texts(lowered(now)), refusals)
    assert found.detail[0].endswith("operators outside delegates (1.50 times): aten.sin.default +1")
    assert "  aten.sin.default is outside: no table for it" in found.detail
    assert not any("aten.cos" in line for line in found.detail)


def test_a_failure_that_goes_away_is_a_change() -> None:
    found = verdict.changed(CELL, texts(failure()), texts(lowered()))
    assert found.name == "changed"
    assert "now lowers" in found.reason


def test_a_failure_that_is_not_in_the_golden_is_failed_and_shown() -> None:
    found = verdict.changed(CELL, texts(lowered()), texts(failure("no such thing")))
    assert found.name == "failed"
    assert found.recordable
    assert {"pass: SomePass", "message: no such thing"} <= set(found.detail)


def new(result: Lowered | Failure, cell: Cell = CELL) -> Verdict:
    return verdict.new(cell, Artifact(result, (), 1.0), texts(result))


def test_a_new_failure_leads_with_it_and_shows_its_facts() -> None:
    found = new(failure("no such thing", "export"))
    assert found.reason == "FAILURE: export, SomePass: ValueError: no such thing; has no golden"
    assert {"stage: export", "message: no such thing"} <= set(found.detail)
    assert found.detail[-1] == "recording it accepts that it fails"
    assert verdict.kind_of_new(found.name, found.reason) == "FAILURE"
    assert found.recordable


def test_a_new_program_that_delegates_nothing_leads_with_it() -> None:
    found = new(lowered())
    assert found.reason.startswith("NO DELEGATE: ")
    assert "operators outside" in found.reason
    assert found.reason.endswith("; has no golden")
    assert verdict.kind_of_new(found.name, found.reason) == "NO DELEGATE"


def test_a_new_program_without_delegates_leads_with_its_operators_where_its_target_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = replace(TARGETS["xnnpack-fp32"], name="bare", delegates=False)
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**TARGETS, "bare": bare})
    found = new(lowered(), Cell("bare", "case"))
    assert "operators outside" in found.reason
    assert (verdict.kind_of_new(found.name, found.reason), found.detail) == ("", ())


def test_a_new_program_leads_with_what_it_is_made_of() -> None:
    found = new(replace(lowered(GRAPH, tosa(WRONG_CAT)), not_run="no kernel for it"))
    assert re.match(r"1 delegate with \d+ operators?, \d+ operators? outside", found.reason)
    assert found.reason.endswith("; has no golden; not judged, not run: no kernel for it")
    assert verdict.kind_of_new(found.name, found.reason) == ""
    assert not found.detail


def test_a_new_quantized_program_says_how_far_it_is_above_the_noise_of_quantization() -> None:
    wanted, given = np.float32([1.0, -1.0]), np.float32([1.01, -1.01])
    sample = Sample("example", (Tensor.of(given),), (Tensor.of(given),), floats=(Tensor.of(wanted),))
    found = new(replace(lowered(GRAPH, tosa(WRONG_CAT)), samples=(sample,)))
    assert re.search(r" operators? outside.*, SQNR 40\.0 dB; has no golden$", found.reason)


def test_only_what_was_recorded_or_stable_is_accepted() -> None:
    assert verdict.Verdict(CELL, "stable", "").accepted
    assert not Verdict(CELL, "new", "").accepted
    assert Verdict(CELL, "new", "", recorded=True).accepted


def test_a_payload_that_differs_is_told_by_its_first_difference_from_the_golden() -> None:
    right, wrong = lowered(GRAPH, tosa(DUPLICATE_OUTPUTS)), lowered(GRAPH, tosa(WRONG_CAT))
    assert verdict.payload_difference("delegate_0", texts(right), right) == ""
    assert verdict.payload_difference("delegate_0", texts(right), wrong) != ""
    assert verdict.payload_difference("delegate_1", texts(right), wrong) == ""
    assert verdict.payload_difference("lowered", texts(right), wrong) == ""
