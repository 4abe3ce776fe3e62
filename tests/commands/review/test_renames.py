"""Cells that differ from their goldens in names alone: one cause in a review."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.causes.groups import PENDING
from executorch_goldens.goldens import golden
from tests.commands.review.conftest import RUN, Artifacts, Review, cells, found, shown, titled
from tests.support.making import renamed, with_texts
from tests.support.runner import Runner

NAMES = "executorch_call_delegate -> delegated"


@pytest.mark.slow
def test_names_alone_are_one_cause_and_one_accept_whichever_pass_gave_them(
    renaming: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    groups = found(renaming)
    names = titled(renaming, "names alone")
    assert len(groups) == 2
    assert [names.title, names.head] == snapshot
    assert (names.state, names.wrong, dict(names.unlike)) == (PENDING, (), {})
    listed = review()
    assert names.head in listed.out
    said = review("--accept", names.name)
    assert said.code == cli.SAME, said.err
    assert list(found(renaming)) == [title for title in groups if title != names.title]
    assert set(renaming(*RUN).verdicts().values()) == {"changed", "stable"}


def test_names_alone_are_accepted_as_one_cause(
    renaming: Runner, review: Review, snapshot: SnapshotAssertion
) -> None:
    accepted = review("--accept", titled(renaming, "names alone").name)
    assert shown(renaming, accepted.out) == snapshot


def test_variations_that_differ_in_names_alone_are_no_such_cause(
    renaming: Runner, artifacts: Artifacts
) -> None:
    steady = artifacts["steady"][0]
    renaming.answers({"*": (steady, renamed(steady, "executorch_call_delegate_7"))})
    assert renaming(*RUN, "--cell", "tosa-*/gamma").code == 1
    assert len(titled(renaming, "names alone").members) == 6
    assert cells(titled(renaming, "order-only")) == {"tosa-fp/gamma", "tosa-int/gamma"}


def test_a_golden_that_has_changed_since_is_no_longer_one_of_other_names(renaming: Runner) -> None:
    path = renaming.root / "tosa-fp/beta.txt"
    texts = golden.read(path)
    graph = texts.texts()["graph"].replace("getitem", "given")
    golden.write(path, with_texts(texts, {"graph": graph}))
    names = titled(renaming, "names alone")
    assert (len(names.members), len(found(renaming))) == (7, 3)
