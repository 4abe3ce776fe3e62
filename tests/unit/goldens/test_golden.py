"""Content of a golden, its comparison, and its safety from accidents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

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
from executorch_goldens.goldens import equality, golden, rendering
from executorch_goldens.goldens.golden import FORMAT, GoldenError
from tests import GOLDENS, REPOSITORY
from tests.support.making import ORIGIN, STACK, golden_of, lowered_by

FAILURE = Failure(
    "lower", "ValueError", "first line\nsecond line", "SomePass", "executorch.x.f", "Traceback …"
)


def fields(texts: Mapping[str, str]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in texts["manifest.txt"].splitlines())


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
def texts() -> dict[str, str]:
    return golden_of(FAILURE)


# What a golden says


def test_a_lowered_artifact_is_a_graph_a_text_per_delegate_and_a_manifest(artifact: Artifact) -> None:
    texts = rendering.render(artifact, ORIGIN)
    assert sorted(texts) == [*("delegate_0.xnnpack.txt", "graph.txt", "manifest.txt", "pte.txt", "trace.txt")]
    assert "executorch_call_delegate" in texts["graph.txt"]
    assert "XNNFullyConnected" in texts["delegate_0.xnnpack.txt"]
    for text in texts.values():
        assert text.endswith("\n")
        assert not any(line != line.rstrip() for line in text.splitlines())


def test_the_manifest_names_format_stack_patches_variations_delegates_and_program(lowered: Lowered) -> None:
    made = fields(golden_of(lowered, patches=("partition-order", "output-aliases")))
    assert made["format"] == str(FORMAT)
    assert {name: made[name] for name in STACK} == STACK
    assert made["patches"] == "partition-order output-aliases"
    assert made["variations"] == "seed0-heap0 seed4-heap1"
    assert made["delegate 0"].startswith("lowered_module_0 XnnpackBackend ")
    assert made["pte"] == f"{len(lowered.pte)} bytes sha256 {lowered.pte_sha256}"
    assert made["numerics"] == ORIGIN.numerics


def test_a_failure_is_one_text_with_its_facts_and_without_its_traceback(texts: dict[str, str]) -> None:
    assert sorted(texts) == ["failure.txt", "manifest.txt"]
    assert texts["failure.txt"] == (
        "stage: lower\ntype: ValueError\npass: SomePass\nfunction: executorch.x.f\n"
        "message: first line\n  second line\n"
    )


def test_what_was_measured_is_not_in_a_golden(lowered: Lowered) -> None:
    assert golden_of(lowered) == golden_of(lowered, seconds=9.0)


# What is compared


def test_patches_and_variations_are_not_compared(lowered: Lowered) -> None:
    one = golden_of(lowered, patches=("partition-order",))
    other = golden_of(lowered, origin=replace(ORIGIN, variations=["seed0-heap0"]))
    assert one != other
    assert equality.compared(one) == equality.compared(other)


def test_shortcuts_are_in_older_goldens_and_are_not_compared(lowered: Lowered) -> None:
    made = golden_of(lowered, shortcuts=("node-history", "collector"))
    assert "shortcuts" not in fields(made)
    text = golden.unsealed(made)[golden.MANIFEST]
    older = golden.sealed(
        {**made, golden.MANIFEST: text.replace("variations: ", "shortcuts: collector\nvariations: ")}
    )
    assert equality.compared(older) == equality.compared(made)
    assert equality.confirmed(older, made) == older


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
    assert rendering.read_trace(traced[golden.TRACE]) == WATCHED.passes[1:]
    assert equality.compared(without) == equality.compared(traced)


# Reading


def test_what_was_written_is_read_back(tmp_path: Path, artifact: Artifact) -> None:
    texts = rendering.render(artifact, ORIGIN)
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path, texts)
    assert golden.read(path) == texts
    assert list(golden.recorded(tmp_path)) == [Cell("tosa-fp", "some-case")]


def test_no_golden_is_none(tmp_path: Path) -> None:
    assert golden.read(tmp_path / "nothing") is None


def hand_edit(path: Path) -> None:
    file = path / "failure.txt"
    file.write_text(file.read_text().replace("ValueError", "TypeError"))


def cut(path: Path) -> None:
    os.truncate(path / "failure.txt", 20)


def lose(path: Path) -> None:
    (path / "failure.txt").unlink()


def add(path: Path) -> None:
    (path / "notes.txt").write_text("mine")


def garble(path: Path) -> None:
    (path / "failure.txt").write_bytes(b"\xff\xfe\x00")


def lose_manifest(path: Path) -> None:
    (path / "manifest.txt").unlink()


def nest(path: Path) -> None:
    (path / "folder").mkdir()


def edit_trace(path: Path) -> None:
    file = path / "trace.txt"
    file.write_text(file.read_text().replace("tag0 tag1", "tag0 tag2"))


def lose_trace(path: Path) -> None:
    (path / "trace.txt").unlink()


def lose_trace_and_its_line(path: Path) -> None:
    (path / "trace.txt").unlink()
    file = path / "manifest.txt"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("trace: ")))


def lengthen(path: Path) -> None:
    with (path / "manifest.txt").open("a") as file:
        file.write("notes: mine\n")


def digest_twice(path: Path) -> None:
    file = path / "manifest.txt"
    file.write_text(f"{file.read_text()}contents: sha256 0\n")


def empty_manifest(path: Path) -> None:
    (path / "manifest.txt").write_text("format: 2\n")


def manifest(old: str, new: str) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        file = path / "manifest.txt"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    edit.__name__ = f"{old} -> {new}"
    return edit


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (hand_edit, "edited by hand"),
        (cut, "edited by hand"),
        (lose, "edited by hand"),
        (add, "edited by hand"),
        (edit_trace, "edited by hand"),
        (lose_trace, "edited by hand"),
        (lose_trace_and_its_line, "edited by hand"),
        (lengthen, "edited by hand"),
        (digest_twice, "edited by hand"),
        (empty_manifest, "edited by hand"),
        (manifest("numerics: outputs", "numerics: output"), "edited by hand"),
        (manifest("contents: sha256", "contents: md5"), "edited by hand"),
        (manifest("patches: none", "patches: partition-order"), "edited by hand"),
        (manifest("seed4-heap1", "seed4-heap1 seed27-heap2"), "edited by hand"),
        (manifest("trace: sha256 ", "trace: sha256 0"), "edited by hand"),
        (garble, "cannot be read"),
        (nest, "cannot be read"),
        (lose_manifest, "has no manifest.txt"),
        (manifest(f"format: {FORMAT}", "format: one"), "'one' is not a number"),
        (manifest(f"format: {FORMAT}", "formal: 1"), "'' is not a number"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_is_named_with_the_golden_and_the_way_out(
    tmp_path: Path, damage: Callable[[Path], None], what: str
) -> None:
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path, golden_of(FAILURE, watched=WATCHED))
    damage(path)
    with pytest.raises(GoldenError) as raised:
        golden.read(path)
    assert path in (raised.value.path, raised.value.path.parent)
    assert what in raised.value.what
    # The damage may be committed.
    assert f"'git log -- {path}'" in raised.value.way_out
    assert f"'git checkout COMMIT -- {path}'" in raised.value.way_out
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("version", "what", "way_out"),
    [(FORMAT + 1, "newer", "later"), (FORMAT - 1, "older", "--snapshot-update")],
)
def test_another_format_is_named_with_the_way_out(
    tmp_path: Path, texts: dict[str, str], version: int, what: str, way_out: str
) -> None:
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path, texts)
    manifest(f"format: {FORMAT}", f"format: {version}")(path)
    with pytest.raises(GoldenError) as raised:
        golden.read(path)
    assert raised.value.path == path / "manifest.txt"
    assert f"format {version}" in raised.value.what
    assert what in raised.value.what
    assert way_out in raised.value.way_out


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_checkout_that_converts_line_ends_leaves_goldens_whole(tmp_path: Path) -> None:
    cell = Cell("tosa-fp", "linear")
    whole = golden.directory(GOLDENS / "1.4.1", cell)
    place = golden.directory(Path("goldens") / "1.4.1", cell)
    shutil.copytree(whole, tmp_path / "one" / place)
    shutil.copy(REPOSITORY / ".gitattributes", tmp_path / "one")
    git(tmp_path / "one", "init")
    git(tmp_path / "one", "add", ".")
    git(tmp_path / "one", "commit", "-m", "one golden")
    git(tmp_path, "clone", "-c", "core.autocrlf=true", "one", "clone")
    assert golden.read(tmp_path / "clone" / place) == golden.read(whole)
    assert b"\r" in (tmp_path / "clone" / ".gitattributes").read_bytes()


def test_a_file_where_a_golden_should_be_is_named(tmp_path: Path) -> None:
    path = tmp_path / "some-case"
    path.write_text("mine")
    with pytest.raises(GoldenError, match="is a file") as raised:
        golden.read(path)
    assert raised.value.path == path


# Writing


def test_writing_again_gives_the_same_bytes(tmp_path: Path, artifact: Artifact) -> None:
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path, rendering.render(artifact, ORIGIN))
    first = {file.name: file.read_bytes() for file in path.iterdir()}
    golden.write(path, rendering.render(artifact, ORIGIN))
    assert {file.name: file.read_bytes() for file in path.iterdir()} == first
    assert [file.name for file in path.parent.iterdir()] == ["some-case"]


def test_lines_end_as_on_every_machine(tmp_path: Path) -> None:
    golden.write(tmp_path / "some-case", {"manifest.txt": "a\nb\n"})
    assert (tmp_path / "some-case" / "manifest.txt").read_bytes() == b"a\nb\n"


def test_a_file_that_the_new_golden_lacks_is_gone(tmp_path: Path, artifact: Artifact, texts: Any) -> None:
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path, rendering.render(artifact, ORIGIN))
    golden.write(path, texts)
    assert sorted(file.name for file in path.iterdir()) == ["failure.txt", "manifest.txt"]


class Interrupt:
    """Raises KeyboardInterrupt in the place of, or half-way through, the nth operation on the file system."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, half: bool) -> None:
        self.remaining = at
        self.half = half
        patch.setattr(Path, "rename", self.counted(Path.rename))
        patch.setattr(Path, "mkdir", self.counted(Path.mkdir))
        patch.setattr(os, "fsync", self.counted(os.fsync))
        patch.setattr(shutil, "rmtree", self.counted(shutil.rmtree, self.remove_half))

    def counted(
        self, operation: Callable[..., Any], halfway: Callable[[Path], None] | None = None
    ) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.remaining -= 1
            if self.remaining == 0:
                if self.half and halfway is not None:
                    halfway(arguments[0])
                raise KeyboardInterrupt
            return operation(*arguments, **keywords)

        return call

    @staticmethod
    def remove_half(path: Path) -> None:
        if path.is_dir():
            sorted(path.iterdir())[-1].unlink()


def interrupted(action: Callable[[], None], at: int, half: bool) -> bool:
    """Carry out `action`, interrupted at its nth operation; return False if it has fewer."""
    with pytest.MonkeyPatch.context() as patch:
        Interrupt(patch, at, half)
        try:
            action()
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("half", [False, True], ids=["before an operation", "half-way through a deletion"])
def test_an_interrupted_write_loses_nothing_wherever_it_is_interrupted(
    tmp_path: Path, texts: dict[str, str], half: bool
) -> None:
    changed = replace(FAILURE, message="another")
    other = golden_of(changed)
    steps = 0
    while True:
        root = tmp_path / str(steps)
        path = root / "tosa-fp" / "some-case"
        golden.write(path, texts)
        steps += 1
        if not interrupted(lambda path=path: golden.write(path, other), steps, half):
            break
        # The recovery may be interrupted as well, and is carried out again.
        for at in (1, 2):
            interrupted(lambda root=root: golden.recover(root), at, half)
        golden.recover(root)
        assert golden.read(path) in (texts, other), f"step {steps}"
        assert [file.name for file in path.parent.iterdir()] == ["some-case"], f"step {steps}"
    # Two deletions of what was left over, a directory, two files, two renames, one deletion.
    assert steps > 7


def test_the_first_write_of_a_golden_leaves_a_whole_one_or_none(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    steps = 0
    while True:
        root = tmp_path / str(steps)
        steps += 1
        path = root / "tosa-fp" / "some-case"
        if not interrupted(lambda path=path: golden.write(path, texts), steps, half=False):
            break
        golden.recover(root)
        assert golden.read(path) in (None, texts), f"step {steps}"
        assert set(golden.recorded(root)) <= {Cell("tosa-fp", "some-case")}
    assert steps > 5


def test_what_stands_beside_a_golden_while_it_is_replaced_is_no_golden(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    for name in (
        "some-case",
        f"some-case{golden.ASIDE}",
        f"some-case{golden.REPLACED}",
    ):
        (tmp_path / "tosa-fp" / name).mkdir(parents=True)
    assert list(golden.recorded(tmp_path)) == [Cell("tosa-fp", "some-case")]


def test_a_golden_that_another_process_replaces_is_read_whole(tmp_path: Path, texts: dict[str, str]) -> None:
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path, texts)
    code = (
        "import sys; from pathlib import Path; from executorch_goldens.goldens import golden\n"
        "path = Path(sys.argv[1]); one = golden.read(path)\n"
        "other = golden.sealed({**golden.unsealed(one), 'notes.txt': 'more'})\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    golden.write(path, other); golden.write(path, one)\n"
    )
    larger = golden.sealed({**golden.unsealed(texts), "notes.txt": "more"})
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        # A busy machine may run the writer late.
        reads, seen, ends = 0, False, time.monotonic() + 60.0
        try:
            while reads < 500 or not (seen or time.monotonic() > ends):
                found = golden.read(path)
                assert found in (texts, larger)
                seen = seen or found == larger
                reads += 1
        finally:
            writer.kill()
    assert seen


def test_a_golden_whose_replacement_was_interrupted_is_the_one_before(
    tmp_path: Path, texts: dict[str, str]
) -> None:
    path = tmp_path / "tosa-fp" / "some-case"
    golden.write(path.with_name("some-case.old~"), texts)
    assert golden.read(path) == texts
