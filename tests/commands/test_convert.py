"""``goldens convert``: decisions of an older root, all of them or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.decisions import (
    BUDGET,
    FAILURE,
    FILE,
    KNOWN,
    NO_DELEGATE,
    REJECTED,
    Decision,
    read,
)
from executorch_goldens.goldens.quantities import BudgetLimits
from tests.support.making import failure, golden_of, lowered

CAUSE = "export, SomePass: ValueError: no branch"
EXPECTED = f"""
[[expected]]
what = "FAILURE"
releases = ["1.4.1", "1.5.1"]
cells = ["tosa-int/gate", "tosa-int/gone"]
why = "branches on a value"

[[expected]]
what = "FAILURE"
releases = ["1.5.1"]
cells = ["tosa-fp/gate"]
why = "{CAUSE}"

[[expected]]
what = "FAILURE"
releases = ["1.5.1"]
cells = ["xnnpack-*/*"]
cause = "lower: ValueError: two"

[[expected]]
what = "NO DELEGATE"
releases = ["1.5.1"]
cells = ["tosa-fp/sum"]
why = "outside: aten.sum.default, …"
"""
KNOWN_DEFECTS = """
[releases."1.4.1".known]
"tosa-fp/net" = "corrupt: an issue: #7"

[releases."1.5.1".known]
"tosa-fp/net" = "corrupt: an issue: #7"
"""
BY_CAUSE = """
[[releases."1.5.1".causes]]
verdict = "crashed"
reason = "seed0-heap0: killed by SIGSEGV"
cells = ["tosa-fp/a", "tosa-fp/b"]
"""
PROJECT = """\
[project]
name = "firm" # ours

[tool.goldens]
models = ["zoo"]
budgets = { "tosa-*/net" = { memory = 8000, sqnr = 20.5 } }
"""


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose goldens an older version wrote."""
    goldens, sweeps = tmp_path / "goldens", tmp_path / "build" / "sweeps"
    for cell, release in (("tosa-int/gate", "1.4.1"), ("tosa-int/gate", "1.5.1"), ("tosa-fp/gate", "1.5.1")):
        golden.write(goldens / release / f"{cell}.txt", golden_of(failure("no branch", "export")))
    golden.write(golden.file_of(goldens / "1.5.1", Cell("tosa-fp", "sum")), golden_of(lowered()))
    sweeps.mkdir(parents=True)
    (goldens / "expected.toml").write_text(EXPECTED)
    (goldens / "known.toml").write_text(KNOWN_DEFECTS)
    (goldens / "1.5.1" / "known.toml").write_text(BY_CAUSE)
    (sweeps / "rejected.json").write_text(json.dumps({"format": 1, "reasons": {"0f": "not meant"}}))
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_all_decisions_of_an_older_root_come_into_one_file(
    older: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(older)
    assert cli.main(["convert"]) == cli.SAME
    both = ("1.4.1", "1.5.1")
    new = both[1:]
    outside = [each for each in read(older / "goldens") if each.what == NO_DELEGATE]
    assert set(read(older / "goldens")) == {
        Decision(FAILURE, cause=CAUSE, why="branches on a value", releases=both, cells=("tosa-int/gate",)),
        Decision(FAILURE, cause=CAUSE, releases=new, cells=("tosa-fp/gate",)),
        Decision(FAILURE, cause="lower: ValueError: two", releases=new, cells=("xnnpack-*/*",)),
        Decision(KNOWN, "corrupt", why="an issue: #7", releases=both, cells=("tosa-fp/net",)),
        Decision(KNOWN, "crashed", "killed by SIGSEGV", releases=new, cells=("tosa-fp/a", "tosa-fp/b")),
        Decision(REJECTED, cause="0f", why="not meant"),
        Decision(BUDGET, limits=BudgetLimits(memory=8000, sqnr=20.5), cells=("tosa-*/net",)),
        *outside,
    }
    assert [(each.cause[:9], each.why, each.cells) for each in outside] == [
        ("outside: ", "", ("tosa-fp/sum",))
    ]
    printed = capsys.readouterr().out
    assert f"{older / 'goldens' / FILE}: 1 budget, 3 failure, 3 known, 1 rejected, 1 undelegated\n" in printed
    for name in ("expected.toml", "known.toml", "1.5.1/known.toml"):
        assert f"gone: {older / 'goldens' / name}\n" in printed
    assert "not taken over: tosa-int/gone on 1.4.1: expected as failure, which its golden is not\n" in printed
    gone = {
        "goldens/expected.toml",
        "goldens/known.toml",
        "goldens/1.5.1/known.toml",
        "build/sweeps/rejected.json",
    }
    after = files(older)
    assert after.keys() == before.keys() - gone | {f"goldens/{FILE}"}
    assert after["pyproject.toml"] == PROJECT[: PROJECT.index("budgets")]
    assert cli.main(["convert"]) == cli.SAME
    assert capsys.readouterr().out == f"{older / 'goldens'}: nothing is older\n"
    assert files(older) == after


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("goldens/known.toml", '[releases."1.4.1".known]\n"tosa-fp/net" = "corrupt"\n'),
        ("goldens/expected.toml", '[[expected]]\nwhat = "fails"\n'),
        ("goldens/1.5.1/known.toml", "<<<<<<< ours\n"),
        ("build/sweeps/rejected.json", "[]"),
        ("pyproject.toml", "[tool.goldens]\nbudgets = { 'a/b' = { weight = 1 } }\n"),
    ],
)
def test_an_older_root_that_cannot_be_read_stays_as_it_is(
    older: Path, file: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (older / file).write_text(text)
    before = files(older)
    assert cli.main(["convert"]) == cli.ERROR
    assert f"{older / file}: " in capsys.readouterr().err
    assert files(older) == before


def test_another_root_is_converted_by_its_name_and_the_repository_stays(older: Path) -> None:
    (older / "goldens").rename(older / "other")
    before = files(older)
    assert cli.main(["convert", "--goldens", "other"]) == cli.SAME
    after = files(older)
    assert {name: after[name] for name in ("pyproject.toml", "build/sweeps/rejected.json")} == {
        name: before[name] for name in ("pyproject.toml", "build/sweeps/rejected.json")
    }
    assert {each.what for each in read(older / "other")} == {FAILURE, NO_DELEGATE, KNOWN}


def test_nothing_is_converted_in_ci(
    older: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", "1")
    before = files(older)
    assert cli.main(["convert"]) == cli.ERROR
    assert "convert is refused because CI is set" in capsys.readouterr().err
    assert files(older) == before
