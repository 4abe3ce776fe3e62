"""Recording: files that an update writes, leaves alone, and refuses.

The exports are real ones made once (`conftest.exports`) and put in the place of the sweep (`replay`).
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import plugins
from executorch_goldens.artifact import Artifact, Cell, Lowered
from executorch_goldens.goldens import golden
from tests.conftest import ZOO_VERDICTS, Artifacts, ZooRun
from tests.runs.conftest import SEEDS, UPDATE, WHOLE
from tests.support.making import with_another_program, with_graph, wrong
from tests.support.runner import Runner


@pytest.mark.slow
def test_each_case_of_the_zoo_has_its_verdict(zoo_run: ZooRun) -> None:
    expected = {f"xnnpack-fp32/{case}": verdict for case, verdict in ZOO_VERDICTS.items()}
    assert zoo_run.finished.verdicts() == expected
    assert zoo_run.finished.code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.slow
def test_only_what_agrees_and_is_right_is_recorded(zoo_run: ZooRun) -> None:
    assert zoo_run.runner.recorded() == {"xnnpack-fp32/steady", "xnnpack-fp32/does-not-lower"}
    assert "not recorded" in zoo_run.finished.output


@pytest.mark.slow
def test_a_failure_to_lower_is_recorded_with_its_facts(zoo_run: ZooRun) -> None:
    texts = golden.read(golden.file_of(zoo_run.runner.root, Cell("xnnpack-fp32", "does-not-lower")))
    assert sorted(texts.texts()) == ["failure", "manifest", "trace"]
    assert "stage: emit" in texts.texts()["failure"]
    assert "zoo::opaque" in texts.texts()["failure"]


def test_a_run_says_which_new_cells_fail_or_delegate_nothing(
    runner: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    steady = artifacts["steady"][0]
    assert isinstance(steady.result, Lowered)
    nothing = replace(steady, result=replace(steady.result, delegates=()))
    runner.zoo("zoo_of_kinds", "alpha", "beta", "gamma")
    runner.answers({"alpha": steady, "beta": artifacts["does-not-lower"], "gamma": nothing})
    words = (*SEEDS, "--models", "zoo_of_kinds", "--cell", "xnnpack-fp32/*")
    seen = runner(*words)
    assert seen.printed() == snapshot
    runner.expect("xnnpack-fp32/beta")
    runner.expect("xnnpack-fp32/gamma", cause="")
    recorded = runner(*words, UPDATE)
    assert recorded.code == 0, recorded.output
    assert recorded.printed() == snapshot


def test_a_recorded_run_is_stable_and_writes_nothing(recorded: Runner) -> None:
    before = recorded.files()
    finished = recorded(*WHOLE)
    assert finished.code == 0, finished.output
    assert set(finished.verdicts().values()) == {"stable"}
    assert recorded.files() == before


def test_updating_twice_rewrites_nothing(recorded: Runner) -> None:
    before = recorded.files()
    finished = recorded(*WHOLE, UPDATE)
    assert finished.code == 0, finished.output
    assert recorded.files() == before


def test_fewer_variations_make_no_difference(recorded: Runner, artifacts: Artifacts) -> None:
    before = recorded.files()
    recorded.answers({"alpha": artifacts["steady"][0], "beta": artifacts["does-not-lower"][0]})
    finished = recorded("--models", "zoo_both", "--variations", "1")
    assert finished.code == 0, finished.output
    assert recorded.files() == before


def test_recording_needs_two_variations(runner: Runner, artifacts: Artifacts) -> None:
    runner.answers({"*": artifacts["steady"][0]})
    models = ("--models", runner.zoo("zoo_one", "alpha"))
    for one in (("--variations", "4,"), ("--variations", "1")):
        runner(*models, *one, UPDATE).refused(UPDATE, "at least 2 variations", "--variations quick")
        assert not runner.goldens.exists()


@pytest.mark.parametrize(
    ("words", "shortcuts"),
    [((), [*plugins.shortcuts()]), (("--no-shortcuts",), []), ((UPDATE,), []), ((f"{UPDATE}-new-only",), [])],
    ids=str,
)
def test_goldens_are_recorded_with_the_toolchain_as_it_is(
    recorded: Runner, words: tuple[str, ...], shortcuts: list[str]
) -> None:
    recorded(*WHOLE, "--cell", "tosa-fp/alpha", *words)
    assert json.loads((recorded.sweeps / "run.json").read_text())["settings"]["shortcuts"] == shortcuts


def test_more_variations_are_added_to_a_golden_and_nothing_else_changes(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    one = ("--cell", "tosa-fp/alpha", "--models", "zoo_both")
    place = f"{recorded.release}/tosa-fp/alpha.txt"
    recorded.answers({"alpha": artifacts["steady"][0]})
    before = recorded.files()
    assert recorded(*one, "--variations", "27,4,0").code == 0
    assert recorded.files() == before
    finished = recorded(*one, "--variations", "9,27,4", UPDATE)
    assert finished.code == 0, finished.output
    assert finished.printed() == snapshot
    after = recorded.files()
    assert {name for name in before if before[name] != after[name]} == {place}
    old, new = (files[place][0].decode().splitlines() for files in (before, after))
    # It says which agreed only where they are others than those of the release.
    assert next(line for line in new if line not in old).endswith(" seed9-heap0 seed27-heap1 seed4-heap2")
    assert [line.split(": ")[0] for line in new if line not in old] == ["variations", "contents"]
    assert [line.split(": ")[0] for line in old if line not in new] == ["contents"]
    assert recorded(*one, "--variations", "0,4", UPDATE).code == 0
    assert recorded.files() == after


def test_an_update_takes_over_the_trace_by_which_an_equal_artifact_is_made_now(
    recorded: Runner, artifacts: Artifacts
) -> None:
    one = ("--cell", "tosa-fp/alpha")
    made = artifacts["steady"][0]
    assert isinstance(made, Artifact)
    *others, last = made.watched.passes
    moved = replace(made.watched, passes=(*others, replace(last, fingerprint="0123456789ab", changed=True)))
    recorded.answers({"alpha": replace(made, watched=moved)})
    before = recorded.files()
    assert recorded(*WHOLE, *one).code == 0
    assert recorded.files() == before
    finished = recorded(*WHOLE, *one, UPDATE)
    assert finished.verdicts() == {"tosa-fp/alpha": "stable"}, finished.output
    after = recorded.files()
    place = f"{recorded.release}/tosa-fp/alpha.txt"
    assert {name for name in before if before[name][0] != after[name][0]} == {place}
    assert after[place][0].endswith(b" 0123456789ab\n")
    assert recorded(*WHOLE, *one).code == 0


def test_an_update_of_what_is_new_leaves_every_golden_as_it_is(
    recorded: Runner, artifacts: Artifacts
) -> None:
    """Neither the variations nor the trace of a stable golden are noted, and a changed one is not replaced."""
    made = artifacts["steady"][0]
    assert isinstance(made, Artifact)
    moved = replace(made.watched, passes=made.watched.passes[:-1])
    other = replace(made, watched=moved)
    recorded.zoo("zoo_both", "alpha", "beta", "gamma")
    answers = {"alpha": other, "beta": with_graph(made, "another graph\n"), "gamma": made}
    recorded.answers(answers)
    before = recorded.files()
    finished = recorded("--models", "zoo_both", "--variations", "9,27", f"{UPDATE}-new-only")
    assert set(finished.verdicts().values()) == {"stable", "changed", "new"}, finished.output
    after = recorded.files()
    assert {name: after[name] for name in before} == before
    assert {Path(name).stem for name in after.keys() - before.keys()} == {"gamma"}


FULL = ("--models", "zoo_both", "--cell", "tosa-fp/alpha", "--variations")


@pytest.mark.slow
def test_a_golden_of_four_variations_is_replaced_by_one_of_two_only_where_that_is_said(
    recorded: Runner, artifacts: Artifacts
) -> None:
    made = artifacts["steady"][0]
    recorded.answers({"alpha": made})
    assert recorded(*FULL, "full", UPDATE).code == 0
    recorded.answers({"alpha": with_graph(made, "another graph\n")})
    before = recorded.files()
    # The printed command records: it has as many variations as the golden.
    (accept,) = re.findall("accept: (.*)", recorded(*FULL, "quick").output)
    assert accept.endswith(f" --cell tosa-fp/alpha --variations full {UPDATE}")
    assert "quick" not in accept
    refused = recorded(*FULL, "quick", UPDATE)
    assert refused.verdicts() == {"tosa-fp/alpha": "changed"}
    refused.refused("not recorded", "names 4 variations", "this would name 2", "--fewer-variations")
    assert "accept:" not in refused.output
    assert recorded.files() == before
    # A full run may replace what was confirmed by more than that.
    recorded.answers({"alpha": made})
    assert recorded(*FULL, "full", UPDATE).code == 0
    assert recorded(*FULL, "6", UPDATE).code == 0
    recorded.answers({"alpha": with_graph(made, "a third graph\n")})
    assert recorded(*FULL, "full", UPDATE).code == 0


def test_an_update_of_one_cell_touches_no_other_cell_and_no_other_release(
    recorded: Runner, artifacts: Artifacts
) -> None:
    shutil.copytree(recorded.root, recorded.goldens / "1.0.0")
    before = recorded.files()
    changed = with_graph(artifacts["steady"][0], "another graph\n")
    recorded.answers({"alpha": changed, "beta": wrong(artifacts["steady"][0])})
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    assert finished.code == 0, finished.output
    assert finished.verdicts() == {"tosa-fp/alpha": "changed"}
    after = recorded.files()
    touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert touched == {f"{recorded.release}/tosa-fp/alpha.txt"}
    assert b"== graph ==\nanother graph\n==" in after[f"{recorded.release}/tosa-fp/alpha.txt"][0]


def test_a_change_is_shown_and_not_written_without_being_asked(
    recorded: Runner, artifacts: Artifacts, snapshot: SnapshotAssertion
) -> None:
    before = recorded.files()
    changed = with_graph(artifacts["steady"][0], "another graph\n")
    recorded.answers(
        {"tosa-fp/alpha": changed, "alpha": artifacts["steady"], "beta": artifacts["does-not-lower"]}
    )
    finished = recorded(*WHOLE)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert [cell for cell, name in finished.verdicts().items() if name != "stable"] == ["tosa-fp/alpha"]
    assert finished.printed() == snapshot
    assert recorded.files() == before


def test_where_programs_differ_in_what_a_golden_has_a_digest_of_a_run_names_the_whole_text(
    recorded: Runner, snapshot: SnapshotAssertion
) -> None:
    place = recorded.root / "xnnpack-fp32/alpha.txt"
    golden.write(place, with_another_program(golden.read(place)))
    finished = recorded(*WHOLE)
    assert finished.verdicts()["xnnpack-fp32/alpha"] == "changed"
    whole = recorded.results.parent / "xnnpack-fp32/alpha/seed0-heap0/golden.pte-text"
    assert finished.printed() == snapshot
    assert "memory_offset = " in whole.read_text()


@pytest.mark.parametrize("case", ["set-of-strings", "hashed-constant", "wrong"])
def test_what_disagrees_or_is_wrong_does_not_replace_a_golden(
    recorded: Runner, artifacts: Artifacts, case: str, snapshot: SnapshotAssertion
) -> None:
    before = recorded.files()
    recorded.answers({"*": artifacts[case]})
    finished = recorded(*WHOLE, "--cell", "xnnpack-fp32/alpha", UPDATE)
    assert finished.verdicts() == {"xnnpack-fp32/alpha": ZOO_VERDICTS[case]}
    finished.refused()
    assert finished.printed() == snapshot
    assert recorded.files() == before


def test_updating_is_refused_where_ci_is_set(recorded: Runner) -> None:
    before = recorded.files()
    recorded(*WHOLE, UPDATE, CI="true").refused(UPDATE, "CI is set")
    assert recorded.files() == before
    assert recorded(*WHOLE, "--cell", "tosa-fp/alpha", CI="true").code == 0


def test_a_golden_that_cannot_be_written_ends_the_update_with_one_error(
    recorded: Runner, snapshot: SnapshotAssertion
) -> None:
    shutil.rmtree(recorded.root / "tosa-int")
    (recorded.root / "tosa-int").write_text("in the way")
    finished = recorded(*WHOLE, UPDATE)
    finished.refused()
    # It is the folder that is wrong, and no golden.
    assert finished.printed() == snapshot
    assert (recorded.root / "tosa-int").read_text() == "in the way"


def test_a_test_that_raises_while_updating_loses_no_golden(recorded: Runner, artifacts: Artifacts) -> None:
    before = recorded.files()
    recorded.answers(
        {"alpha": RuntimeError("raised before any assertion"), "beta": artifacts["does-not-lower"]}
    )
    finished = recorded(*WHOLE, UPDATE)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert "raised before any assertion" in finished.output
    assert recorded.files() == before


@pytest.mark.slow
def test_what_was_kept_of_a_cell_is_cleared_when_it_is_kept_again_and_when_it_is_stable(
    recorded: Runner, artifacts: Artifacts
) -> None:
    one = ("--models", "zoo_both", "--cell", "xnnpack-fp32/alpha")
    kept = recorded.sweeps / "xnnpack-fp32" / "alpha"
    recorded.answers({"alpha": artifacts["set-of-strings"]})
    for seeds, folders in (("0,4", {"seed0-heap0", "seed4-heap1"}), ("4,9", {"seed4-heap0", "seed9-heap1"})):
        assert recorded(*one, "--variations", seeds).code == pytest.ExitCode.TESTS_FAILED
        assert {path.name for path in kept.iterdir()} == {
            *folders,
            "cell.json",
            "cell.npz",
        }
    recorded.answers({"alpha": artifacts["steady"]})
    assert recorded(*one, "--variations", "0,4", "--explain", "all").code == 0
    assert [path.name for path in kept.iterdir()] == ["origins.json"]
    assert recorded(*one, "--variations", "0,4").code == 0
    assert not kept.exists()
