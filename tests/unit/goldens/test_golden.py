"""Content of a golden, its comparison, and its safety from accidents."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import (
    PARTITIONING,
    Artifact,
    Casualty,
    Cell,
    Failure,
    Lowered,
    PassRun,
    Watched,
)
from executorch_goldens.files import durable
from executorch_goldens.goldens import equality, golden, rendering, roots
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import DIGITS, FORMAT, Record
from tests import GOLDENS, REPOSITORY
from tests.support.making import ORIGIN, STACK, golden_of, lowered_by
from tests.support.screens import screen

FAILURE = Failure(
    "lower", "ValueError", "first line\nsecond line", "SomePass", "executorch.x.f", "Traceback …"
)


def fields(texts: Record) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in texts.texts()["manifest"].splitlines())


@pytest.fixture
def artifact(artifacts: Mapping[str, tuple[Artifact | Casualty, ...]]) -> Artifact:
    """A real one, of one linear layer on xnnpack-fp32."""
    made = artifacts["steady"][0]
    assert isinstance(made, Artifact)
    return made


@pytest.fixture
def lowered(artifact: Artifact) -> Lowered:
    return lowered_by(artifact)


@pytest.fixture
def texts() -> Record:
    return golden_of(FAILURE)


# What a golden says


def test_a_lowered_artifact_is_a_graph_a_text_per_delegate_and_a_manifest(artifact: Artifact) -> None:
    texts = rendering.render(artifact, ORIGIN)
    assert sorted(texts.texts()) == [*("delegate_0.xnnpack", "graph", "manifest", "pte", "trace")]
    assert "executorch_call_delegate" in texts.texts()["graph"]
    assert "XNNFullyConnected" in texts.texts()["delegate_0.xnnpack"]
    for text in texts.texts().values():
        assert text.endswith("\n")
        assert not any(line != line.rstrip() for line in text.splitlines())


def test_the_facts_name_stack_patches_variations_delegates_and_program(lowered: Lowered) -> None:
    made = fields(golden_of(lowered, patches=("partition-order", "output-aliases")))
    assert {name: made[name] for name in STACK} == STACK
    assert made["patches"] == "partition-order output-aliases"
    assert made["variations"] == "seed0-heap0 seed4-heap1"
    assert made["delegate 0"].startswith("lowered_module_0 XnnpackBackend ")
    assert made["pte"] == f"{len(lowered.pte)} bytes sha256 {lowered.pte_sha256[:DIGITS]}"
    assert made["numerics"] == ORIGIN.numerics.text()


def test_a_failure_is_one_text_with_its_facts_and_without_its_traceback(texts: Record) -> None:
    assert sorted(texts.texts()) == ["failure", "manifest"]
    assert texts.texts()["failure"] == (
        "stage: lower\ntype: ValueError\npass: SomePass\nfunction: executorch.x.f\n"
        "message: first line\n  second line\n"
    )


# What is compared


def test_patches_and_variations_are_not_compared(lowered: Lowered) -> None:
    one = golden_of(lowered, patches=("partition-order",))
    other = golden_of(lowered, origin=replace(ORIGIN, variations=["seed0-heap0"]))
    assert one != other
    assert equality.compared(one) == equality.compared(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda lowered: replace(lowered, graph=lowered.graph + "\n"),
        lambda lowered: replace(lowered, pte=lowered.pte + b"\0"),
        lambda lowered: replace(lowered, delegates=()),
        lambda lowered: replace(lowered, delegates=(replace(lowered.delegates[0], name="lowered_module_1"),)),
        lambda lowered: replace(
            lowered, delegates=(replace(lowered.delegates[0], backend_id="OtherBackend"),)
        ),
        lambda lowered: replace(lowered, delegates=(replace(lowered.delegates[0], named_data=()),)),
    ],
    ids=["graph", "pte", "delegate missing", "delegate name", "backend", "named data"],
)
def test_everything_that_was_lowered_is_compared(
    lowered: Lowered, change: Callable[[Lowered], Lowered]
) -> None:
    before = golden_of(lowered)
    after = golden_of(change(lowered))
    assert equality.compared(before) != equality.compared(after)


@pytest.mark.parametrize("name", list(STACK))
def test_the_stack_is_compared(lowered: Lowered, name: str) -> None:
    other = replace(ORIGIN, stack=STACK | {name: "0.0.1"})
    one = golden_of(lowered)
    assert equality.compared(one) != equality.compared(golden_of(lowered, origin=other))


WATCHED = Watched(
    (
        PassRun("exir", "Idle", "0123456789ab", False),
        PassRun("arm backend", "Fold", "0123456789ab", True),
        PassRun(PARTITIONING, "TOSAPartitioner", "tag0 tag1", True),
    ),
    (),
)


def test_the_trace_tells_what_changed_the_graph_and_is_not_compared(lowered: Lowered) -> None:
    without = golden_of(lowered)
    traced = golden_of(lowered, watched=WATCHED)
    assert traced.trace == WATCHED.passes[1:]
    assert equality.compared(without) == equality.compared(traced)


# Reading


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tosa-fp" / "some-case.txt"


def test_what_was_written_is_read_back(tmp_path: Path, path: Path, artifact: Artifact) -> None:
    texts = rendering.render(artifact, ORIGIN)
    golden.write(path, texts)
    assert golden.read(path) == texts
    assert list(golden.recorded(tmp_path)) == [Cell("tosa-fp", "some-case")]


def test_no_golden_is_none(tmp_path: Path) -> None:
    assert golden.read(tmp_path / "nothing.txt") is None


def test_what_a_release_shares_is_said_once(tmp_path: Path, path: Path, texts: Record) -> None:
    roots.share(tmp_path, {**STACK, "patches": "none", "variations": "seed0-heap0", "numerics": "mine"})
    golden.write(path, texts)
    assert golden.read(path) == texts
    said = path.read_text()
    assert not any(f"{name}: " in said for name in (*STACK, "patches"))
    # A golden departs from it in what agreed.
    assert said.startswith("golden: 3\nvariations: seed0-heap0 seed4-heap1\nnumerics: ")
    file = tmp_path / golden.RELEASE
    assert "numerics" not in file.read_text()
    file.write_text(file.read_text().replace(STACK["torch"], "2.0.0"))
    with pytest.raises(GoldenError, match=r"line 4: .*release.toml beside it is not the one"):
        golden.read(path)
    file.write_text("torch = 1\n")
    with pytest.raises(GoldenError, match=r"release.toml: torch is no string.*git checkout"):
        golden.read(path)


def test_a_golden_says_what_it_lacks_of_what_a_release_shares(
    tmp_path: Path, path: Path, texts: Record
) -> None:
    roots.share(tmp_path, {**STACK, "mine": "1"})
    golden.write(path, texts)
    assert "without: mine\n" in path.read_text()
    assert golden.read(path) == texts


def edit(old: str, new: str) -> Callable[[Path], None]:
    def edited(path: Path) -> None:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    edited.__name__ = f"{old} -> {new}"
    return edited


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 7)


def garble(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def empty(path: Path) -> None:
    path.write_text("")


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        edit("type: ValueError", "type: TypeError"),
        edit("tag0 tag1", "tag0 tag2"),
        edit("== trace ==\n", ""),
        edit("== trace ==\n", "== notes ==\nmine\n== trace ==\n"),
        edit("numerics: outputs", "numerics: output"),
        edit("contents: sha256", "contents: md5"),
        edit("patches: none", "patches: partition-order"),
        edit("seed4-heap1", "seed4-heap1 seed27-heap2"),
        edit("numerics:", "notes: mine\nnumerics:"),
        edit("contents: ", "contents: sha256 0\ncontents: "),
        edit("contents: ", "mine\ncontents: "),
        edit("== trace ==", "== failure =="),
        edit("== trace ==", "== tra ce =="),
        cut,
        garble,
        empty,
        become_a_folder,
        edit(f"golden: {FORMAT}", "golden: one"),
        edit(f"golden: {FORMAT}", "formal: 1"),
    ],
    ids=lambda damage: damage.__name__,
)
def test_damage_is_named_with_the_line_and_the_way_out(
    path: Path, damage: Callable[[Path], None], snapshot: SnapshotAssertion
) -> None:
    golden.write(path, golden_of(FAILURE, watched=WATCHED))
    damage(path)
    with pytest.raises(GoldenError) as raised:
        golden.read(path)
    assert raised.value.path == path
    assert screen(raised.value.what) == snapshot
    # The damage may be committed.
    assert f"'git log -- {path}'" in raised.value.way_out
    assert f"'git checkout COMMIT -- {path}'" in raised.value.way_out


@pytest.mark.parametrize("version", [FORMAT + 1, FORMAT - 1], ids=["newer", "older"])
def test_another_format_is_named_with_the_way_out(
    path: Path, texts: Record, version: int, snapshot: SnapshotAssertion
) -> None:
    golden.write(path, texts)
    edit(f"golden: {FORMAT}", f"golden: {version}")(path)
    with pytest.raises(GoldenError) as raised:
        golden.read(path)
    assert raised.value.path == path
    assert screen(str(raised.value), {path: "GOLDEN"}) == snapshot


@pytest.mark.parametrize(
    ("version", "what"), [(2, "'2' is older than 3"), (4, "'4' is not 3"), ("", "'' is not 3")]
)
def test_a_root_of_another_format_is_refused(tmp_path: Path, version: object, what: str) -> None:
    (tmp_path / roots.ZOO).write_text(f"format: {version}\nmodels: mine\n")
    with pytest.raises(GoldenError, match=what) as raised:
        roots.check(tmp_path, ["mine"], updating=True)
    assert ("--snapshot-update" in raised.value.way_out) == ("older" in what)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_checkout_that_converts_line_ends_leaves_goldens_whole(tmp_path: Path) -> None:
    cell = Cell("tosa-fp", "linear")
    whole = golden.file_of(GOLDENS / "1.4.1", cell)
    place = golden.file_of(Path("goldens") / "1.4.1", cell)
    (tmp_path / "one" / place).parent.mkdir(parents=True)
    shutil.copy(whole, tmp_path / "one" / place)
    shutil.copy(whole.parent.parent / golden.RELEASE, tmp_path / "one" / place.parent.parent)
    shutil.copy(REPOSITORY / ".gitattributes", tmp_path / "one")
    git(tmp_path / "one", "init")
    git(tmp_path / "one", "add", ".")
    git(tmp_path / "one", "commit", "-m", "one golden")
    git(tmp_path, "clone", "-c", "core.autocrlf=true", "one", "clone")
    assert golden.read(tmp_path / "clone" / place) == golden.read(whole)
    assert b"\r" in (tmp_path / "clone" / ".gitattributes").read_bytes()


# Writing


def test_writing_again_gives_the_same_bytes(path: Path, artifact: Artifact) -> None:
    golden.write(path, rendering.render(artifact, ORIGIN))
    first = path.read_bytes()
    assert b"\r" not in first
    golden.write(path, rendering.render(artifact, ORIGIN))
    assert path.read_bytes() == first
    assert [file.name for file in path.parent.iterdir()] == ["some-case.txt"]


class Interrupt:
    """Raises KeyboardInterrupt in the place of the nth operation on the file system."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.remaining = at
        patch.setattr(Path, "replace", self.counted(Path.replace))
        patch.setattr(Path, "mkdir", self.counted(Path.mkdir))
        patch.setattr(Path, "open", self.counted(Path.open))
        patch.setattr(os, "fsync", self.counted(os.fsync))

    def counted(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.remaining -= 1
            if self.remaining == 0:
                raise KeyboardInterrupt
            return operation(*arguments, **keywords)

        return call


def interrupted(action: Callable[[], None], at: int) -> bool:
    """Carry out `action`, interrupted at its nth operation; return False if it has fewer."""
    with pytest.MonkeyPatch.context() as patch:
        Interrupt(patch, at)
        try:
            action()
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("first", [False, True], ids=["replaced", "first"])
def test_an_interrupted_write_leaves_the_golden_before_or_after_wherever_it_is_interrupted(
    tmp_path: Path, texts: Record, first: bool
) -> None:
    other = golden_of(replace(FAILURE, message="another"))
    steps = 0
    while True:
        root = tmp_path / str(steps)
        path = root / "tosa-fp" / "some-case.txt"
        if not first:
            golden.write(path, texts)
        steps += 1
        if not interrupted(lambda path=path: golden.write(path, other), steps):
            break
        golden.recover(root)
        assert golden.read(path) in ((None if first else texts), other), f"step {steps}"
        names = [file.name for file in root.rglob("*") if file.is_file()]
        assert names in ([], ["some-case.txt"]), f"step {steps}"
    # Opening and syncing a file, a rename, syncing the folder.
    assert steps > 4


def test_what_stands_beside_a_golden_while_it_is_replaced_is_no_golden(tmp_path: Path, texts: Record) -> None:
    path = tmp_path / "tosa-fp" / "some-case.txt"
    golden.write(path, texts)
    path.with_name(f"{path.name}.1-2{durable.ASIDE}").write_text("half")
    path.with_name(".hidden.txt").write_text("mine")
    assert list(golden.recorded(tmp_path)) == [Cell("tosa-fp", "some-case")]
    golden.recover(tmp_path)
    assert sorted(file.name for file in path.parent.iterdir()) == [".hidden.txt", "some-case.txt"]
