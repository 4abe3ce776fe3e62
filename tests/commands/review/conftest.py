"""Proposals of runs, from real exports made once (`tests.conftest.exports`) and replayed (`replay`)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import cli
from executorch_goldens.causes.groups import Group, grouped, read_members
from executorch_goldens.causes.standing import Standing
from executorch_goldens.goldens import accuracy, golden
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import CONTENTS, MANIFEST
from executorch_goldens.results import proposals
from executorch_goldens.results.proposals import CellFile, Proposal
from executorch_goldens.settings.config import Config
from tests import REPOSITORY
from tests.conftest import Artifacts
from tests.support import replay
from tests.support.making import renamed, with_texts, wrong
from tests.support.runner import Runner, made_once
from tests.support.screens import screen

RUN = ("--variations", "0,4", "--models", "zoo_three", "--explain", "off")
BEFORE = "before the delegates"
TARGETS = ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")


@pytest.fixture(scope="session")
def proposing(tmp_path_factory: pytest.TempPathFactory, release: str, artifacts: Artifacts) -> Runner:
    """A runner whose goldens are recorded, and whose last run found three causes.

    A constant differs in every cell of alpha. Lowering fails in those of beta on XNNPACK. Of those of gamma, two are
    wrong and one differs between its variations.
    """

    def make(folder: Path) -> Runner:
        runner = Runner(folder, release)
        runner.zoo("zoo_three", "alpha", "beta", "gamma")
        constants, steady = artifacts["hashed-constant"], artifacts["steady"][0]
        runner.answers({"alpha": constants[0], "*": steady})
        finished = runner(*RUN, "--snapshot-update")
        assert finished.code == 0, finished.output
        # That is decided; what is not, `test_expecting` shows.
        runner.expect("xnnpack-fp32/beta", "xnnpack-int8/beta")
        runner.answers(
            {
                "alpha": constants[1],
                **dict.fromkeys(("xnnpack-fp32/beta", "xnnpack-int8/beta"), artifacts["does-not-lower"][0]),
                **dict.fromkeys(("tosa-fp/gamma", "tosa-int/gamma"), wrong(steady, BEFORE)),
                "xnnpack-fp32/gamma": artifacts["set-of-strings"],
                "*": steady,
            }
        )
        finished = runner(*RUN)
        assert sorted(finished.verdicts().values()) == [
            *["changed"] * 4,
            *["corrupt"] * 2,
            *["failed"] * 2,
            "order-only",
            *["stable"] * 3,
        ]
        return runner

    return made_once(tmp_path_factory, "proposing", make)


@pytest.fixture
def proposed(proposing: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A copy of `proposing` of its own, in a checkout that nobody calls CI."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(REPOSITORY)
    shutil.copytree(proposing.folder, tmp_path / "own")
    return Runner(tmp_path / "own", proposing.release, {replay.VARIABLE: str(tmp_path / "own" / "answers")})


@dataclass(frozen=True)
class Printed:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    def refused(self, *facts: str) -> None:
        """Assert one line of an error that states `facts`."""
        assert self.code == cli.ERROR
        assert self.out == ""
        assert len(self.err.splitlines()) == 1, self.err
        for fact in facts:
            assert fact in self.err, self.err


Review = Callable[..., Printed]


def shown(runner: Runner, printed: str | Iterable[str]) -> str:
    """Return what was printed about the results of `runner`, for a snapshot."""
    names: dict[object, str] = {runner.goldens: "GOLDENS", runner.folder: "FOLDER", runner.release: "RELEASE"}
    return screen(printed, names)


@pytest.fixture
def review(proposed: Runner, capsys: pytest.CaptureFixture[str]) -> Review:
    """``goldens review`` over the results of `proposed`."""

    def call(*words: str) -> Printed:
        folders = (f"--goldens={proposed.goldens}", f"--sweeps={proposed.folder / 'sweeps'}")
        code = cli.main(["review", *folders, *words])
        printed = capsys.readouterr()
        return Printed(code, printed.out, printed.err)

    return call


def measured_before(runner: Runner, cell: str, used: float) -> None:
    """Let a golden say which part of its tolerance its error takes."""
    path = runner.root / f"{cell}.txt"
    texts = golden.read(path)
    said = {**texts.facts, "numerics": Numerics(-7).text(), accuracy.ERROR: accuracy.error(used)}
    manifest = "".join(f"{name}: {value}\n" for name, value in said.items() if name != CONTENTS)
    golden.write(path, with_texts(texts, {MANIFEST: manifest}))


def found(runner: Runner) -> dict[str, Group]:
    """Return the groups of the proposals of `runner`, by title."""
    standing = Standing(
        Config(REPOSITORY, runner.goldens, runner.folder, patches="auto"), runner.goldens.resolve()
    )
    groups = grouped(read_members(proposals.find(runner.folder / "sweeps"), runner.goldens, standing))
    assert len({group.title for group in groups}) == len(groups)
    return {group.title: group for group in groups}


def titled(runner: Runner, text: str) -> Group:
    """Return the one group whose title has `text` in it."""
    (group,) = (group for title, group in found(runner).items() if text in title)
    return group


def cells(group: Group) -> set[str]:
    return {str(member.proposal.cell) for member in group.members}


def path_of(runner: Runner, cell: str) -> Path:
    return runner.sweeps / cell / proposals.FILE


def edit(runner: Runner, cell: str, **fields: Any) -> None:
    """Change fields of the proposal of a cell."""
    path = path_of(runner, cell)
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"proposal": kept["proposal"] | fields}))


def proposal_of(runner: Runner, cell: str) -> Proposal | None:
    """Return the proposal of a cell; None where nothing is proposed."""
    return CellFile.load(runner.sweeps / cell).proposal


@pytest.fixture
def renaming(proposed: Runner, artifacts: Artifacts) -> Runner:
    """Of the three cases on four targets, a constant differs in alpha, and names alone in beta and gamma."""
    constants, steady = artifacts["hashed-constant"], artifacts["steady"][0]
    proposed.answers({"alpha": constants[1], "*": renamed(steady)})
    assert proposed(*RUN).code == 1
    # Each may have been named by a different pass.
    for number, cell in enumerate(("tosa-fp/beta", "xnnpack-fp32/beta", "tosa-int/gamma")):
        edit(proposed, cell, blamed=f"Pass{number}")
    return proposed
