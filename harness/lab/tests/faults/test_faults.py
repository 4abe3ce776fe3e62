"""Regression tests of defects that faults have shown, and, slowly, the faults themselves."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.files import durable, os_errors
from executorch_goldens.files.invocation import UPDATE
from executorch_goldens.files.os_errors import OsRefusedError
from executorch_goldens.goldens import golden, roots
from executorch_goldens.goldens.golden import GoldenError, UnwritableError
from executorch_goldens.goldens.record import GRAPH, Record
from executorch_goldens.judging.snapshot import GoldenExtension
from executorch_goldens.results import merging, provenance
from executorch_goldens.results.merging import MergeError
from executorch_goldens.results.rows import lock
from executorch_goldens.sweep import casualties, folder
from executorch_goldens.sweep.folder import Folder
from lab.faults import __main__ as faults
from lab.faults import power, updating
from lab.faults.__main__ import FAULTS, NAMES, Row
from lab.faults.fault import Fault, baseline, tried
from lab.faults.place import LostError, Place
from lab.faults.server import Server
from tests import GOLDENS, REPOSITORY

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "graph")


@pytest.fixture
def texts(release: str) -> Record:
    """A golden of this release, as it was recorded."""
    read = golden.read(GOLDENS / release / "xnnpack-fp32" / "linear.txt")
    assert read is not None
    return read


@pytest.fixture
def other(texts: Record) -> Record:
    return Record(texts.facts, {**texts.sections, GRAPH: "another graph\n"})


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


# Goldens that are being written


def test_a_golden_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, texts: Record, other: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tosa-fp" / "a.txt"
    golden.write(path, texts)

    def full(self: Path, target: Path) -> Path:
        raise FULL

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UnwritableError, match="No space left"):
        golden.write(path, other)
    assert golden.read(path) == texts
    assert names(path.parent) == ["a.txt"]


def test_the_folder_of_a_first_golden_is_on_the_disk_when_the_golden_is(
    tmp_path: Path, texts: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync_folder", synced.append)
    path = tmp_path / "1.4.1" / "tosa-fp" / "a.txt"
    # As syrupy calls it, whose own would make the folders before.
    snapshots = [(texts.text(), None, 0)]
    GoldenExtension.for_golden(path, None).write_snapshot(snapshot_location=str(path), snapshots=snapshots)  # type: ignore[arg-type]
    assert golden.read(path) == texts
    assert {tmp_path, tmp_path / "1.4.1", path.parent} <= set(synced)


def test_the_folder_of_a_release_is_no_link(tmp_path: Path, texts: Record) -> None:
    outside = tmp_path / "outside"
    golden.write(outside / "tosa-fp" / "a.txt", texts)
    root = tmp_path / "goldens" / "1.4.1"
    root.parent.mkdir()
    root.symlink_to(outside)
    with pytest.raises(GoldenError, match="is a link, which is not followed"):
        golden.file_of(root, Cell("tosa-fp", "a"))
    with pytest.raises(GoldenError, match="is a link, which is not followed"):
        roots.open_for_writing(root, roots.lock(root.parent, "1.4.1"))


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zoo.txt"
    durable.replace(path, "before\n")

    def full(descriptor: int) -> None:
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            durable.replace(path, "after\n")
    assert path.read_text() == "before\n"
    assert names(tmp_path) == ["zoo.txt"]


# Folders of sweeps that were killed

HOLD = (
    "import sys; from executorch_goldens.sweep.folder import Folder; "
    "f = Folder.make(); print(f.path, flush=True); input()"
)


def test_the_folder_of_a_killed_sweep_is_deleted_by_the_next_and_that_of_a_living_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert held.stdout is not None
    path = Path(held.stdout.readline().strip())
    (path / "export-0").mkdir()
    monkeypatch.setattr(folder.tempfile, "tempdir", str(tmp_path))
    with Folder.make() as own:
        assert sorted([path, own.path]) == sorted(tmp_path.iterdir())
    held.kill()
    held.communicate()
    with Folder.make() as own:
        assert [own.path] == list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


# Ends

ASLEEP = """
import sys, time
from lab.__main__ import main
from lab.core import command as core
def run(arguments):
    try:
        print("asleep", flush=True)
        time.sleep(60)
    finally:
        print("in order", flush=True)
add_to = core.add_to
def asleep(subparsers):
    subparsers.add_parser("core").set_defaults(run=run)
core.add_to = asleep
sys.exit(main(["core"]))
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)],
)
def test_a_command_that_is_asked_to_end_does_so_in_order(number: int, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ASLEEP],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell's background jobs have SIGINT ignored, those of nohup SIGHUP, and hand that on.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asleep\n"
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert output.startswith("in order\n")
    assert "Traceback" not in output
    assert process.returncode == code


@pytest.mark.parametrize(
    ("number", "facts"),
    [
        (errno.ENOSPC, ("/x/graph.txt", "No space left", "make room")),
        (errno.EROFS, ("/x/graph.txt", "Read-only", "make it writable")),
        (errno.EMFILE, ("/x/graph.txt", "Too many open files", "ulimit -n")),
    ],
)
def test_what_the_machine_does_not_let_is_one_error_with_a_way_out(
    number: int, facts: tuple[str, ...]
) -> None:
    with pytest.raises(OsRefusedError) as raised, os_errors.as_user_error():
        raise OSError(number, os.strerror(number), "/x/graph.txt")
    for fact in facts:
        assert fact in str(raised.value)


def test_what_no_person_can_put_right_stays_what_it_is() -> None:
    with pytest.raises(FileNotFoundError), os_errors.as_user_error():
        raise FileNotFoundError(errno.ENOENT, "no such file", "/x")


# Two at once


def test_results_that_a_run_works_on_are_not_merged(tmp_path: Path) -> None:
    results = tmp_path / "1.4.1"
    results.mkdir()
    (results / provenance.FILE).write_text("{}")
    with merging.at_rest([tmp_path]):
        pass
    held = lock(results)
    with (
        held,
        pytest.raises(MergeError, match=r"a run works on .*: wait for it"),
        merging.at_rest([tmp_path]),
    ):
        pass


def test_a_child_that_could_say_nothing_for_want_of_room_is_told_from_others(tmp_path: Path) -> None:
    casualties.require_room(tmp_path / "log")
    # Whatever is written there meets with a full disk (man 4 full).
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        casualties.require_room(Path("/dev/full"))


# The session


def test_a_row_is_put_into_the_table_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "TABLE", tmp_path / "faults.tsv")
    first, second, third = NAMES[0], NAMES[1], NAMES[-1]
    for name, times in ((third, "1"), (first, "2"), (second, "3"), (third, "4")):
        faults.keep(Row(name, "made", "holds", times, "a|b\nsecond line" if times == "4" else ""))
    (part,) = faults.parts()
    assert list(part.lines())[2:] == [
        f"| {first} | made | holds | 2 | nothing |",
        f"| {second} | made | holds | 3 | nothing |",
        f"| {third} | made | holds | 4 | a\\|b |",
    ]


def test_lines_of_damaged_results_are_left_out(tmp_path: Path) -> None:
    place = Place(tmp_path).make()
    place.results.parent.mkdir(parents=True)
    place.results.write_bytes(b'\xff{"case": "a"}\n7\n{"cas": "b"}\n{"case": "c"}\n')
    assert place.rows() == {"c": {"case": "c"}}


def test_the_folder_that_torch_makes_for_everybody_is_no_temporary_file_of_a_run(tmp_path: Path) -> None:
    place = Place(tmp_path).make()
    (place.temporary / "torchinductor_somebody").mkdir()
    assert place.temporary_files() == []
    (place.temporary / "torchinductor_somebody" / "of-a-run").touch()
    (place.temporary / "goldens-sweep-x").mkdir()
    assert place.temporary_files() == ["goldens-sweep-x", "torchinductor_somebody"]


def test_a_session_in_the_background_makes_runs_that_heed_signals(tmp_path: Path) -> None:
    place = Place(tmp_path).make()
    code = "import signal; print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP))"
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        ended = place.finish(place.start([sys.executable, "-c", code]))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert "default_int_handler" in ended.output
    assert "SIG_IGN" not in ended.output


# The faults themselves

#: Beginnings of the names of faults that mount a file system.
MOUNTED = ("disk full", "goldens read-only")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return baseline(tmp_path_factory.mktemp("sound"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_nothing_is_lost_by_a_fault(fault: Fault, sound: Place) -> None:
    if fault.name.startswith(MOUNTED) and os.geteuid() != 0:
        pytest.skip("mounts a file system")
    lost = tried(fault, sound).lost
    assert not lost, lost


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="records system calls: apt-get install strace")
def test_a_golden_that_was_accepted_is_there_after_a_power_cut(tmp_path: Path) -> None:
    operations, disks = power.cut(updating.accepting(tmp_path / "before", 1), tmp_path / "cut")
    assert disks > operations > 10


@pytest.mark.slow
def test_a_review_that_is_killed_loses_no_golden(tmp_path: Path) -> None:
    tried, _ = updating.killed_at_random(updating.accepting(tmp_path / "before"), 10, 0, tmp_path / "killed")
    assert tried >= 10


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="follows system calls: apt-get install strace")
def test_a_review_that_is_hindered_at_a_call_loses_no_golden_and_a_call_that_never_comes_is_no_try(
    tmp_path: Path,
) -> None:
    update = updating.accepting(tmp_path / "before", 1)
    for how in ("signal", "error"):
        tried, calls = updating.at_calls(update, how, 3, tmp_path / how)
        assert 3 <= tried < calls
    never = updating.Call("fsync", 9999, "fsync that never comes")
    with Server(update.before.environment()) as server, pytest.raises(LostError, match="it was not killed"):
        updating.hindered(update, server, never, "signal", tmp_path / "never")


@pytest.mark.slow
def test_a_recording_that_is_killed_loses_no_golden(tmp_path: Path, sound: Place) -> None:
    update = updating.recording(sound, tmp_path / "before")
    tried, _ = updating.killed_at_random(update, 10, 0, tmp_path / "killed")
    assert tried >= 10
    assert UPDATE in update.words(sound)
