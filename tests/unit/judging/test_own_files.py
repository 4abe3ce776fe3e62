"""The file to blame for an exception: the innermost frame of the first cause decides."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import executorch_goldens
from executorch_goldens import extensions
from executorch_goldens.artifact import Failure
from executorch_goldens.goldens.findings import Frame
from executorch_goldens.judging import verdict
from executorch_goldens.judging.own_files import OwnFiles, frames
from executorch_goldens.words.findings import frame
from executorch_goldens.words.verdicts import detail, reason
from executorch_goldens.zoo import targets
from tests.support.making import CELL

ROOT = Path("/firm/firmware")
SITE = "/env/lib/python3.11/site-packages"


def text(file: str, line: int = 3, message: str = "no") -> str:
    frames = f'  File "{SITE}/torch/export.py", line 9, in export\n    f()\n  File "{file}", line {line}, in build\n'
    return f"Traceback (most recent call last):\n{frames}    x\nValueError: {message}\n"


def raised(function: Callable[[], object]) -> str:
    try:
        function()
    except Exception as error:
        return "".join(traceback.format_exception(error))
    raise AssertionError("it raises")


def own() -> None:
    raise KeyError("own")


def from_own() -> None:
    try:
        own()
    except KeyError as error:
        raise RuntimeError("in a pass") from error


def while_own() -> None:
    try:
        own()
    except KeyError:
        raise RuntimeError("another") from ValueError("made here")


def with_a_traceback_in_it() -> None:
    message = 'from user code:\n   File "/other.py", line 5, in forward'
    raise RuntimeError(f'{message}\n  File "/other.py", line 6, in g')


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (own, "own"),
        (from_own, "own"),
        (with_a_traceback_in_it, "with_a_traceback_in_it"),
    ],
)
def test_the_innermost_frame_is_that_of_the_first_cause(function: Callable[[], None], name: str) -> None:
    found = frames(raised(function))[-1]
    assert (Path(found.file), found.function) == (Path(__file__), name)


def test_a_cause_that_was_never_raised_has_no_frame() -> None:
    assert frames(raised(while_own)) == []
    assert frames("killed") == []


def test_a_file_of_the_repository_is_its_own_and_an_installed_or_a_checked_out_one_is_not() -> None:
    files = OwnFiles(ROOT, (Path("/elsewhere/zoo"), Path("/elsewhere/more.py")))
    for file in ("/firm/firmware/models/gate.py", "/elsewhere/zoo/a/b.py", "/elsewhere/more.py"):
        assert files.place(text(file), "tosa-fp") == Frame(file, 3, "build")
    for file in (
        f"{SITE}/torch/fx/graph.py",
        f"{SITE}/firm_backend/lowering.py",
        "/firm/firmware/.venv/lib/python3.12/site-packages/numpy/core.py",
        "/firm/firmware/third_party/executorch/exir/lower.py",
        "/elsewhere/other.py",
        "<eval_with_key>.1",
        str(Path(executorch_goldens.__file__).parent / "exporting" / "recipe.py"),
    ):
        assert files.place(text(file), "tosa-fp") is None, file
    assert OwnFiles(Path.cwd()).place(text("<eval_with_key>.1"), "tosa-fp") is None


def test_the_nearest_line_is_the_innermost_of_an_own_file_whoever_raised_it() -> None:
    files = OwnFiles(ROOT, (Path("/elsewhere/zoo"),))
    called = f'  File "{SITE}/torch/nn/linear.py", line 9, in forward\n    f()\n'
    traceback = text("/firm/firmware/nets/gate.py", 41).replace("ValueError", f"{called}ValueError")
    assert files.place(traceback, "tosa-fp") is None
    found = files.nearest(traceback, "tosa-fp")
    assert found == Frame("/firm/firmware/nets/gate.py", 41, "build")
    assert frame(files.relative(found)) == "nets/gate.py, line 41, in build"
    assert files.relative(Frame("/elsewhere/zoo/a.py", 1, "b")).file == "/elsewhere/zoo/a.py"
    assert files.nearest(text(f"{SITE}/torch/fx/graph.py"), "tosa-fp") is None


def test_a_line_that_cannot_be_read_is_the_place_and_not_the_line_that_imports_it() -> None:
    imports = text("/firm/firmware/zoo.py").replace("ValueError: no", "").rstrip()
    traceback = (
        f'{imports}\n  File "/firm/firmware/net.py", line 7\n    def f(:\n          ^\nSyntaxError: no\n'
    )
    found = OwnFiles(ROOT).place(traceback, "tosa-fp")
    assert found == Frame("/firm/firmware/net.py", 7, "")
    assert frame(found) == "/firm/firmware/net.py, line 7"


def test_a_repository_that_is_reached_by_a_link_is_itself(tmp_path: Path) -> None:
    (tmp_path / "firmware").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "firmware")
    file = str(tmp_path / "link" / "gate.py")
    assert OwnFiles.in_repository(tmp_path / "link").place(text(file), "tosa-fp") == Frame(file, 3, "build")


def test_a_file_of_the_distribution_that_brings_the_target_is_own(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("example-fp32", "example_extension.targets:TARGET", extensions.TARGETS)
    monkeypatch.setattr(extensions, "points", lambda group: (point,))
    partitioner = "executorch.backends.example:Partitioner"
    brought = replace(targets.TARGETS["xnnpack-fp32"], name=point.name, partitioner=partitioner)
    monkeypatch.setattr(targets, "available", lambda: {**targets.TARGETS, point.name: brought})
    files = OwnFiles(ROOT)
    lowering = f"{SITE}/example_extension/lowering.py"
    assert files.place(text(lowering), "example-fp32") == Frame(lowering, 3, "build")
    assert files.place(text(lowering), "tosa-fp") is None
    for file in ("torch/fx/graph.py", "executorch/backends/example.py"):
        assert files.place(text(f"{SITE}/{file}"), "example-fp32") is None


def test_the_message_names_the_file_the_line_and_the_error(snapshot: SnapshotAssertion) -> None:
    failure = Failure("lower", "ValueError", "a list", None, None, text("/firm/firmware/gate.py", 41))
    found = verdict.own_failure(CELL, failure, Frame("/firm/firmware/gate.py", 41, "build"))
    assert (found.name, found.recordable, found.accepted) == ("failed", False, False)
    assert "\n".join([f"{found.name}: {reason(found)}", *detail(found)]) == snapshot
