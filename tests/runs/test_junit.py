"""A JUnit file of a run: fields, for what reads no messages."""

from __future__ import annotations

from xml.etree import ElementTree

from syrupy.assertion import SnapshotAssertion

from tests.conftest import Artifacts
from tests.runs.conftest import WHOLE
from tests.support.runner import Runner


def test_a_failure_in_a_junit_file_has_the_kind_the_reason_and_the_cause_in_fields(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    recorded.answers({"alpha": artifacts["steady"], "tosa-fp/alpha": artifacts["wrong"]})
    file = recorded.folder / "junit.xml"
    recorded(*WHOLE, "--cell", "tosa-*/alpha", f"--junit-xml={file}")
    failed, steady = sorted(ElementTree.parse(file).iter("testcase"), key=lambda case: case.attrib["name"])
    (failure,) = failed.iter("failure")
    assert (failure.get("type"), failure.get("message")) == snapshot
    assert {each.get("name"): each.get("value") for each in failed.iter("property")} == snapshot(
        name="properties"
    )
    assert not [*steady.iter("property"), *steady.iter("failure")]
