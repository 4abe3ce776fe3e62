"""The words of each finding: the reason, and the lines under it."""

from __future__ import annotations

from typing import get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.goldens import findings
from executorch_goldens.goldens.findings import Finding
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.words.findings import begins, lines, place, reason, title
from tests.support.findings import EVERY
from tests.support.screens import screen


@pytest.mark.parametrize("kind", get_args(findings.OneOf), ids=lambda kind: kind.__name__)
def test_each_kind_of_finding_has_words(kind: type[Finding], snapshot: SnapshotAssertion) -> None:
    found = [each for each in EVERY if type(each) is kind]
    assert found
    assert all(map(reason, found))
    assert screen("\n".join(lines(each, "tosa-int")) + "\n" for each in found) == snapshot


def test_a_comparison_of_toolchains_speaks_of_its_base(snapshot: SnapshotAssertion) -> None:
    against = (findings.Differs, findings.NamesDiffer, findings.NewFailure, findings.NewProgram)
    found = [each for each in EVERY if isinstance(each, against)]
    assert screen(reason(each, labels=OF_TOOLCHAINS) for each in found) == snapshot


def test_a_title_names_no_variation() -> None:
    lost = [each for each in EVERY if isinstance(each, findings.NotFinished)]
    assert [title(each, "tosa-int") for each in lost] == ["killed by SIGSEGV", "exit status 3"]


def test_where_values_begin_is_told_by_operator_and_backend_or_as_it_is_known(
    snapshot: SnapshotAssertion,
) -> None:
    found = [findings.begins([each]) for each in EVERY]
    known = [each for each in found if each]
    assert screen(f"{place(each)} | begin {begins(each)}" for each in known) == snapshot
    assert place({}) == ""
