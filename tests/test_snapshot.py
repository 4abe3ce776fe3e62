"""Recording: what an update writes, what it leaves alone, what it refuses, and what is pruned when.

The exports are real ones made once (`conftest.exports`) and put in the place of the sweep (`replay`).
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens.artifact import Artifact, Cell, Lowered
from executorch_goldens.goldens import golden
from executorch_goldens.releases import MATRIX
from executorch_goldens.running import core
from tests import replay
from tests.conftest import ZOO_VERDICTS, Artifacts, Runner, ZooRun, with_graph, wrong

TARGETS = ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")
UPDATE = "--snapshot-update"
SEEDS = ("--variations", "0,4")


#: Two cases, alpha and beta, on all targets.
WHOLE = (*SEEDS, "--models", "zoo_both")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory, release: str, artifacts: Artifacts) -> Runner:
    """A runner with every golden of a run over `WHOLE` recorded."""
    runner = Runner(tmp_path_factory.mktemp("recording"), release)
    runner.zoo("zoo_both", "alpha", "beta")
    runner.answers({"alpha": artifacts["steady"], "beta": artifacts["does-not-lower"]})
    finished = runner(*WHOLE, UPDATE)
    assert finished.code == 0, finished.output
    assert set(finished.verdicts().values()) == {"new"}
    assert runner.recorded() == {f"{target}/{case}" for target in TARGETS for case in ("alpha", "beta")}
    return runner


@pytest.fixture
def recorded(recording: Runner, tmp_path: Path) -> Runner:
    """A runner of its own with what `recording` recorded."""
    shutil.copytree(recording.folder, tmp_path / "own")
    # The zoo that a run sees is the one beside its answers.
    return Runner(tmp_path / "own", recording.release, {replay.VARIABLE: str(tmp_path / "own" / "answers")})


@pytest.fixture
def shrunk(recorded: Runner) -> Runner:
    """`recorded`, whose zoo has lost its case beta: its goldens are stale."""
    recorded.zoo("zoo_both", "alpha")
    return recorded


# A real run over the zoo, asked to record


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
    texts = golden.read(golden.directory(zoo_run.runner.root, Cell("xnnpack-fp32", "does-not-lower")))
    assert texts is not None
    assert sorted(texts) == ["failure.txt", "manifest.txt", "trace.txt"]
    assert "stage: emit" in texts["failure.txt"]
    assert "zoo::opaque" in texts["failure.txt"]


# What is new


def test_a_run_says_which_new_cells_fail_or_delegate_nothing(runner: Runner, artifacts: Artifacts) -> None:
    steady = artifacts["steady"][0]
    assert isinstance(steady.result, Lowered)
    nothing = replace(steady, result=replace(steady.result, delegates=()))
    runner.zoo("zoo_of_kinds", "alpha", "beta", "gamma")
    runner.answers({"alpha": steady, "beta": artifacts["does-not-lower"], "gamma": nothing})
    words = (*SEEDS, "--models", "zoo_of_kinds", "--cell", "xnnpack-fp32/*")
    seen = runner(*words)
    assert "\n3 new: 1 FAILURE, 1 NO DELEGATE\n" in seen.output
    assert f"new: xnnpack-fp32/beta on ExecuTorch {runner.release}: FAILURE: emit" in seen.output
    assert f"new: xnnpack-fp32/gamma on ExecuTorch {runner.release}: NO DELEGATE: " in seen.output
    assert f"new: xnnpack-fp32/alpha on ExecuTorch {runner.release}: 1 delegate with " in seen.output
    recorded = runner(*words, UPDATE)
    assert recorded.code == 0, recorded.output
    assert "\n3 new: 1 FAILURE, 1 NO DELEGATE\n" in recorded.output
    assert "recorded: xnnpack-fp32/beta: FAILURE: emit" in recorded.output
    assert "recorded: xnnpack-fp32/gamma: NO DELEGATE: " in recorded.output
    assert "recorded: xnnpack-fp32/alpha" not in recorded.output


# What an update writes


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


def test_more_variations_are_added_to_a_golden_and_nothing_else_changes(
    recorded: Runner, artifacts: Artifacts
) -> None:
    one = ("--cell", "tosa-fp/alpha", "--models", "zoo_both")
    place = f"{recorded.release}/tosa-fp/alpha/manifest.txt"
    made = replace(artifacts["steady"][0], shortcuts=("later",))
    recorded.answers({"alpha": made})
    before = recorded.files()
    assert recorded(*one, "--variations", "27,4,0").code == 0
    assert recorded.files() == before
    finished = recorded(*one, "--variations", "9,27,4", UPDATE)
    assert finished.code == 0, finished.output
    assert "1 goldens now name these variations" in finished.output
    after = recorded.files()
    assert {name for name in before if before[name] != after[name]} == {place}
    old, new = (files[place][0].decode().splitlines() for files in (before, after))
    changed = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert [other.removeprefix(one) for one, other in changed[:-1]] == [
        " later",
        " seed9-heap0 seed27-heap1 seed4-heap2",
    ]
    assert [one.split(": ")[0] for one, _ in changed] == ["shortcuts", "variations", "contents"]
    assert recorded(*one, "--variations", "0,4", UPDATE).code == 0
    assert recorded.files() == after


def test_an_update_takes_over_the_trace_by_which_an_equal_artifact_is_made_now(
    recorded: Runner, artifacts: Artifacts
) -> None:
    one = ("--cell", "tosa-fp/alpha")
    made = artifacts["steady"][0]
    assert isinstance(made, Artifact)
    assert made.watched is not None
    *others, last = made.watched.passes
    moved = replace(made.watched, passes=(*others, replace(last, fingerprint="0123456789ab", changed=True)))
    recorded.answers({"alpha": replace(made, watched=moved)})
    before = recorded.files()
    assert recorded(*WHOLE, *one).code == 0
    assert recorded.files() == before
    finished = recorded(*WHOLE, *one, UPDATE)
    assert finished.verdicts() == {"tosa-fp/alpha": "stable"}, finished.output
    after = recorded.files()
    place = f"{recorded.release}/tosa-fp/alpha"
    assert {name for name in before if before[name][0] != after[name][0]} == {
        f"{place}/trace.txt",
        f"{place}/manifest.txt",
    }
    assert after[f"{place}/trace.txt"][0].endswith(b" 0123456789ab\n")
    assert recorded(*WHOLE, *one).code == 0


def test_an_update_of_what_is_new_leaves_every_golden_as_it_is(
    recorded: Runner, artifacts: Artifacts
) -> None:
    """Neither the variations nor the trace of a stable golden are noted, and a changed one is not replaced."""
    made = artifacts["steady"][0]
    assert isinstance(made, Artifact)
    assert made.watched is not None
    moved = replace(made.watched, passes=made.watched.passes[:-1])
    other = replace(made, watched=moved, shortcuts=("later",))
    recorded.zoo("zoo_both", "alpha", "beta", "gamma")
    answers = {"alpha": other, "beta": with_graph(made, "another graph\n"), "gamma": made}
    recorded.answers(answers)
    before = recorded.files()
    finished = recorded("--models", "zoo_both", "--variations", "9,27", f"{UPDATE}-new-only")
    assert set(finished.verdicts().values()) == {"stable", "changed", "new"}, finished.output
    after = recorded.files()
    assert {name: after[name] for name in before} == before
    assert {Path(name).parent.name for name in after.keys() - before.keys()} == {"gamma"}


FULL = ("--models", "zoo_both", "--cell", "tosa-fp/alpha", "--variations")


def test_a_golden_of_four_variations_is_replaced_by_one_of_two_only_where_that_is_said(
    recorded: Runner, artifacts: Artifacts
) -> None:
    made = artifacts["steady"][0]
    recorded.answers({"alpha": made})
    assert recorded(*FULL, "full", UPDATE).code == 0
    recorded.answers({"alpha": with_graph(made, "another graph\n")})
    before = recorded.files()
    refused = recorded(*FULL, "quick", UPDATE)
    assert refused.verdicts() == {"tosa-fp/alpha": "changed"}
    refused.refused("not recorded", "names 4 variations", "this would name 2", "--fewer-variations")
    assert "accept:" not in refused.output
    assert recorded.files() == before
    assert recorded(*FULL, "quick", UPDATE, "--fewer-variations").code == 0
    texts = golden.read(golden.directory(recorded.root, Cell("tosa-fp", "alpha")))
    assert texts is not None
    assert golden.fields(texts)["variations"] == "seed0-heap0 seed4-heap1"
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
    assert {str(Path(name).parent) for name in touched} == {f"{recorded.release}/tosa-fp/alpha"}
    assert after[f"{recorded.release}/tosa-fp/alpha/graph.txt"][0] == b"another graph\n"


def test_a_change_is_shown_and_not_written_without_being_asked(
    recorded: Runner, artifacts: Artifacts
) -> None:
    before = recorded.files()
    changed = with_graph(artifacts["steady"][0], "another graph\n")
    recorded.answers(
        {"tosa-fp/alpha": changed, "alpha": artifacts["steady"], "beta": artifacts["does-not-lower"]}
    )
    finished = recorded(*WHOLE)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert [cell for cell, name in finished.verdicts().items() if name != "stable"] == ["tosa-fp/alpha"]
    assert "+another graph" in finished.output
    assert "--cell tosa-fp/alpha" in finished.output
    assert UPDATE in finished.output
    assert recorded.files() == before


# What an update refuses


@pytest.mark.parametrize("case", ["set-of-strings", "hashed-constant", "wrong"])
def test_what_disagrees_or_is_wrong_does_not_replace_a_golden(
    recorded: Runner, artifacts: Artifacts, case: str
) -> None:
    before = recorded.files()
    recorded.answers({"*": artifacts[case]})
    finished = recorded(*WHOLE, "--cell", "xnnpack-fp32/alpha", UPDATE)
    assert finished.verdicts() == {"xnnpack-fp32/alpha": ZOO_VERDICTS[case]}
    finished.refused("not recorded", "xnnpack-fp32/alpha", ZOO_VERDICTS[case])
    assert recorded.files() == before


def test_updating_is_refused_where_ci_is_set(recorded: Runner) -> None:
    before = recorded.files()
    recorded(*WHOLE, UPDATE, CI="true").refused(UPDATE, "CI is set")
    assert recorded.files() == before
    assert recorded(*WHOLE, "--cell", "tosa-fp/alpha", CI="true").code == 0


def test_a_golden_that_cannot_be_written_ends_the_update_with_one_error(recorded: Runner) -> None:
    shutil.rmtree(recorded.root / "tosa-int")
    (recorded.root / "tosa-int").write_text("in the way")
    finished = recorded(*WHOLE, UPDATE)
    finished.refused(str(recorded.root / "tosa-int"), "cannot be written", "then record it again")
    # It is the folder that is wrong, and no golden.
    assert "damaged-golden" not in finished.output
    assert (recorded.root / "tosa-int").read_text() == "in the way"


# What a merge leaves


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True)


def merged(recorded: Runner, artifacts: Artifacts) -> None:
    """Let two branches change one golden, and merge them."""
    one = (*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    git(recorded.folder, "init", "-b", "main")
    for branch, graph in (("main", None), ("theirs", "their graph\n"), ("ours", "our graph\n")):
        if graph is not None:
            git(recorded.folder, "checkout", "-b", branch, "main")
            recorded.answers({"alpha": with_graph(artifacts["steady"][0], graph)})
            assert recorded(*one).code == 0
        git(recorded.folder, "add", "goldens")
        assert git(recorded.folder, "commit", "-m", branch).returncode == 0
    assert git(recorded.folder, "merge", "theirs").returncode == 1


def typed(output: str, what: str) -> list[str]:
    """Return the command that was printed for something."""
    (line,) = {line.strip() for line in output.splitlines() if line.strip().startswith(what)}
    return shlex.split(line.partition(":")[2])


def test_what_a_merge_leaves_of_a_golden_is_recorded_by_the_command_that_is_printed(
    recorded: Runner, artifacts: Artifacts
) -> None:
    merged(recorded, artifacts)
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "the graph of both\n")})
    before = recorded.files()
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha")
    assert finished.verdicts() == {"tosa-fp/alpha": "damaged-golden"}
    assert "was left by a merge, with conflicts in graph.txt, manifest.txt" in finished.output
    new_only = recorded(*WHOLE, "--cell", "tosa-fp/alpha", f"{UPDATE}-new-only")
    assert new_only.verdicts() == {"tosa-fp/alpha": "damaged-golden"}
    assert recorded.files() == before
    command = typed(finished.output, "accept:")
    assert UPDATE in command
    again = recorded(*command[command.index("run") + 1 :])
    assert again.code == 0, again.output
    assert recorded(*WHOLE, "--cell", "tosa-fp/alpha").verdicts() == {"tosa-fp/alpha": "stable"}
    git(recorded.folder, "add", "goldens")
    assert git(recorded.folder, "commit", "-m", "merged").returncode == 0
    assert git(recorded.folder, "status", "--porcelain", "goldens").stdout == ""


def test_what_is_wrong_is_not_recorded_in_place_of_what_a_merge_left(
    recorded: Runner, artifacts: Artifacts
) -> None:
    merged(recorded, artifacts)
    recorded.answers({"alpha": wrong(artifacts["steady"][0])})
    before = recorded.files()
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE)
    assert finished.verdicts() == {"tosa-fp/alpha": "corrupt"}
    assert recorded.files() == before


def test_a_golden_that_one_branch_deleted_is_known_as_left_by_a_merge(
    recorded: Runner, artifacts: Artifacts
) -> None:
    """Git leaves the files that the other branch changed, without a marker in them."""
    git(recorded.folder, "init", "-b", "main")
    git(recorded.folder, "add", "goldens")
    git(recorded.folder, "commit", "-m", "main")
    git(recorded.folder, "checkout", "-b", "deleted")
    git(recorded.folder, "rm", "-r", "-q", f"goldens/{recorded.release}/tosa-fp/alpha")
    git(recorded.folder, "commit", "-m", "deleted")
    git(recorded.folder, "checkout", "main")
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "our graph\n")})
    one = (*WHOLE, "--cell", "tosa-fp/alpha")
    assert recorded(*one, UPDATE).code == 0
    git(recorded.folder, "commit", "-a", "-m", "ours")
    assert git(recorded.folder, "merge", "deleted").returncode == 1
    finished = recorded(*one)
    assert finished.verdicts() == {"tosa-fp/alpha": "damaged-golden"}
    assert "git has it as unmerged" in finished.output
    assert recorded(*one, UPDATE).code == 0
    assert recorded(*one).verdicts() == {"tosa-fp/alpha": "stable"}


def test_a_test_that_raises_while_updating_loses_no_golden(recorded: Runner, artifacts: Artifacts) -> None:
    before = recorded.files()
    recorded.answers(
        {"alpha": RuntimeError("raised before any assertion"), "beta": artifacts["does-not-lower"]}
    )
    finished = recorded(*WHOLE, UPDATE)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert "raised before any assertion" in finished.output
    assert recorded.files() == before


# Stale goldens

STALE = {f"{target}/beta" for target in TARGETS}


@pytest.mark.parametrize("asked", [(), (UPDATE,)], ids=["reading", "updating"])
def test_a_stale_golden_is_reported_and_fails_a_whole_run(shrunk: Runner, asked: tuple[str, ...]) -> None:
    before = shrunk.files()
    finished = shrunk(*WHOLE, *asked)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert set(finished.verdicts().values()) == {"stable"}
    for cell in STALE:
        assert f"stale: {shrunk.root / cell}: a golden with no matching cell" in finished.output
    again = (
        f"--goldens={shrunk.goldens} --sweeps={shrunk.folder / 'sweeps'} {' '.join(WHOLE)} {UPDATE} --prune"
    )
    assert again in finished.output
    assert shrunk.files() == before


def test_a_whole_green_update_prunes_what_is_stale_and_nothing_else(shrunk: Runner) -> None:
    shutil.copytree(shrunk.root, shrunk.goldens / "1.0.0")
    before = shrunk.files()
    finished = shrunk(*WHOLE, UPDATE, "--prune")
    assert finished.code == 0, finished.output
    assert shrunk.recorded() == {f"{target}/alpha" for target in TARGETS}
    for cell in STALE:
        assert f"prune: {shrunk.root / cell}" in finished.output
    after = shrunk.files()
    gone = {name for name in before if name.startswith(f"{shrunk.release}/") and "/beta/" in name}
    assert after == {name: file for name, file in before.items() if name not in gone}
    assert shrunk(*WHOLE).code == 0


def test_pruning_is_refused_to_a_run_that_only_reads(shrunk: Runner) -> None:
    before = shrunk.files()
    shrunk(*WHOLE, "--prune").refused("--prune", UPDATE)
    assert shrunk.files() == before


def test_what_is_no_golden_is_never_deleted(shrunk: Runner) -> None:
    foreign = shrunk.root / "tosa-fp" / "notes"
    foreign.mkdir()
    edited = shrunk.root / "tosa-fp" / "beta"
    for file in (
        *(
            shrunk.root / ".DS_Store",
            shrunk.root / "tosa-fp" / ".DS_Store",
            shrunk.root / "tosa-fp" / "mine.txt",
        ),
        *(foreign / "graph.txt", edited / "notes.txt"),
    ):
        file.write_text("mine")
    before = shrunk.files()
    finished = shrunk(*WHOLE, UPDATE, "--prune")
    assert finished.code == 0, finished.output
    for path in (foreign, edited):
        assert f"not a golden: {path}: " in finished.output
    after = shrunk.files()
    gone = {str(Path(name).parent) for name in before.keys() - after.keys()}
    assert gone == {f"{shrunk.release}/{cell}" for cell in STALE if cell != "tosa-fp/beta"}
    assert after.items() <= before.items()


@pytest.mark.parametrize(
    "limited",
    [
        ("-k", "tosa"),
        ("--cell", "tosa-fp/*"),
        ("--deselect", "harness/executorch_goldens/running/cells.py::test_golden[tosa-fp/alpha]"),
        ("--collect-only",),
        ("--snapshot-update", "--maxfail", "1", "-k", "int8"),
    ],
    ids=["-k", "--cell", "--deselect", "--collect-only", "--maxfail"],
)
def test_a_run_that_does_not_see_every_cell_prunes_nothing(shrunk: Runner, limited: tuple[str, ...]) -> None:
    before = shrunk.files()
    finished = shrunk(*WHOLE, UPDATE, "--prune", *limited)
    assert finished.code == 0, finished.output
    assert "prune: " not in finished.output
    assert shrunk.files() == before


@pytest.mark.parametrize("stop", [(), ("-x",)], ids=["to the end", "-x"])
def test_a_failing_cell_forbids_pruning(shrunk: Runner, artifacts: Artifacts, stop: tuple[str, ...]) -> None:
    before = shrunk.files()
    shrunk.answers({"xnnpack-int8/alpha": artifacts["wrong"], "alpha": artifacts["steady"]})
    finished = shrunk(*WHOLE, UPDATE, "--prune", *stop)
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert "prune: " not in finished.output
    assert "nothing was pruned" in finished.output
    assert shrunk.files() == before


# Tiers


@pytest.fixture
def with_core(recorded: Runner) -> Runner:
    """`recorded`, with a core of one cell."""
    (recorded.root / core.FILE).write_text("# A core.\ntosa-fp/alpha  target tosa-fp\n")
    return recorded


def test_a_run_of_the_core_says_how_many_cells_it_left_out(with_core: Runner) -> None:
    finished = with_core(*WHOLE)
    assert finished.code == 0, finished.output
    assert finished.verdicts() == {"tosa-fp/alpha": "stable"}
    assert "tier: core; 7 cells were left out: --tier full checks them as well" in finished.output
    whole = with_core(*WHOLE, "--tier", "full")
    assert len(whole.verdicts()) == 8
    assert "tier: full\n" in whole.output


def test_the_core_takes_two_variations_by_default_and_all_cells_four(with_core: Runner) -> None:
    models = WHOLE[WHOLE.index("--models") :][:2]
    assert "2 variations: seed0-heap0, seed4-heap1\n" in with_core(*models).output
    assert "4 variations: " in with_core(*models, "--tier", "full").output
    assert "4 variations: " in with_core(*models, "--variations", "full").output


def test_only_a_full_run_knows_stale_goldens_and_prunes_them(with_core: Runner) -> None:
    stale = with_core.root / "tosa-fp" / "gone"
    shutil.copytree(with_core.root / "tosa-fp" / "alpha", stale)
    assert with_core(*WHOLE).code == 0
    assert with_core(*WHOLE, "--tier", "full").code == pytest.ExitCode.TESTS_FAILED
    with_core(*WHOLE, UPDATE, "--prune", "--tier", "core").refused("--prune", "--tier full")
    assert stale.exists()
    assert with_core(*WHOLE, UPDATE, "--prune").code == 0
    assert not stale.exists()


def test_cells_that_are_not_in_the_core_are_refused(with_core: Runner) -> None:
    asked = (*WHOLE, "--tier", "core", "--cell", "tosa-fp/beta")
    with_core(*asked).refused("none of the cells chosen is in the core", "--tier full")


def test_the_core_of_a_zoo_that_has_none_is_refused_with_the_command(recorded: Runner) -> None:
    recorded(*WHOLE, "--tier", "core").refused(core.FILE, core.UPDATE)


# Whose goldens they are


def test_another_zoo_in_a_root_is_refused_before_anything_is_written_or_deleted(
    recorded: Runner, artifacts: Artifacts
) -> None:
    before = recorded.files()
    recorded.answers({"*": artifacts["steady"]})
    firmware = ("--models", recorded.zoo("firmware", "one-linear-layer"))
    for asked in ((), (UPDATE,), (UPDATE, "--prune"), (UPDATE, "--adopt"), ("--models", "zoo_both", UPDATE)):
        finished = recorded(*SEEDS, *firmware, *asked)
        finished.refused(str(recorded.goldens), "goldens of zoo_both", "firmware", "--goldens DIR")
        assert not finished.rows
    assert recorded.files() == before


def test_goldens_that_do_not_say_whose_they_are_are_read_and_written_only_when_adopted(
    recorded: Runner,
) -> None:
    (recorded.goldens / "zoo.txt").unlink()
    before = recorded.files()
    assert recorded(*WHOLE).code == 0
    recorded(*WHOLE, UPDATE).refused(str(recorded.goldens), "zoo.txt", "--adopt")
    assert recorded.files() == before
    assert recorded(*WHOLE, UPDATE, "--adopt").code == 0
    after = recorded.files()
    assert after.pop("zoo.txt")[0] == f"format: {golden.FORMAT}\nmodels: zoo_both\n".encode()
    assert after == before


# What was kept of earlier runs


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
            "proposal.json",
            "evidence.json",
            "evidence.npz",
        }
    recorded.answers({"alpha": artifacts["steady"]})
    assert recorded(*one, "--variations", "0,4", "--explain", "all").code == 0
    assert [path.name for path in kept.iterdir()] == ["origins.json"]
    assert recorded(*one, "--variations", "0,4").code == 0
    assert not kept.exists()


# Commands that messages print


def test_the_commands_printed_are_the_ones_that_were_called(recorded: Runner, artifacts: Artifacts) -> None:
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "another graph\n")})
    given = (*WHOLE, "--jobs", "1", "--matrix", str(MATRIX))
    finished = recorded(*given, "-k", "tosa", "--cell", "tosa-fp/alpha", "-x")
    folders = f"--goldens={recorded.goldens} --sweeps={recorded.folder / 'sweeps'}"
    called = f"goldens run -p tests.replay --cache=off {folders} {' '.join(given)} -x --cell tosa-fp/alpha"
    assert f"  again:  {called}\n" in finished.output
    assert f"  accept: {called} {UPDATE}\n" in finished.output


def test_a_command_that_nox_was_called_with_is_printed(recorded: Runner, artifacts: Artifacts) -> None:
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "another graph\n")})
    typed = "nox -s 'goldens(1.4.1)' -- --jobs 1"
    finished = recorded(
        *WHOLE, "--cell", "tosa-fp/alpha", EXECUTORCH_GOLDENS_CALLED_AS=f"{typed} --cell 'a/*'"
    )
    assert f"  again:  {typed} --cell tosa-fp/alpha\n" in finished.output


def test_a_command_of_plain_pytest_is_printed(recorded: Runner, artifacts: Artifacts) -> None:
    recorded.answers({"alpha": with_graph(artifacts["steady"][0], "another graph\n")})
    recorded.program = (
        "-m",
        "pytest",
        "-p",
        "executorch_goldens.running.plugin",
        "--pyargs",
        "executorch_goldens.running.cells",
    )
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha")
    assert "  again:  python -m pytest -p executorch_goldens.running.plugin " in finished.output
    assert f" {' '.join(WHOLE)} --cell tosa-fp/alpha\n" in finished.output


# Names


def test_names_that_only_look_alike_have_goldens_of_their_own(runner: Runner, artifacts: Artifacts) -> None:
    names = ["a-b", "ab", "a-" + "b" * 61, "a-" + "b" * 62]
    runner.answers({"*": artifacts["steady"]})
    finished = runner(*SEEDS, "--models", runner.zoo("alike", *names), "--cell", "tosa-fp/*", UPDATE)
    assert finished.code == 0, finished.output
    assert runner.recorded() == {f"tosa-fp/{name}" for name in names}


@pytest.mark.parametrize(
    ("names", "facts"),
    [
        (["alpha", "alpha"], ["'alpha'", "registered twice"]),
        (["alpha", "Alpha"], ["'Alpha'", "lower-case-words"]),
        (["ab", "a/b"], ["'a/b'", "lower-case-words"]),
        (["ab", "a.b"], ["'a.b'", "lower-case-words"]),
    ],
    ids=["twice", "case fold", "slash", "dot"],
)
def test_names_that_would_share_a_golden_are_an_error(
    recorded: Runner, names: list[str], facts: list[str]
) -> None:
    before = recorded.files()
    recorded.environment.clear()
    recorded(*SEEDS, "--models", recorded.zoo("colliding", *names), UPDATE).refused("colliding", *facts)
    assert recorded.files() == before


def test_two_zoos_with_one_name_are_an_error(runner: Runner) -> None:
    one, other = runner.zoo("zoo_one", "alpha"), runner.zoo("zoo_other", "alpha")
    runner("--models", one, "--models", other).refused("'alpha'", "is both in", one, other, "--goldens")


# Known defects


def test_a_known_defect_is_shown_and_fails_as_soon_as_it_is_another(
    recorded: Runner, artifacts: Artifacts
) -> None:
    known = {"tosa-fp/alpha": "corrupt: upstream issue 1", "tosa-int/alpha": "order-only: upstream issue 2"}
    wrong_cells = {"tosa-fp/alpha": artifacts["wrong"], "tosa-int/alpha": artifacts["wrong"]}
    recorded.answers({"known": known, "*": artifacts["steady"], **wrong_cells})
    finished = recorded(*WHOLE, "--cell", "tosa-fp/alpha")
    assert finished.code == 0, finished.output
    assert "known: tosa-fp/alpha is corrupt: upstream issue 1" in finished.output
    finished = recorded(*WHOLE, "--cell", "tosa-int/alpha")
    assert finished.code == pytest.ExitCode.TESTS_FAILED
    assert finished.verdicts() == {"tosa-int/alpha": "corrupt"}


def test_a_known_defect_that_is_gone_fails_and_is_not_recorded_before_its_entry_is_deleted(
    recorded: Runner, artifacts: Artifacts
) -> None:
    shutil.rmtree(recorded.root / "tosa-fp" / "alpha")
    before = recorded.files()
    known = {"tosa-fp/alpha": "corrupt: upstream issue 1"}
    recorded.answers({"known": known, "*": artifacts["steady"]})
    recorded(*WHOLE, "--cell", "tosa-fp/alpha", UPDATE).refused("upstream issue 1", "releases.toml", "delete")
    assert recorded.files() == before
