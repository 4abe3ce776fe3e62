"""The pass at which two exports part, and the one at which an export departs from its golden."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import PARTITIONING, STAGE, PassRun
from executorch_goldens.goldens.labels import OF_TOOLCHAINS
from executorch_goldens.judging.divergence import How, divergence, divergence_from_golden
from executorch_goldens.zoo.variations import Omission
from tests.support.screens import of_divergence

FOLD = PassRun("arm backend", "Fold", "a", True)
FUSE = PassRun("arm backend", "Fuse", "b", True)
IDLE = PassRun("arm backend", "Decompose", "b", False)
PTE = PassRun(STAGE, "pte", "p", True)
TAGS = [PassRun(PARTITIONING, "TOSAPartitioner", order, True) for order in ("tag0 tag1", "tag1 tag0")]


def test_the_first_pass_whose_result_differs_is_named(snapshot: SnapshotAssertion) -> None:
    other = replace(FUSE, fingerprint="c")
    found = divergence([FOLD, FUSE, FOLD], [FOLD, other, FUSE])
    assert of_divergence(found) == snapshot
    assert (found.name, found.how, found.number) == ("Fuse", How.RESULTS, 2)


def test_a_partitioner_that_parts_is_shown_with_its_tags_in_both_orders(snapshot: SnapshotAssertion) -> None:
    found = divergence([TAGS[0], FOLD], [TAGS[1], FUSE])
    assert of_divergence(found) == snapshot


def test_other_passes_or_fewer_are_said_to_be(snapshot: SnapshotAssertion) -> None:
    other, fewer = divergence([FOLD], [FUSE]), divergence([FOLD, FUSE], [FOLD])
    assert of_divergence(other, fewer) == snapshot
    assert fewer.how == How.PASSES


def test_equal_runs_part_nowhere() -> None:
    assert divergence([FOLD, PTE], [FOLD, PTE]) is None
    assert divergence_from_golden([FOLD, FUSE, PTE], [FOLD, IDLE, FUSE, PTE]) is None


@pytest.mark.parametrize(
    ("runs", "name"),
    [
        ([FOLD, replace(FUSE, fingerprint="c"), PTE], "Fuse"),
        ([FOLD, replace(IDLE, changed=True), FUSE, PTE], "Decompose"),
        ([FOLD, replace(FUSE, changed=False), PTE], "Fuse"),
        ([FOLD, PTE], "Fuse"),
        ([FOLD, FUSE, replace(PTE, fingerprint="q")], "pte"),
        ([FOLD, FUSE, PTE, FUSE], "Fuse"),
        ([], "Fold"),
    ],
    ids=[
        "another result",
        "it acts now",
        "it acts no more",
        "it is gone",
        "a stage",
        "one more",
        "nothing ran",
    ],
)
def test_a_departure_names_the_pass_and_what_it_does_now(
    runs: list[PassRun], name: str, snapshot: SnapshotAssertion
) -> None:
    found = divergence_from_golden([FOLD, FUSE, PTE], runs)
    assert found.name == name
    assert of_divergence(found) == snapshot


def test_a_partitioner_departs_with_its_tags(snapshot: SnapshotAssertion) -> None:
    found = divergence_from_golden([TAGS[0], FUSE], [TAGS[1], FUSE])
    assert of_divergence(found) == snapshot


def test_where_only_serialization_parts_the_pass_that_gave_other_names_is_named(
    snapshot: SnapshotAssertion,
) -> None:
    one, other = replace(FUSE, beyond="names"), replace(FUSE, beyond="other names")
    found = divergence([FOLD, one, PTE], [FOLD, other, replace(PTE, fingerprint="q")])
    assert of_divergence(found) == snapshot
    assert (found.name, found.how) == ("Fuse", How.NAMES)


def test_a_pass_that_makes_another_graph_is_named_before_one_that_gives_other_names() -> None:
    named = [replace(FOLD, beyond=names) for names in ("names", "other names")]
    found = divergence([named[0], FUSE, PTE], [named[1], replace(FUSE, fingerprint="c"), PTE])
    assert found.name == "Fuse"


def test_a_partitioner_parts_where_equal_tags_stand_for_other_nodes(snapshot: SnapshotAssertion) -> None:
    found = divergence([replace(TAGS[0], beyond="a b"), FOLD], [replace(TAGS[0], beyond="b a"), FUSE])
    assert of_divergence(found) == snapshot


def test_an_export_that_fails_departs_where_it_fails_unless_a_pass_before_did(
    snapshot: SnapshotAssertion,
) -> None:
    ended = divergence_from_golden([FOLD, FUSE, PTE], [FOLD], "FuseVisitor")
    before = divergence_from_golden([FOLD, FUSE, PTE], [replace(FOLD, fingerprint="c")], "FuseVisitor")
    assert (ended.name, before.name) == ("FuseVisitor", "Fold")
    assert of_divergence(ended) == snapshot


def test_a_pass_that_was_put_in_is_named_where_the_export_fails_behind_it() -> None:
    found = divergence_from_golden([FOLD, FUSE, PTE], [FOLD, replace(IDLE, changed=True)], "FuseVisitor")
    assert found.name == "Decompose"


# What can be left out to see whether it is the cause


def started(*runs: PassRun) -> list[PassRun]:
    return [replace(run, start=number) for number, run in enumerate(runs, 1)]


def test_the_run_of_a_pass_that_diverges_can_be_left_out() -> None:
    other = replace(FUSE, fingerprint="c")
    found = divergence(started(FOLD, FUSE), started(FOLD, other))
    assert found.omission == Omission(2)


def test_the_run_of_a_pass_that_departs_can_be_left_out_unless_it_is_missing() -> None:
    acts = divergence_from_golden([FOLD, FUSE], started(FOLD, replace(IDLE, changed=True), FUSE))
    missing = divergence_from_golden([FOLD, FUSE], started(FOLD))
    assert (acts.omission, missing.omission) == (Omission(2), None)


def test_no_stage_can_be_left_out_nor_what_was_not_numbered() -> None:
    for runs in (started(replace(PTE, fingerprint="q")), [replace(FOLD, fingerprint="c")]):
        found = divergence_from_golden([FOLD if runs[0].name == "Fold" else PTE], runs)
        assert found.omission is None


def test_a_partitioner_gets_the_goldens_order_of_tags_and_else_that_of_the_first_variation() -> None:
    departed = divergence_from_golden([TAGS[0]], started(TAGS[1]))
    recorded = divergence(started(TAGS[1]), started(TAGS[0]), [TAGS[0]])
    alone = divergence(started(TAGS[1]), started(TAGS[0]))
    other_tags = divergence_from_golden([replace(TAGS[0], fingerprint="tag0")], started(TAGS[1]))
    found = [each.omission for each in (departed, recorded, alone, other_tags) if each is not None]
    golden, first = Omission(1, ("tag0", "tag1")), Omission(1, ("tag1", "tag0"))
    assert found == [golden, golden, first, None]


def test_a_comparison_of_toolchains_speaks_of_its_base(snapshot: SnapshotAssertion) -> None:
    runs = [FOLD, replace(FUSE, fingerprint="other"), PTE]
    found = divergence_from_golden([FOLD, FUSE, PTE], runs)
    added = divergence_from_golden([PTE], [replace(IDLE, changed=True), PTE])
    assert of_divergence(found, added, labels=OF_TOOLCHAINS) == snapshot
