"""A run gets its cases from a process that imports their zoos, and never imports torch for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from executorch_goldens.running.zoo import Listed
from executorch_goldens.settings.exports import ROOT
from executorch_goldens.zoo import registry

#: Prints what a process gets of a zoo, and whether it has imported the zoo or torch.
LIST = """
import json, sys
import msgspec
from executorch_goldens.errors import UsageError
from executorch_goldens.running.zoo import list_zoo
print("before", end=" ")
try:
    found = msgspec.to_builtins(list_zoo([sys.argv[1]]))
except UsageError as error:
    found = str(error)
print(json.dumps([found, sorted({"torch", sys.argv[1]} & set(sys.modules))]))
"""
CASES = """
import torch
from executorch_goldens import case, Build
print("imported", flush=True)
@case(guards="one", backends=("tosa",), also=("tosa-bf16",), releases=("1.4.1",))
def first_one(data): ...
@case(guards="two")
def second(build: Build): ...
"""


def listed(folder: Path, text: str) -> tuple[str, object, list[str]]:
    """Return what a zoo of such a text prints, what is listed of it or the error, and the modules imported here."""
    (folder / "some_zoo.py").write_text(textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    command = [sys.executable, "-c", LIST, "some_zoo"]
    ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    printed, _, answer = ended.stdout.partition("[")
    found, here = json.loads(f"[{answer}")
    return printed, found, here


def test_cases_are_listed_and_neither_their_zoo_nor_torch_is_imported(tmp_path: Path) -> None:
    printed, found, here = listed(tmp_path, CASES)
    assert here == []
    assert printed.split() == ["before", "imported"]
    assert isinstance(found, dict)
    assert found["files"] == [str(tmp_path / "some_zoo.py")]
    first, second = found["cases"].values()
    assert list(found["cases"]) == ["first-one", "second"]
    assert (first["module"], second["is_build"]) == ("some_zoo", True)
    assert (first["backends"], first["also"], first["releases"]) == (["tosa"], ["tosa-bf16"], ["1.4.1"])


def test_patches_that_a_zoo_registers_are_listed(tmp_path: Path) -> None:
    zoo = CASES + (
        "from executorch_goldens import patches\n"
        'patches.register(patches.Patch("own", None, "for a test", {}, print))\n'
    )
    _, found, _ = listed(tmp_path, zoo)
    assert isinstance(found, dict)
    assert found["patches"][-1] == "own"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("\n\n1 / 0", ["some_zoo.py, line 3", "ZeroDivisionError: division by zero"]),
        ("import no_such_module", ["--models some_zoo cannot be imported", "no_such_module"]),
        ("x = 1", ["--models some_zoo: no case is registered there"]),
        (CASES.replace("second(build: Build)", "first_one(data)"), ["'first-one' is registered twice"]),
        (
            "x = 1\nraise SystemExit(7)",
            ["--models some_zoo cannot be imported: ", "some_zoo.py, line 2: SystemExit: 7"],
        ),
        ("import os; os._exit(7)", ["--models some_zoo: the process that imports it ended with status 7"]),
        ("import os; os.kill(os.getpid(), 9)", ["the process that imports it ended with signal 9"]),
    ],
)
def test_what_is_wrong_with_a_zoo_is_said_as_where_it_is_imported(
    tmp_path: Path, text: str, facts: list[str]
) -> None:
    _, found, here = listed(tmp_path, text)
    assert isinstance(found, str)
    assert here == []
    for fact in facts:
        assert fact in found


def test_a_listed_case_has_each_field_as_the_case_has_it() -> None:
    case = registry.Case("some", "family", "guards", test_a_listed_case_has_each_field_as_the_case_has_it)
    assert all(
        getattr(Listed.from_case(case), name) == getattr(case, name) for name in Listed.__struct_fields__
    )
