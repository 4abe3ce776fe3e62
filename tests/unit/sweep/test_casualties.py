"""Why an export did not finish, from what its process left."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from executorch_goldens.artifact import Exited, Killed, OfHarness, OutOfMemory, TimedOut
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep import casualties
from executorch_goldens.sweep.messages import Ended
from executorch_goldens.sweep.worker import OUT_OF_MEMORY, OWN_ERROR

SETTINGS = Settings(default_interpreter(), (), (), 1, 60.0, memory=1 << 30)
OWN = OfHarness("run", "KeyError: 'x'", "a.py, line 1, in b")


def casualty(ended: Ended, folder: Path, log: str = "", left: bytes = b"") -> object:
    (folder / "log").write_text(log)
    (folder / "result").write_bytes(left)
    with io.FileIO(folder / "result") as result:
        return casualties.casualty(ended, SETTINGS, folder / "log", result)


@pytest.mark.parametrize("left", [b"", b"no casualty", msgspec.msgpack.encode({"kind": "killed"})])
def test_an_error_of_the_harness_is_read_from_what_its_process_left_and_not_from_its_log(
    tmp_path: Path, left: bytes
) -> None:
    log = "before\nOwnError: the harness itself failed (stage model): words of a case\n"
    found = casualty(Ended(1, OWN_ERROR), tmp_path, log, msgspec.msgpack.encode(OWN))
    assert found == msgspec.structs.replace(OWN, tail=("before",), log=log)
    assert casualty(Ended(1, OWN_ERROR), tmp_path, log, left) == OfHarness(tail=("before",), log=log)


def test_a_process_ends_by_its_status_by_the_limit_or_for_want_of_memory(tmp_path: Path) -> None:
    assert casualty(Ended(1, 3), tmp_path, "one\n\ntwo\n\n") == Exited(3, tail=("one", "", "two"))
    assert casualty(Ended(1, -6), tmp_path) == Killed("SIGABRT")
    assert casualty(Ended(1, OUT_OF_MEMORY), tmp_path) == OutOfMemory(1 << 30)
    assert casualty(Ended(1, -6), tmp_path, "std::bad_alloc") == OutOfMemory(
        1 << 30, tail=("std::bad_alloc",)
    )
    # Whatever it was killed by then.
    ended = Ended(1, -9, timed_out=True, seconds=61.0, core_seconds=0.5, idle=60.5)
    log = "waiting\nStack (most recent call first):\n  File one\n"
    assert casualty(ended, tmp_path, log) == TimedOut(60.0, 0.5, 61.0, 60.5, tail=("waiting", "  File one"))
