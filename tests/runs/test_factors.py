"""The factor that a disagreement follows: exports with one factor changed, their messages, and when they are made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Outcome, TimedOut
from executorch_goldens.judging.attribution import NONE, Attribution, Follows
from executorch_goldens.results.proposals import CellFile
from executorch_goldens.running.explaining import Diagnosis, Explainer, Probe, Suspect, with_shown
from executorch_goldens.running.factors import Experiment
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.seconds import Seconds
from executorch_goldens.words.causes import attribution
from executorch_goldens.zoo.variations import FACTORS, Variation, exported_before, variations
from tests.support.making import GRAPH, MISWIRED, RENUMBERED, artifact, lowered
from tests.support.runner import Runner
from tests.support.screens import of_verdict
from tests.support.verdicts import verdict

ONE, OTHER = variations((0, 4))

#: Two artifacts that differ in order only.
ARTIFACTS = tuple(artifact(result) for result in (lowered(GRAPH), lowered(RENUMBERED, pte=b"other")))


def test_the_default_variations_are_called_what_manifests_call_them() -> None:
    names = [variation.name for variation in variations()]
    assert names == ["seed0-heap0", "seed4-heap1", "seed27-heap2", "seed37-heap3"]


def test_a_variation_takes_one_factor_of_another_and_its_name_says_so() -> None:
    one, other = ONE.within(Path("/one/here")), OTHER.within(Path("/one/elsewhere"))
    taken = {name: one.taking([name], other) for name in FACTORS}
    for name, variation in taken.items():
        differing = [
            each for each, field in FACTORS.items() if getattr(variation, field) != getattr(one, field)
        ]
        assert differing == [name]
        assert getattr(variation, FACTORS[name]) == getattr(other, FACTORS[name])
    # The key of an export, and the log of a template, go by it.
    assert (
        len({variation.name for variation in (*taken.values(), one, other, ONE, OTHER)}) == len(FACTORS) + 4
    )
    assert one.taking(FACTORS, other) == other


def test_listings_and_history_follow_the_heaps_seed_unless_they_are_said() -> None:
    assert (OTHER.listings, OTHER.history) == (1, 1)
    said = Variation(4, 1, listings_seed=0, history_seed=2)
    assert (said.listings, said.history) == (0, 2)
    assert exported_before(("a", "b"), said.history) == ("a", "b", "b")


def alone(*factors: str) -> Attribution:
    return Attribution(Follows.ALONE, tuple((factor,) for factor in factors), tuple(FACTORS))


def together(*pairs: tuple[str, str]) -> Attribution:
    return Attribution(Follows.TOGETHER if pairs else Follows.SEVERAL, pairs, tuple(FACTORS))


def test_what_is_said_of_a_factor_names_it_and_rules_out_the_others(snapshot: SnapshotAssertion) -> None:
    found = alone("hash seed")
    assert found.factor == "hash seed"
    several = alone("heap", "history")
    assert several.factor == "heap, history"
    every = alone(*FACTORS)
    assert [attribution(each) for each in (found, several, every)] == snapshot


def test_what_is_said_of_factors_that_act_together_only(snapshot: SnapshotAssertion) -> None:
    pair = together(("hash seed", "listings"))
    assert pair.factor == "hash seed + listings"
    more = together()
    assert more.factor is None
    assert [attribution(each) for each in (pair, more)] == snapshot


def test_what_does_not_repeat_follows_nothing_and_what_is_ordered_by_address_follows_the_heap(
    snapshot: SnapshotAssertion,
) -> None:
    unrepeated = Attribution(Follows.NOTHING, variation=ONE.name)
    assert unrepeated.factor == NONE
    assert attribution(unrepeated) == snapshot
    assert Attribution(Follows.ADDRESS, variation=ONE.name).factor == "heap"
    assert Attribution(Follows.GONE, exports=16).factor is None


@pytest.mark.parametrize(
    ("followed", "factor"),
    [(("umask",), "umask"), (("time zone", "host"), "surroundings"), (("user",), "user")],
)
def test_of_the_surroundings_the_one_that_is_followed_is_named(
    monkeypatch: pytest.MonkeyPatch, followed: tuple[str, ...], factor: str, snapshot: SnapshotAssertion
) -> None:
    def exported(self: Experiment, asked: Sequence[Variation]) -> list[Outcome]:
        self.exports += len(asked)
        found = [set(followed) <= set(variation.changed_surroundings) for variation in asked]
        named = zip(asked, found, strict=True)
        return [Outcome(self.cell, each.name, ARTIFACTS[other], 1.0, 1.0) for each, other in named]

    monkeypatch.setattr(Experiment, "_exported", exported)
    monkeypatch.setattr(Experiment, "_repeated", lambda self: exported(self, [self.one] * 3))
    looking = experiment("steady")
    found = looking.run()
    assert found.factor == factor
    # Three, one more, all factors changed, each of the six, each of the six surroundings.
    assert looking.exports == 17
    assert attribution(found) == snapshot


# Whole runs


def test_the_factor_is_in_the_message_and_in_the_results(runner: Runner, snapshot: SnapshotAssertion) -> None:
    runner.answers({"alpha": ARTIFACTS})
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4")
    # Replayed answers follow the hash seed.
    # The verdict is printed before, and the cell's page has it all.
    assert finished.printed() == snapshot
    kept = CellFile.load(runner.sweeps / "tosa-fp" / "alpha").evidence
    assert dict(kept.message)["factor"] == snapshot
    row = finished.rows["tosa-fp/alpha"]
    assert (row["verdict"], row["attribution"]["factors"]) == ("order-only", [["hash seed"]])


def test_a_disagreement_that_does_not_come_back_says_so(runner: Runner, snapshot: SnapshotAssertion) -> None:
    runner.answers({"alpha": ARTIFACTS, "again": {"alpha": ARTIFACTS[0]}})
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4")
    # Three under the first variation, once more, all factors changed, each of the six.
    assert finished.printed() == snapshot
    assert finished.rows["tosa-fp/alpha"]["attribution"]["follows"] == "gone"


def test_an_export_that_is_lost_leaves_the_factor_open(runner: Runner, snapshot: SnapshotAssertion) -> None:
    runner.answers({"alpha": ARTIFACTS, "again": {"alpha": TimedOut(5.0, 5.1, 6.0, 0.0)}})
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4")
    assert finished.printed() == snapshot
    assert finished.verdicts() == {"tosa-fp/alpha": "order-only"}


def test_what_is_wrong_under_every_variation_follows_nothing_that_is_varied(
    runner: Runner, snapshot: SnapshotAssertion
) -> None:
    runner.answers({"alpha": replace(ARTIFACTS[0], result=MISWIRED)})
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4")
    assert finished.verdicts() == {"tosa-fp/alpha": "corrupt"}
    assert finished.printed() == snapshot
    assert finished.rows["tosa-fp/alpha"]["attribution"]["follows"] == "constant"


def test_cells_that_agree_have_no_factor(runner: Runner) -> None:
    runner.answers({"alpha": ARTIFACTS[0]})
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4")
    assert finished.rows["tosa-fp/alpha"]["attribution"] is None
    assert "follows" not in finished.output


@pytest.mark.parametrize(
    ("explain", "factors"), [pytest.param("off", None, marks=pytest.mark.slow), ("some", [["hash seed"]])]
)
def test_the_factor_is_sought_unless_nothing_is_to_be_explained(
    runner: Runner, explain: str, factors: list[list[str]] | None
) -> None:
    runner.answers({"*": ARTIFACTS})
    zoo = runner.zoo("zoo", "alpha", "beta", "gamma", "delta")
    finished = runner(
        *("--models", zoo, "--cell", "tosa-fp/*", "--variations", "0,4", "--explain", explain, "-v"),
    )
    found = [row["attribution"] for row in finished.rows.values()]
    assert [each and each["factors"] for each in found] == [factors] * 4


def test_when_the_seconds_for_it_are_over_nothing_more_is_exported_and_the_cell_says_so(
    snapshot: SnapshotAssertion,
) -> None:
    def never(suspect: Suspect, tick: Callable[[], None]) -> Diagnosis:
        raise AssertionError(suspect)

    plan: Any = SimpleNamespace(options=SimpleNamespace(budget=60.0))
    explainer = Explainer(plan, (), Seconds({}))
    explainer._factor = never  # type: ignore[method-assign]
    suspect = Suspect(verdict("unstable", "why", cell=Cell("tosa-fp", "alpha")), False, (ONE, OTHER))
    took: list[float] = []
    shown = explainer._shown(
        Probe(0, suspect, "the factor", explainer._factor), time.monotonic() - 61.0, took.append
    )
    assert (shown.factor.follows, shown.factor.why) == (Follows.UNSOUGHT, "60")
    assert of_verdict(with_shown(suspect.judged, shown)) == snapshot
    assert (explainer.left, took[0] > 60.0) == (["the factor"], True)


def test_a_known_disagreement_is_not_exported_again(runner: Runner) -> None:
    runner.know({"tosa-fp/alpha": "order-only: upstream issue 1"})
    runner.answers({"*": ARTIFACTS})
    finished = runner("--models", runner.zoo("zoo", "alpha"), "--cell", "tosa-fp/*", "--variations", "0,4")
    assert finished.code == 0, finished.output
    assert finished.rows["tosa-fp/alpha"]["attribution"] is None


# Real exports


def experiment(case: str) -> Experiment:
    settings = Settings(default_interpreter(), ("tests.support.zoo_factors",), (), 2, 180.0)
    return Experiment(Cell("xnnpack-fp32", case), ONE, OTHER, settings, ("xnnpack-fp32",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "factor"),
    [
        ("follows-hash", "hash seed"),
        ("follows-listings", "listings"),
        ("follows-directory", "directory"),
        ("follows-history", "history"),
        ("follows-two", "hash seed + listings"),
        ("follows-zone", "time zone"),
        ("follows-date", "time zone"),
        ("follows-locale", "locale"),
        ("follows-umask", "umask"),
        ("follows-home", "user"),
        ("follows-user", "user"),
        ("follows-host", "host"),
        ("follows-host-variable", "host"),
        ("follows-processors", "processors"),
        ("follows-time", NONE),
        ("follows-process", NONE),
        ("follows-nothing", None),
    ],
)
def test_each_factor_is_found(case: str, factor: str | None) -> None:
    found = experiment(case).run()
    assert found.factor == factor, attribution(found)


@pytest.mark.slow
def test_what_is_ordered_by_address_follows_the_heap() -> None:
    """Whatever else moves addresses may be named with it."""
    found = experiment("follows-heap").run()
    assert "heap" in found.factor.split(", "), attribution(found)


@pytest.mark.slow
def test_a_run_that_takes_all_from_the_store_seeks_the_factor_apart_from_it(runner: Runner) -> None:
    asked = (
        *(
            "--models",
            "tests.support.zoo_factors",
            "--cell",
            "xnnpack-fp32/follows-hash",
            "--variations",
            "0,4",
            "-v",
        ),
        *("--cache", str(runner.folder / "store")),
    )
    first, again = runner(*asked), runner(*asked)
    for finished in (first, again):
        assert finished.rows["xnnpack-fp32/follows-hash"]["attribution"]["factors"] == [["hash seed"]], (
            finished.output
        )
    assert "reused 0 of 2 exports" in first.output
    assert "reused 2 of 2 exports" in again.output
    kept = [file for file in (runner.folder / "store" / "exports").rglob("*") if file.is_file()]
    assert len(kept) == 2
