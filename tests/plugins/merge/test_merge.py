"""Shards merged: the results of one run, byte for byte; unrelated results are refused.

The runs take stored answers in the place of exports (`replay`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli
from executorch_goldens.artifact import Killed
from executorch_goldens.cli import main
from executorch_goldens.files.untrusted import markdown
from executorch_goldens.goldens.decisions import FAILURE, KNOWN, Decision, write
from executorch_goldens.results import proposals, provenance
from executorch_goldens.results import rows as results
from executorch_goldens.zoo.variations import variations
from executorch_goldens_plugins.merge.command import STEP_SUMMARY, step_summary
from tests.support.making import artifact, failure
from tests.support.runner import Runner
from tests.support.screens import screen

COUNT = 5
UPDATE = "--snapshot-update"
CASES = ("alpha", "beta", "gamma", "delta")
FULL = tuple(variation.name for variation in variations())

#: Files of a folder of results that say how long something took, or that only runs of one machine share.
ITS_OWN = {"lock", "seconds.json"}


#: Recorded, unstable with files, crashed without.
ANSWERS = {
    "alpha": artifact(failure("one")),
    "beta": (artifact(failure("two")), artifact(failure("three"))),
    "tosa-fp/gamma": Killed("SIGSEGV"),
    "*": artifact(failure("four")),
}


@dataclass(frozen=True)
class Shards:
    """One run, and the same cells in five.

    Attributes
    ----------
    whole, parts
        Folders of results of the release.
    goldens
        Roots of the goldens that the one run, and the five, have recorded.
    """

    runner: Runner
    whole: Path
    parts: tuple[Path, ...]
    goldens: tuple[Path, Path]

    def merge(self, *words: str) -> int:
        return main(["merge", *words, "--goldens", str(self.goldens[1])])


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, release: str) -> Shards:
    runner = Runner(tmp_path_factory.mktemp("shards"), release)
    runner.zoo("zoo_shards", *CASES)
    runner.answers(ANSWERS)
    folder = runner.folder

    def run(name: str, goldens: Path, *words: str) -> Path:
        sweeps = folder / name
        finished = runner(
            # Each run, and so each shard, seeks the factor for a few cells that disagree.
            *("--models", "zoo_shards", "--variations", "0,4", UPDATE, "-q", "--explain", "off"),
            *(f"--goldens={goldens}", f"--sweeps={sweeps}", *words),
            # No checkout: what somebody edits meanwhile makes no difference.
            GIT_DIR=str(folder / "none"),
        )
        assert finished.code in (0, 1), finished.output
        return sweeps / release

    goldens = folder / "goldens-1", folder / "goldens-5"
    # Half of the cells are in the table of seconds, so that both ways of splitting are used.
    for root in goldens:
        (root / release).mkdir(parents=True)
        (root / "zoo.txt").write_text("format: 3\nmodels: zoo_shards\n")
        causes = [f"lower, SomePass: ValueError: {message}" for message in ("one", "four")]
        write(root, [Decision(FAILURE, cause=each, releases=(release,), cells=("*",)) for each in causes])
        (root / release / "seconds.txt").write_text("".join(f"tosa-fp/{case} 3.0\n" for case in CASES))
    whole = run("whole", goldens[0])
    parts = [run(f"part-{number}", goldens[1], f"--shard={number}/{COUNT}") for number in range(1, COUNT + 1)]
    return Shards(runner, whole, tuple(parts), goldens)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): without_commands(path)
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ITS_OWN and path.suffix != ".lock"
    }


def without_commands(path: Path) -> bytes:
    """Return a file, of evidence without the commands: these name the folders of the run."""
    data = path.read_bytes()
    if path.name != proposals.FILE:
        return data
    fields = json.loads(data)
    del fields["evidence"]["commands"]
    return json.dumps(fields).encode()


@pytest.mark.slow
def test_five_shards_merged_are_one_run_byte_for_byte(shards: Shards, tmp_path: Path) -> None:
    assert shards.merge(*map(str, shards.parts), "--into", str(tmp_path / "merged")) == 1
    one, five = bytes_of(shards.whole), bytes_of(tmp_path / "merged" / shards.runner.release)
    assert one.keys() == five.keys()
    for name, data in one.items():
        assert five[name] == data, name
    assert len(one["results.jsonl"].splitlines()) == 16
    kept = sorted({str(Path(name).parent) for name in one if name.count("/") == 3})
    assert kept == [
        f"{target}/beta/{variation}"
        for target in ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")
        for variation in ("seed0-heap0", "seed4-heap1")
    ]
    recorded_by_one, recorded_by_five = map(bytes_of, shards.goldens)
    assert recorded_by_one == recorded_by_five
    assert len([name for name, data in recorded_by_one.items() if b"\n== failure ==\n" in data]) == 11


def names_in(folder: Path, release: str) -> dict[object, str]:
    """Return what screens say instead of a folder, as it is and as Markdown, and the release."""
    return {folder: "TMP", markdown(str(folder)): "TMP", release: "RELEASE"}


def test_a_merge_says_what_the_end_of_a_run_says(
    shards: Shards,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv(STEP_SUMMARY, str(tmp_path / "summary"))
    shards.merge(*map(str, shards.parts), "--into", str(tmp_path / "merged"))
    output = capsys.readouterr().out
    names = names_in(tmp_path, shards.runner.release)
    assert screen(output, names) == snapshot
    assert screen((tmp_path / "summary").read_text(), names) == snapshot(name="summary")


def test_known_defects_are_counted_apart_with_their_reason(
    shards: Shards,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STEP_SUMMARY, str(tmp_path / "summary"))
    (tmp_path / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["models"]\n')
    release = shards.runner.release
    goldens = tmp_path / "goldens"
    shutil.copytree(shards.goldens[1], goldens)
    why = "it jumps to nowhere (#21480)"
    write(goldens, [Decision(KNOWN, "crashed", why=why, releases=(release,), cells=("tosa-fp/gamma",))])
    whole = tmp_path / "whole"
    shutil.copytree(shards.whole, whole)
    rows = [json.loads(line) for line in (whole / results.FILE).read_text().splitlines()]
    for row in rows:
        row.update({"known": True, "accepted": True} if row["verdict"] == "crashed" else {})
    (whole / results.FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["merge", "whole", "--goldens", str(goldens)])
    output = capsys.readouterr().out
    assert screen(output, names_in(tmp_path, release)) == snapshot
    assert screen((tmp_path / "summary").read_text(), names_in(tmp_path, release)) == snapshot(name="summary")


def test_only_a_merge_of_all_cells_tells_that_a_golden_is_stale(
    shards: Shards, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goldens = tmp_path / "goldens"
    shutil.copytree(shards.goldens[1], goldens)
    place = goldens / shards.runner.release / "tosa-int"
    shutil.copy(place / "alpha.txt", place / "gone.txt")
    words = [*map(str, shards.parts), "--into", str(tmp_path / "merged"), "--goldens", str(goldens)]
    assert main(["merge", *words]) == 1
    assert f"stale: {place / 'gone.txt'}" in capsys.readouterr().out


# What is refused


@pytest.fixture
def parts(shards: Shards, tmp_path: Path) -> list[Path]:
    """Copies of the five shards' folders, which a test may change."""
    copies = [tmp_path / f"copy-{number}" for number in range(1, COUNT + 1)]
    for part, copy in zip(shards.parts, copies, strict=True):
        shutil.copytree(part, copy)
    return copies


def edit(folder: Path, **fields: Any) -> None:
    path = folder / provenance.FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def settings(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / provenance.FILE).read_text())["settings"]
    return found


def drop_a_row(folder: Path) -> None:
    path = folder / results.FILE
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


Change = Callable[[list[Path]], object]
REFUSED: Mapping[str, tuple[Change, tuple[str, ...]]] = {
    "another commit": (lambda parts: edit(parts[1], commit="abc"), ("copy-1", "copy-2", "commit", "abc")),
    "other changes": (lambda parts: edit(parts[1], changes="abc"), ("copy-2", "uncommitted changes")),
    "another setting": (
        lambda parts: edit(parts[1], settings={**settings(parts[1]), "patches": ["none-such"]}),
        ("copy-2", "patches", "none-such"),
    ),
    "other variations": (
        lambda parts: edit(parts[1], variations=["seed9-heap0"]),
        ("variations", "seed9-heap0"),
    ),
    "another zoo": (
        lambda parts: edit(parts[1], selected=["tosa-fp/alpha"]),
        ("selected differ", "16 and 1"),
    ),
    "a missing shard": (lambda parts: parts.pop(2), ("missing", "add shard 3/5")),
    "a shard twice": (lambda parts: parts.append(parts[0]), ("is in both", "copy-1")),
    "two splits": (
        lambda parts: (edit(parts[0], shard="1/4"), edit(parts[1], cells=[])),
        ("shards 1/4, 2/5", "not of one split"),
    ),
    "a run that was ended": (
        lambda parts: drop_a_row(parts[3]),
        ("copy-4", "did not come to its end", "1 cell is"),
    ),
    "no results": (lambda parts: shutil.rmtree(parts[0]), ("copy-1 has no run.json",)),
    "an unreadable file": (lambda parts: (parts[0] / provenance.FILE).write_text("["), ("copy-1/run.json",)),
    "a later format": (lambda parts: edit(parts[0], format=99), ("copy-1/run.json", "format is not 2")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_belong_together_is_one_error(
    shards: Shards, parts: list[Path], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, facts = REFUSED[name]
    change(parts)
    assert shards.merge(*map(str, parts), "--into", str(tmp_path / "merged")) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for fact in facts:
        assert fact in error
    assert not (tmp_path / "merged" / shards.runner.release).exists()


def empty(folder: Path) -> None:
    edit(folder, selected=[], cells=[])
    (folder / results.FILE).write_text("")


def cut(folder: Path) -> None:
    path = folder / results.FILE
    path.write_text(path.read_text()[:-9])


LACKING = r"\d+ of 16 cells not checked \(.*\): run again"
#: What was done to the first shard, or to its folder; and what each form says.
UNFINISHED: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "a run that was ended": (drop_a_row, LACKING),
    "a missing shard": (shutil.rmtree, LACKING),
    "no line": (lambda folder: (folder / results.FILE).write_text(""), LACKING),
    "no cell": (empty, "no cell was checked"),
    "half a line": (cut, LACKING),
}
FORMS = ("--markdown", "--annotations", "--into", "report", "review")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", UNFINISHED)
def test_no_form_is_green_where_a_cell_was_not_checked(
    shards: Shards, name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every cell that was checked passes.
    change, said = UNFINISHED[name]
    release, shared = shards.runner.release, tmp_path / "some"
    for number, part in enumerate(shards.parts[:1] if name == "no cell" else shards.parts):
        copy = shared / str(number) / release
        shutil.copytree(part, copy, ignore=shutil.ignore_patterns("tosa-*", "xnnpack-*"))
        lines = (copy / results.FILE).read_text().splitlines()
        rows = [{**json.loads(line), "verdict": "stable", "new": "", "accepted": True} for line in lines]
        (copy / results.FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    change(shared / "0" / release)
    if name == "a missing shard":
        (shared / "0").rmdir()
    # A review is of one folder of runs.
    sweeps = min(shared.iterdir()) if form == "review" else shared
    code = main(words_of(form, sweeps, tmp_path, shards.goldens[1]))
    printed = capsys.readouterr()
    if form == "--into":
        assert code == 2
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        return
    assert code == 1, printed.err
    assert re.search(said, printed.out.replace("\\", "")), printed.out
    assert "Goldens: green" not in printed.out


def words_of(form: str, sweeps: Path, folder: Path, goldens: Path) -> list[str]:
    """Return the command that is a form, over results."""
    after = ["--goldens", str(goldens)]
    if form == "review":
        return [form, "--sweeps", str(sweeps), *after]
    if form == "report":
        return [form, str(sweeps), "--html", str(folder / "report.html"), *after]
    return ["merge", str(sweeps), *([form, str(folder / "merged")] if form == "--into" else [form]), *after]


def test_a_folder_that_holds_something_else_is_not_overwritten(
    shards: Shards, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken" / shards.runner.release
    taken.mkdir(parents=True)
    (taken / "letters").write_text("mine")
    assert shards.merge(*map(str, parts), "--into", str(tmp_path / "taken")) == 2
    assert f"{taken} is there already" in capsys.readouterr().err
    assert (taken / "letters").read_text() == "mine"
    into = tmp_path / "merged"
    assert [shards.merge(*map(str, parts), "--into", str(into)) for _ in range(2)] == [1, 1]


def test_a_single_run_is_whole_without_others(shards: Shards, tmp_path: Path) -> None:
    assert shards.merge(str(shards.whole), "--into", str(tmp_path)) == 1
    assert bytes_of(tmp_path / shards.runner.release) == bytes_of(shards.whole)


# Which code it was


def test_changes_are_all_that_is_not_of_the_commit_and_no_golden(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def changes() -> str:
        return provenance.changes(tmp_path, tmp_path / "goldens")

    assert provenance.commit(tmp_path) is None
    git("init")
    (tmp_path / "code").write_text("one")
    (tmp_path / ".gitignore").write_text("build/")
    git("add", ".")
    git("commit", "-m", "first")
    commit = provenance.commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    for name in ("build", "goldens"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("text")
    assert changes() == ""
    assert provenance.uncommitted(tmp_path, tmp_path / "goldens") == []
    seen = {changes()}
    for name, text in (("code", "two"), ("more", "one"), ("more", "two"), ("less", "two")):
        (tmp_path / name).write_text(text)
        seen.add(changes())
    assert len(seen) == 5
    assert provenance.uncommitted(tmp_path, tmp_path / "goldens") == ["code", "less", "more"]
    assert provenance.commit(tmp_path) == commit


def test_a_machine_is_its_processor_its_cores_and_its_memory(tmp_path: Path) -> None:
    assert re.fullmatch(r".+, \d+ cores?, \d+ GiB", provenance.machine())
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Some  CPU @ 2 GHz\nmodel name : Other\n")
    assert provenance.processor(tmp_path / "cpuinfo") == "Some CPU @ 2 GHz"
    assert provenance.processor(tmp_path / "none")


@pytest.mark.parametrize(
    ("allowed", "word"), [(False, "renamed"), pytest.param(True, "allowed rename", marks=pytest.mark.slow)]
)
def test_merged_results_and_a_report_count_renames(
    renaming: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: bool, word: str
) -> None:
    if allowed:
        text = renaming.results.read_text()
        lines = [
            line.replace('"accepted": false', '"accepted": true') if '"renamed"' in line else line
            for line in text.splitlines()
        ]
        renaming.results.write_text("\n".join(lines) + "\n")
        for cell in renaming.sweeps.glob("*/*"):
            if cell.name != "alpha":
                (cell / "cell.json").unlink(missing_ok=True)
    merged, file = tmp_path / "merged", tmp_path / "report.html"
    words = ("merge", str(renaming.sweeps), f"--goldens={renaming.goldens}", "--into", str(merged))
    assert cli.main([*words]) == cli.DIFFERENT
    assert f"8 {word}" in capsys.readouterr().out
    assert cli.main(["report", str(merged), f"--goldens={renaming.goldens}", "--html", str(file)]) == cli.SAME
    assert f"8 {word}" in capsys.readouterr().out


def test_the_summary_of_a_job_has_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STEP_SUMMARY, str(tmp_path / "summary"))
    step_summary("t", ["corrupt"], ["corrupt: a: <img src=x> [x](http://y) @z `a`\n# b | c"])
    (line,) = (line for line in (tmp_path / "summary").read_text().splitlines() if line.startswith("-"))
    for markup in ("<img", "http://", "@z", " `a`", " | c", "[x]"):
        assert markup not in line, line
