"""Each wrong input is one clear error that names it and the way out; no golden is touched."""

from __future__ import annotations

import argparse
import os
import re
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import filelock
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Artifact, Lowered
from executorch_goldens.cli import ERROR
from executorch_goldens.errors import UsageError
from executorch_goldens.files.invocation import in_ci, require_a_person
from executorch_goldens.goldens.record import FORMAT
from executorch_goldens.running.options import Options
from executorch_goldens.running.plan import plan
from executorch_goldens.settings.arguments import amount, positive_int
from tests.support.runner import Runner, options_of
from tests.support.screens import screen

UPDATE = "--snapshot-update"


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, release: str, artifacts: Mapping[str, tuple[Artifact, ...]]
) -> Runner:
    """A runner with one case, alpha, whose goldens are recorded."""
    runner = Runner(tmp_path_factory.mktemp("recorded"), release)
    runner.zoo("zoo_alpha", "alpha")
    runner.answers({"alpha": artifacts["steady"][0]})
    finished = runner("--models", "zoo_alpha", UPDATE)
    assert finished.code == 0, finished.output
    return runner


@pytest.fixture
def untouched(recorded: Runner) -> Iterator[Runner]:
    """`recorded`; afterwards its goldens are unchanged, byte for byte and file for file."""
    before = recorded.files()
    assert before
    yield recorded
    assert recorded.files() == before


def options(**asked: Any) -> Options:
    """Return the plugin's options of a run by default, updated by `asked`."""
    unsaid = Options(
        variations="full",
        models=("models",),
        goldens=Path("goldens"),
        sweeps=Path("sweeps"),
    )
    return replace(unsaid, **asked)


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        ({"cells": ("tosa-fp8/lstm",)}, ["unknown target 'tosa-fp8'", "tosa-fp", "xnnpack-int8"]),
        ({"cells": ("tosa-fp/lsmt",)}, ["unknown case 'lsmt'", "did you mean lstm?"]),
        (
            {"cells": ("tosa-fp/zzzzzz",)},
            ["unknown case 'zzzzzz'", "cases: exponentials, log1p, ", " and ", " more"],
        ),
        ({"cells": ("tosa-fp/lstm", "lstm")}, ["'lstm'", "TARGET/CASE", "tosa-fp/"]),
        ({"patches": "no-such"}, ["'no-such'", "partition-order"]),
        ({"patches": "none,partition-order"}, ["'none'", "partition-order"]),
        ({"variations": "many"}, ["'many'", "quick, full"]),
        ({"variations": "0,4294967296"}, ["'4294967296'", "4294967295"]),
        (
            {"models": ("no_such_zoo",)},
            ["--models no_such_zoo", "No module named", "name a module that registers cases"],
        ),
        ({"models": ("json",)}, ["--models json", "no case is registered"]),
        ({"toolchain": "/no/such/python"}, ["'/no/such/python'", "/no/such/python does not exist"]),
        ({"toolchain": "newest"}, ["'newest' is no toolchain", "1.5.1 + torch==2.15.0"]),
        (
            {"toolchain": "tests + torch==2.15.0"},
            ["'tests + torch==2.15.0'", "tests has no environment in it"],
        ),
        ({"toolchain": "1.4.1 + nowhere"}, ["nowhere is neither a requirement", "nor a folder"]),
    ],
    ids=str,
)
def test_what_a_run_cannot_do_is_named_with_what_it_can(asked: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        plan(options(**asked))
    for fact in facts:
        assert fact in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--toolchain", "first"], ["'first' is no toolchain", "1.5.1"]),
        (["-t", "first"], ["'first' is no toolchain", "1.5.1"]),
        (["--jobs", "0"], ["'0'", "at least 1"]),
        (["--jobs", "many"], ["'many'", "at least 1"]),
        (["--cache", "fill"], ["'fill' is neither on nor off", "./fill"]),
        (["--cache", "/dev/null"], ["the cache /dev/null", "cannot be written", "--cache DIR"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_a_run_that_cannot_start_says_so_in_one_error(
    untouched: Runner, arguments: list[str], facts: list[str]
) -> None:
    finished = untouched("--models", "zoo_alpha", UPDATE, *arguments)
    finished.refused(*facts)
    assert finished.code in (ERROR, pytest.ExitCode.USAGE_ERROR)
    assert len(re.findall("^ERROR: |^.*: error: |^goldens: ", finished.output, re.MULTILINE)) == 1, (
        finished.output
    )


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--shard", "6/5"), ("'6/5'", "the numbers are 1 to 5")),
        (("--shard", "0/5"), ("'0/5'", "the numbers are 1 to 5")),
        (("--shard", "half"), ("'half'", "such as 2/5")),
        (("--shard", "1/0"), ("'1/0'", "1 to 0")),
        (("--explain", "3"), ("'3'", "some")),
    ],
    ids=" ".join,
)
def test_what_an_option_does_not_take_is_named_with_what_it_takes(
    words: tuple[str, ...], facts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(*words)
    last = capsys.readouterr().err.splitlines()[-1]
    for fact in (words[0], *facts):
        assert fact in last


def test_an_environment_without_executorch_is_named(untouched: Runner, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    finished = untouched("--models", "zoo_alpha", "--toolchain", python, UPDATE)
    finished.refused("no ExecuTorch is installed", python)


@pytest.mark.slow
def test_an_environment_without_flatc_is_named(untouched: Runner, tmp_path: Path) -> None:
    # The packages of this environment, and a bin that holds nothing but an interpreter.
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(os.path.realpath(sys.executable))
    packages = tmp_path / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    packages.parent.mkdir(parents=True)
    packages.symlink_to(sysconfig.get_path("purelib"))
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    # It is this pytest; a plugin warns where it runs beside others.
    untouched.environment["PYTHONWARNINGS"] = "ignore"
    finished = untouched("--models", "zoo_alpha", "--toolchain", str(python), UPDATE)
    finished.refused("no flatc", str(python.parent), "nox")


@pytest.mark.slow
def test_a_patch_that_does_not_fit_ends_the_run_with_one_error(runner: Runner) -> None:
    # unique-outputs knows 1.1.0 and 1.2.0 only.
    arguments = [
        "--models",
        "tests.support.zoo",
        "--variations",
        "0,4",
        "--patches",
        "unique-outputs",
        UPDATE,
    ]
    finished = runner(*arguments, "--cell", "xnnpack-fp32/steady", "--cell", "xnnpack-fp32/wrong")
    finished.refused("'unique-outputs'", runner.release, "--patches")
    assert finished.output.count("was not written for") == 1
    assert not runner.root.exists() or runner.recorded() == set()


# Goldens


def spoil(runner: Runner, old: bytes, new: bytes) -> None:
    file = runner.root / "tosa-fp" / "alpha.txt"
    assert old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(old, new))


@pytest.fixture
def spoilt(runner: Runner, recorded: Runner) -> Runner:
    """A runner of its own with the goldens of `recorded`, to be damaged."""
    runner.environment = recorded.environment
    runner.zoo("zoo_alpha", "alpha")
    for name, (data, _, _) in recorded.files().items():
        (runner.goldens / name).parent.mkdir(parents=True, exist_ok=True)
        (runner.goldens / name).write_bytes(data)
    return runner


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"getitem", b"gotitem"),
        (b"getitem", b"\xff"),
        (f"golden: {FORMAT}".encode(), b"golden: 99"),
        (f"golden: {FORMAT}".encode(), b"golden: 1"),
    ],
    ids=["edited", "damaged", "newer", "older"],
)
def test_a_golden_that_cannot_be_used_is_named_and_left_alone(
    spoilt: Runner, old: bytes, new: bytes, snapshot: SnapshotAssertion
) -> None:
    spoil(spoilt, old, new)
    before = spoilt.files()
    finished = spoilt("--models", "zoo_alpha", UPDATE)
    finished.refused()
    assert finished.printed() == snapshot
    assert finished.verdicts()["tosa-fp/alpha"] == "damaged-golden"
    assert screen(finished.reason("tosa-fp/alpha"), finished.names) == snapshot
    assert spoilt.files() == before


def test_a_payload_that_cannot_be_decoded_is_named_and_its_bytes_are_kept(
    spoilt: Runner, artifacts: Mapping[str, tuple[Artifact, ...]], snapshot: SnapshotAssertion
) -> None:
    artifact = artifacts["steady"][0]
    assert isinstance(artifact.result, Lowered)
    delegate = replace(artifact.result.delegates[0], payload=b"no payload")
    # Its own: the answers of `recorded` stay what they are.
    spoilt.environment = {}
    spoilt.answers({"alpha": replace(artifact, result=replace(artifact.result, delegates=(delegate,)))})
    before = spoilt.files()
    finished = spoilt("--models", "zoo_alpha", "--cell", "tosa-fp/alpha", UPDATE)
    finished.refused()
    assert finished.printed() == snapshot
    row = finished.rows["tosa-fp/alpha"]
    assert row["verdict"] == "undecodable"
    assert screen(finished.reason("tosa-fp/alpha"), finished.names) == snapshot
    kept = [path.read_bytes() for path in (spoilt.sweeps / "tosa-fp/alpha").glob("*/delegate_0.bin")]
    assert kept == [b"no payload"] * len(row["variations"])
    assert spoilt.files() == before


def test_a_goldens_folder_that_cannot_be_written_is_named(spoilt: Runner, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    finished = spoilt("--models", "zoo_alpha", f"--goldens={in_the_way}", UPDATE)
    finished.refused(str(in_the_way / spoilt.release), "cannot be written")
    assert in_the_way.read_text() == "mine"


def test_a_results_folder_that_cannot_be_written_is_named(untouched: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    finished = untouched("--models", "zoo_alpha", f"--sweeps={tmp_path / 'file'}", UPDATE)
    finished.refused(f"--sweeps {tmp_path / 'file'}", "cannot be written")


def test_an_interrupted_update_is_finished_by_the_next(spoilt: Runner) -> None:
    before = spoilt.files()
    (spoilt.root / "tosa-fp" / "alpha.txt.1-2.new~").write_text("half")
    (spoilt.root / "probe.new~").mkdir()
    finished = spoilt("--models", "zoo_alpha", UPDATE)
    assert finished.code == 0, finished.output
    assert set(finished.verdicts().values()) == {"stable"}
    assert spoilt.files() == before


# Two at once


def test_two_runs_at_once_are_refused_with_the_lock_that_is_held(untouched: Runner) -> None:
    with filelock.FileLock(untouched.sweeps / "lock"):
        untouched("--models", "zoo_alpha", UPDATE).refused(str(untouched.sweeps / "lock"), untouched.release)
    assert untouched("--models", "zoo_alpha").code == 0


def test_two_runs_at_once_may_not_write_one_root_and_one_may_read_it(
    untouched: Runner, tmp_path: Path
) -> None:
    elsewhere = f"--sweeps={tmp_path}"
    lock = untouched.goldens / f".{untouched.release}.lock"
    with filelock.FileLock(lock):
        untouched("--models", "zoo_alpha", elsewhere, UPDATE).refused(str(lock), "being written")
        assert untouched("--models", "zoo_alpha", elsewhere).code == 0


def test_a_run_that_reads_leaves_alone_what_a_run_that_writes_has_half_written(spoilt: Runner) -> None:
    (spoilt.root / "tosa-fp" / "alpha.txt.1-2.new~").write_text("half")
    before = spoilt.files()
    finished = spoilt("--models", "zoo_alpha")
    assert finished.code == 0, finished.output
    assert spoilt.files() == before


@pytest.mark.slow
def test_xdist_is_refused_with_the_option_that_does_the_same(untouched: Runner) -> None:
    finished = untouched("--models", "zoo_alpha", "-n", "2", UPDATE)
    finished.refused("--jobs")
    assert not finished.rows


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("0.1", None), ("-1", None), ("nan", None), ("1e3", None), ("٣", None)),
        *(("1 XB", None), ("", None), ("9" * 30 + "T", None)),
        *(("1.9", 1), ("1.5 M", 1572864), ("2TiB", 2**41), ("9007199254740993", 2**53 + 1)),
    ],
)
def test_a_number_of_bytes_is_what_it_says_and_at_least_one(text: str, count: int | None) -> None:
    if count is not None:
        assert amount(text) == count
        return
    with pytest.raises(ValueError, match="is not a number of bytes of at least 1"):
        amount(text)


@pytest.mark.parametrize("text", ["²", "٣", "0", "-1", "1.0"])
def test_a_whole_number_is_one_of_ascii_digits(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="whole number of at least 1"):
        positive_int(text)


@pytest.mark.parametrize(
    ("value", "is_ci"),
    [
        *((None, False), ("", False), ("False", False), ("0", False), ("no", False), ("off", False)),
        *(("true", True), ("woodpecker", True)),
    ],
)
def test_ci_is_what_the_variable_says(
    monkeypatch: pytest.MonkeyPatch, value: str | None, is_ci: bool
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if value is not None:
        monkeypatch.setenv("CI", value)
    assert in_ci() == is_ci
    assert options_of("--models", "models").caches != is_ci
    if is_ci:
        with pytest.raises(UsageError, match="CI is set"):
            require_a_person(updating=True)
    else:
        require_a_person(updating=True)
