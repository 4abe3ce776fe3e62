"""Zoos without goldens: what a run finds of a cell, and the list of what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.artifact import Artifact, Casualty, Cell, Killed, TimedOut
from executorch_goldens.goldens import decisions
from executorch_goldens.goldens.decisions import IMPRECISE, KNOWN, Decision, Decisions
from executorch_goldens.judging.own_files import OwnFiles
from executorch_goldens.running.plan import Plan
from executorch_goldens.running.selection import cells_of
from executorch_goldens.settings import releases
from executorch_goldens.zoo.registry import load
from lab import known
from lab.__main__ import main
from lab.guests import one
from lab.known import AS_KNOWN, BETTER, NEW, OTHERWISE, RIGHT, UNJUDGED, Found, Zoo
from tests.conftest import Artifacts
from tests.support.making import failure, lowered_by, other, outcomes, with_graph, wrong

INSTALLED = metadata.version("executorch").partition("+")[0]
ALPHA, BETA = (Cell("xnnpack-fp32", case) for case in ("alpha", "beta"))

Made = tuple[Artifact | Casualty, ...]


@pytest.fixture
def steady(artifacts: Artifacts) -> Artifact:
    made = artifacts["steady"][0]
    assert isinstance(made, Artifact)
    return made


def judged(root: Path, *made: Artifact | Casualty, cell: Cell = ALPHA) -> Found:
    """Return what exports of a cell come to, with the list in a folder."""
    decided = Decisions.of_root(root, INSTALLED)
    return known.judged(
        outcomes(*made, cell=cell), releases.load().release(INSTALLED), decided, OwnFiles(root)
    )


@pytest.fixture
def listed(tmp_path: Path) -> Callable[..., str]:
    """Bring a list to what exports of a cell come to; return the verdict in it, or nothing."""
    zoo = Zoo("own", "own", lambda release: frozenset())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "FOLDER", tmp_path.parent)
        patch.setattr(Zoo, "folder", tmp_path)

        def update(*made: Artifact | Casualty) -> str:
            known.update(zoo, INSTALLED, [judged(tmp_path, *made)])
            found = Decisions.of_root(tmp_path, INSTALLED).defects.get(str(ALPHA))
            return found.verdict if found is not None else ""

        yield update


def undecodable(made: Artifact) -> Artifact:
    delegate = replace(lowered_by(made).delegates[0], payload=b"no payload")
    return replace(made, result=replace(lowered_by(made), delegates=(delegate,)))


def ways(artifacts: Artifacts) -> dict[str, Made]:
    """Return exports that are wrong, each in a way of its own, by the verdict about them."""
    steady = artifacts["steady"][0]
    assert isinstance(steady, Artifact)
    return {
        "corrupt": (wrong(steady), wrong(steady)),
        "unstable": (steady, other(steady)),
        "undecodable": (undecodable(steady),),
        "failed": artifacts["does-not-lower"],
        "crashed": (Killed("SIGABRT"),),
    }


@pytest.mark.parametrize("verdict", ["corrupt", "unstable", "undecodable", "failed", "crashed"])
def test_what_is_wrong_is_new_until_it_is_listed_and_then_known_for_its_key_alone(
    verdict: str, artifacts: Artifacts, listed: Callable[..., str], tmp_path: Path
) -> None:
    every = ways(artifacts)
    made = every.pop(verdict)
    found = judged(tmp_path, *made)
    assert (found.verdict.name, found.label) == (verdict, NEW)
    assert listed(*made) == verdict
    assert judged(tmp_path, *made).label == AS_KNOWN
    for another in every.values():
        assert judged(tmp_path, *another).label == OTHERWISE
    assert judged(tmp_path, *made, cell=BETA).label == NEW


def test_what_is_right_whatever_it_is_lowered_to_is_right_and_better_where_it_was_known(
    steady: Artifact, listed: Callable[..., str], tmp_path: Path
) -> None:
    changed = with_graph(steady, lowered_by(steady).graph + "x\n")
    assert judged(tmp_path, steady, steady).label == judged(tmp_path, changed, changed).label == RIGHT
    assert listed(wrong(steady)) == "corrupt"
    assert judged(tmp_path, steady).label == BETTER
    assert listed(steady) == ""
    assert not (tmp_path / decisions.FILE).exists()


def test_of_a_program_that_is_not_run_nothing_says_that_it_is_right(
    steady: Artifact, listed: Callable[..., str], tmp_path: Path
) -> None:
    unseen = replace(steady, result=replace(lowered_by(steady), not_run="no kernel", samples=()))
    assert judged(tmp_path, unseen).label == UNJUDGED
    listed(wrong(steady))
    assert judged(tmp_path, unseen).label == AS_KNOWN
    assert listed(unseen) == "corrupt"


def test_what_nothing_checks_is_right_where_a_person_accepts_it(steady: Artifact, tmp_path: Path) -> None:
    scaled = replace(steady, result=replace(lowered_by(steady), unchecked=("output0_scale",)))
    assert judged(tmp_path, scaled).label == NEW
    accepted = Decision(IMPRECISE, unchecked=("output0_scale",), why="as told", cells=(str(ALPHA),))
    decisions.write(tmp_path, known.settled([accepted], INSTALLED, [judged(tmp_path, steady)]))
    assert judged(tmp_path, scaled).label == RIGHT


@pytest.mark.parametrize(
    "made",
    [
        # The system lacked memory, or a person ended it.
        Killed("SIGKILL"),
        TimedOut(180.0, 180.1, 190.0, 0.0),
        failure(stage="model"),
    ],
    ids=["killed", "slow", "case"],
)
def test_what_is_not_the_release_s_or_the_next_run_may_not_find_is_not_listed(
    made: object, steady: Artifact, listed: Callable[..., str], tmp_path: Path
) -> None:
    (each,) = (outcome.result for outcome in outcomes(made))  # type: ignore[arg-type]
    found = judged(tmp_path, each)
    assert found.label == found.verdict.name
    assert listed(each) == ""
    listed(wrong(steady))
    assert listed(each) == "corrupt"


def test_a_mistake_of_this_repository_s_is_not_listed(listed: Callable[..., str], tmp_path: Path) -> None:
    text = f'Traceback (most recent call last):\n  File "{tmp_path / "own.py"}", line 3, in build\nValueError: no\n'
    (made,) = (outcome.result for outcome in outcomes(replace(failure(stage="build"), traceback=text)))
    assert judged(tmp_path, made).label == "failed"
    assert listed(made) == ""


def decision(key: dict[str, str], cells: str, *on: str, why: str = "") -> Decision:
    return Decision(KNOWN, "corrupt", finding=key, why=why, releases=on, cells=tuple(cells.split()))


def test_an_update_keeps_what_is_still_so_and_what_it_did_not_judge(steady: Artifact, tmp_path: Path) -> None:
    elsewhere = next(version for version in releases.load().releases if version != INSTALLED)
    both = (elsewhere, INSTALLED)
    key = {"kind": "wrong-values", "dtype": "float32"}
    stated = [
        decision(key, "xnnpack-fp32/alpha a/b", *both, why="a sign"),
        decision({"kind": "forgotten"}, "xnnpack-fp32/beta", *both, why="a copy"),
    ]
    decisions.write(tmp_path, stated)
    found = [judged(tmp_path, wrong(steady), cell=cell) for cell in (ALPHA, BETA)]
    assert [each.label for each in found] == [AS_KNOWN, OTHERWISE]
    assert decisions.joined(known.settled(stated, INSTALLED, found)) == decisions.joined(
        [
            stated[0],
            decision({"kind": "forgotten"}, "xnnpack-fp32/beta", elsewhere, why="a copy"),
            decision(key, "xnnpack-fp32/beta", INSTALLED),
        ]
    )


# The command


@pytest.fixture
def guest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run the command over a zoo whose cells were judged before; return its code and what it printed."""
    monkeypatch.setattr(known, "FOLDER", tmp_path)
    monkeypatch.delenv("CI", raising=False)

    def run(*made: Artifact, words: tuple[str, ...] = ()) -> tuple[int, str]:
        def found(zoo: Zoo, planned: Plan, tier: str) -> Iterator[Found]:
            for cell, each in zip((ALPHA, BETA), made, strict=False):
                yield judged(zoo.folder, each, each, cell=cell)

        monkeypatch.setattr(known, "run", found)
        code = main(["guest", "options", *words])
        return code, capsys.readouterr().out.replace(str(tmp_path), "known")

    # Its cells are of no zoo.
    monkeypatch.setattr("executorch_goldens.running.plan.require_cells", lambda *_: None)
    return run


def test_a_run_says_what_is_new_and_an_update_writes_it(
    guest: Callable[..., tuple[int, str]],
    artifacts: Artifacts,
    steady: Artifact,
    tmp_path: Path,
    snapshot: SnapshotAssertion,
) -> None:
    failing = artifacts["does-not-lower"][0]
    assert guest(steady, steady) == (cli.SAME, f"options on ExecuTorch {INSTALLED}: 2 right\n")
    code, new = guest(wrong(steady), failing)
    assert code == cli.DIFFERENT
    assert guest(wrong(steady), failing, words=("--update", "--tier", "full")) == (cli.SAME, new)
    assert known.tried()["options", INSTALLED] == dict(
        zip(known.COLUMNS, ("options", INSTALLED, "full", "2", "0"), strict=True)
    )
    assert guest(wrong(steady), failing) == (cli.SAME, f"options on ExecuTorch {INSTALLED}: 2 known\n")
    code, changed = guest(steady, wrong(steady))
    assert code == cli.DIFFERENT
    assert guest(steady, wrong(steady), words=("--update", "--cell", "*"))[0] == cli.SAME
    assert [*Decisions.of_root(tmp_path / "options", INSTALLED).defects] == [str(BETA)]
    # Which cells these were says nothing of all.
    assert known.tried()["options", INSTALLED]["right"] == "0"
    assert f"{new}--\n{changed}".replace(INSTALLED, "RELEASE") == snapshot


def test_a_run_without_a_cell_shows_nothing(guest: Callable[..., tuple[int, str]]) -> None:
    assert guest() == (cli.DIFFERENT, f"options on ExecuTorch {INSTALLED}: no cell\n")


def test_a_list_is_written_for_a_person_only(
    guest: Callable[..., tuple[int, str]], steady: Artifact, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CI", "true")
    assert guest(wrong(steady), words=("--update",))[0] == cli.ERROR
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("zoo", one.KNOWN_ZOOS)
def test_each_entry_of_a_list_is_of_a_case_of_its_zoo_on_its_target(zoo: str) -> None:
    every = load([one.KNOWN_ZOOS[zoo].module])
    for release, each in releases.load().releases.items():
        cells = {str(cell) for cell in cells_of(every.values(), each)}
        assert Decisions.of_root(one.KNOWN_ZOOS[zoo].folder, release).defects.keys() <= cells
        assert one.KNOWN_ZOOS[zoo].core(release) <= every.keys()


def test_what_was_tried_is_of_zoos_that_there_are() -> None:
    assert {name for name, _ in known.tried()} == {*one.KNOWN_ZOOS}
    assert all(int(row["right"]) <= int(row["cells"]) for row in known.tried().values())
