"""Untrusted files run no code, write nowhere else, exhaust no memory and move no cursor: the lab's page on this."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import HarnessError, UsageError
from executorch_goldens.files import untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens.goldens import decisions, golden
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.results import merging
from executorch_goldens.results import rows as results
from executorch_goldens.results.merging import MergeError
from executorch_goldens.results.proposals import CellFile, ProposalError
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.settings import config
from executorch_goldens.sweep import store as storage
from executorch_goldens.sweep.store import Store, StoreError
from tests import DATA, GOLDENS

RESULTS = DATA / "report_results" / "stock"
GOLDEN = GOLDENS / "1.4.1" / "tosa-fp" / "linear.txt"
#: A key of the store.
KEY = f"exports/{'0' * 64}/{'0' * 64}"

NAMES = (
    *(
        "..",
        ".",
        "",
        "../x",
        "a/b",
        "/etc/passwd",
        "a\\b",
        "c:",
        ".git",
        "-rf",
        "con",
        "NUL.txt",
        "com1",
        "a.",
        "a ",
    ),
    *("a\n", "\x1b[2J", "\u202ea", "é", "x" * 201, "~", "*", "\0", "\ud800"),
)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A release's folder with one golden."""
    (tmp_path / "goldens" / "tosa-fp").mkdir(parents=True)
    shutil.copy(GOLDEN, tmp_path / "goldens" / "tosa-fp" / "linear.txt")
    shutil.copy(GOLDEN.parent.parent / golden.RELEASE, tmp_path / "goldens")
    return tmp_path / "goldens"


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """Results of a run."""
    shutil.copytree(RESULTS / "1.2.0", tmp_path / "shard")
    return tmp_path / "shard"


# Names


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_that_is_no_file_name_everywhere_is_refused(name: str) -> None:
    with pytest.raises(UntrustedError, match="cannot be the name"):
        untrusted.require_name(name)
    with pytest.raises(UntrustedError):
        untrusted.inside(Path(), "a", name)


@pytest.mark.parametrize(
    "name", ["tosa-fp+cf", "1.4.1", "seed0-heap0", "delegate_0.tosa", "console", "com10"]
)
def test_names_of_the_project_are_names(name: str) -> None:
    assert untrusted.require_name(name) == name


def with_row(shard: Path, **fields: object) -> Path:
    """Change the first line of the results in `shard`."""
    file = shard / results.FILE
    first, *others = file.read_text().splitlines()
    file.write_text("\n".join([json.dumps(json.loads(first) | fields), *others]) + "\n")
    return file


def with_fields(file: Path, **fields: object) -> Path:
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    return file


@pytest.mark.parametrize("name", ["..", "../../x", "/etc", "nul"])
def test_no_reader_takes_a_name_that_leaves_its_folder(name: str, shard: Path, recorded: Path) -> None:
    sound = {"release": "1.2.0", "target": "tosa-fp", "case": "linear"}
    for field in sound:
        with pytest.raises(UsageError, match="cannot be the name"):
            results.read(with_row(shard, **sound | {field: name}))
    for field in ({"release": name}, {"cells": [f"tosa-fp/{name}"]}, {"selected": [f"{name}/linear"]}):
        with_fields(shard / "run.json", **field)
        with pytest.raises(UsageError, match="run its cells again"):
            Provenance.load(shard)
    with pytest.raises(GoldenError, match="cannot be the name"):
        golden.file_of(recorded, Cell("tosa-fp", name))


def test_a_proposal_is_of_a_release_and_a_cell(shard: Path) -> None:
    folder = shard / "tosa-fp" / "two-delegates"
    file = folder / "cell.json"
    proposal = json.loads(file.read_text())["proposal"]
    with_fields(file, proposal=proposal | {"release": "../.."})
    with pytest.raises(ProposalError, match="cannot be the name"):
        CellFile.load(folder)


def test_a_key_of_the_store_is_of_digests(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for act in (store.facts, store.content, store.answers, lambda key: store.add(key, b"x")):
        with pytest.raises(StoreError, match="which is no key"):
            act("../../../outside")
    assert not (tmp_path / "outside").exists()


# Links


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.txt"
    file.write_text("secret\n")
    return file


def test_a_link_in_a_golden_is_not_followed(recorded: Path, secret: Path) -> None:
    place = recorded / "tosa-fp" / "linear.txt"
    place.unlink()
    place.symlink_to(secret)
    with pytest.raises(GoldenError, match=r"linear.txt is a link") as raised:
        golden.read(place)
    assert "git checkout" in raised.value.way_out


def test_a_golden_or_target_that_is_a_link_is_refused(recorded: Path, tmp_path: Path) -> None:
    shutil.move(recorded / "tosa-fp", tmp_path / "elsewhere")
    (recorded / "tosa-fp").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GoldenError, match="is a link"):
        golden.file_of(recorded, Cell("tosa-fp", "linear"))
    (recorded / "tosa-fp").unlink()
    (recorded / "tosa-fp").mkdir()
    (recorded / "tosa-fp" / "linear.txt").symlink_to(tmp_path / "elsewhere" / "linear.txt")
    with pytest.raises(GoldenError, match=r"linear.txt is a link, which is not followed"):
        golden.file_of(recorded, Cell("tosa-fp", "linear"))


def test_results_with_a_link_are_not_merged(shard: Path, secret: Path, tmp_path: Path) -> None:
    (shard / "tosa-fp" / "two-delegates" / "seed0-heap0" / "golden.txt").unlink()
    (shard / "tosa-fp" / "two-delegates" / "seed0-heap0" / "golden.txt").symlink_to(secret)
    with pytest.raises(MergeError, match=r"golden.txt is a link"):
        merging.find([shard])
    assert cli.main(["merge", str(shard), "--into", str(tmp_path / "merged")]) == cli.ERROR
    assert not (tmp_path / "merged").exists()


# Sizes, depths, and what is no file


def test_no_more_is_read_than_such_a_file_may_hold(tmp_path: Path) -> None:
    file = tmp_path / "graph"
    file.touch()
    os.truncate(file, untrusted.LARGEST_TEXT + 1)
    with pytest.raises(UntrustedError, match="more than the 16,777,216"):
        untrusted.text(file)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(UntrustedError, match="is no file"):
            untrusted.text(path)


@pytest.mark.parametrize("text", ["[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "[" * 200_000])
def test_json_nests_so_deep_and_no_deeper(text: str) -> None:
    with pytest.raises(ValueError, match=r"nests deeper|Expecting"):
        untrusted.json_of(text)
    untrusted.json_of("[" * 64 + "]" * 64)


def test_an_entry_that_unpacks_to_more_than_an_entry_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "LARGEST", 1 << 20)
    store = Store(tmp_path / "store")
    store.add(KEY, storage.signed(KEY, zlib.compress(bytes(1 << 24))))
    assert store.get(KEY, Cell("tosa-fp", "linear"), "seed0-heap0") is None
    assert store.damaged == [KEY]


def archive(folder: Path, *members: tuple[str, bytes]) -> Path:
    folder.mkdir()
    (folder / "cell.json").write_text('{"format": 3}')
    with zipfile.ZipFile(folder / "cell.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return folder


def array(shape: tuple[int, ...], content: bytes, descr: str = "<f4") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("0.actual.npy", array((1 << 40,), b""), "in 0 bytes"),
        ("0.actual.npy", array((-1,), b""), "none of numbers"),
        ("0.actual.npy", array((1,), pickle.dumps([1]), "|O"), "none of numbers"),
        ("0.actual.npy", bytes(65 << 20), "holds more than"),
        ("0.other.npy", array((1,), bytes(4)), "no tensor of a cell"),
    ],
)
def test_tensors_take_no_more_than_they_hold(name: str, content: bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(ProposalError, match=what):
        CellFile.load(archive(tmp_path / "cell", (name, content)), arrays=True)


EVERY = {side: array((2, 3), bytes(24)) for side in ("actual", "expected", "tolerance")}


@pytest.mark.parametrize(
    ("side", "content", "what"),
    [
        ("expected", array((3, 2), bytes(24)), "of shapes"),
        ("actual", array((), bytes(4)), "of shapes"),
        ("tolerance", array((3,), bytes(12)), "of shapes"),
        ("tolerance", array((2, 3), np.full((2, 3), np.nan, np.float32).tobytes()), "no number from 0"),
        ("tolerance", array((2, 3), np.full((2, 3), -1, np.float32).tobytes()), "no number from 0"),
        ("tolerance", array((2, 3), bytes(48), "<c8"), "no number from 0"),
        ("tolerance", None, "only one of expected and tolerance"),
        ("expected", None, "only one of expected and tolerance"),
        ("actual", None, "no actual values"),
    ],
)
def test_sides_of_a_tensor_that_cannot_be_compared_are_damage(
    side: str, content: bytes | None, what: str, tmp_path: Path
) -> None:
    sides = {**EVERY, side: content}
    members = [(f"0.{name}.npy", each) for name, each in sides.items() if each is not None]
    cell = archive(tmp_path / "cell", *members)
    tensor = {"kind": "output", "name": "output 0", "where": "example", "variation": "seed0-heap0"}
    (cell / "cell.json").write_text(json.dumps({"format": 3, "evidence": {"tensors": [tensor]}}))
    with pytest.raises(ProposalError, match=what):
        CellFile.load(cell, arrays=True)


def test_facts_of_a_release_that_nest_too_deep_are_one_error(recorded: Path) -> None:
    (recorded / golden.RELEASE).write_text("a = " + "[" * 5000)
    with pytest.raises(GoldenError, match="nests too deep"):
        golden.read(recorded / "tosa-fp" / "linear.txt")


@pytest.mark.parametrize("patches", [None, 5, "auto", [1]])
def test_patches_of_a_run_are_names(patches: object, shard: Path) -> None:
    with_fields(shard / "run.json", settings={"patches": patches})
    with pytest.raises(UsageError, match="run its cells again"):
        Provenance.load(shard)


def test_results_of_an_older_format_are_one_error_that_says_to_run_again(shard: Path) -> None:
    file = with_row(shard, format=1)
    with pytest.raises(UsageError, match=r"line 1, cannot be read: its format is not 2; run the cells again"):
        results.read(file)


def test_a_row_that_cannot_be_read_is_named_by_its_line(shard: Path) -> None:
    file = shard / results.FILE
    lines = file.read_text().splitlines()
    for broken in ("{", "1", lines[2].replace('"accepted": ', '"accepted": 2'), "[" * 100_000):
        file.write_text("\n".join([*lines[:2], broken, *lines[3:]]) + "\n")
        with pytest.raises(UsageError, match=r"results.jsonl, line 3, cannot be read: "):
            results.read(file)


# Marks of editors and of checkouts


def test_a_byte_order_mark_is_named_in_every_file(shard: Path, recorded: Path, tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    place = recorded / "tosa-fp" / "linear.txt"
    for file in (shard / results.FILE, shard / "run.json", place, recorded / golden.RELEASE):
        before = file.read_bytes()
        file.write_bytes(mark + before)
        with pytest.raises(HarnessError, match=r"begins with a byte-order mark: sed -i .* removes it"):
            {results.FILE: results.read, "run.json": lambda path: Provenance.load(path.parent)}.get(
                file.name, lambda _: golden.read(place)
            )(file)
        file.write_bytes(before)
    (tmp_path / "pyproject.toml").write_bytes(mark + b"[tool.goldens]\n")
    (tmp_path / "decisions.toml").write_bytes(mark)
    for read in (lambda: config.load(tmp_path), lambda: decisions.read(tmp_path)):
        with pytest.raises(UsageError, match="begins with a byte-order mark") as raised:
            read()
    command = str(raised.value).partition("mark: ")[2].partition(" removes")[0]
    subprocess.run(command, shell=True, check=True)
    assert decisions.read(tmp_path) == ()


def test_line_ends_of_windows_are_named_where_a_digest_covers_them(recorded: Path) -> None:
    place = recorded / "tosa-fp" / "linear.txt"
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(GoldenError, match="CRLF line ends") as raised:
        golden.read(place)
    assert f"'* -text' into {place.parent}/.gitattributes" in raised.value.way_out


# Code


class Bomb:
    """Runs this when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.file),)


def test_no_reader_unpickles(tmp_path: Path, shard: Path, recorded: Path) -> None:
    ran = tmp_path / "ran"
    bomb = pickle.dumps(Bomb(ran))
    store = Store(tmp_path / "store")
    store.add(KEY, storage.signed(KEY, zlib.compress(bomb)))
    store.add(f"facts/{'1' * 64}", bomb)
    cell = archive(tmp_path / "cell", ("0.actual.npy", array((1,), bomb, "|O")))
    for file in (shard / "run.json", shard / results.FILE, recorded / "tosa-fp" / "linear.txt"):
        file.write_bytes(bomb)
    place = shard / "tosa-fp" / "two-delegates"
    (place / "cell.json").write_bytes(bomb)
    for read in (
        lambda: CellFile.load(cell, arrays=True),
        lambda: Provenance.load(shard),
        lambda: results.read(shard / results.FILE),
        lambda: golden.read(recorded / "tosa-fp" / "linear.txt"),
        lambda: CellFile.load(place),
    ):
        with pytest.raises(HarnessError):
            read()
    assert store.get(KEY, Cell("tosa-fp", "linear"), "seed0-heap0") is None
    assert store.facts(f"facts/{'1' * 64}") is None
    assert not ran.exists()


# What is shown

HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202e\u2028\ud800"


def test_a_command_shows_what_a_terminal_would_obey_as_text(
    shard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shard / "tosa-int" / "cat-h-v" / "cell.json"
    with_fields(file, proposal=json.loads(file.read_text())["proposal"] | {"verdict": HOSTILE})
    run = shard.with_name("1.2.0")
    shard.rename(run)
    words = ("--sweeps", str(run.parent), "--goldens", str(GOLDENS))
    texts = [shard.with_name(name) for name in ("one.txt", "other.txt")]
    for text in texts:
        text.write_text(f"{text.name} {HOSTILE[:-1]}\n")
    for command in (
        ["review", *words],
        ["merge", "--markdown", str(run)],
        ["report", str(run), "--html", str(tmp_path / "report.html")],
        ["merge", str(run), "--into", str(tmp_path / "merged")],
        ["show", f"no{HOSTILE[:-1]}"],
        ["diff", *map(str, texts)],
    ):
        cli.main(command)
        printed = "".join(capsys.readouterr())
        assert printed
        assert not untrusted.CONTROLS.search(printed), command


def test_a_failing_cell_gives_a_job_no_command() -> None:
    said = untrusted.escape_ci(f"corrupt: a\n  ::add-mask::x\n::error::y\nz ##[group]q {HOSTILE}")
    assert not untrusted.CONTROLS.search(said)
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in said.splitlines())
