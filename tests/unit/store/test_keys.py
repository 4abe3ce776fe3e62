"""Requests of exports: a changed ingredient changes the request. The environment is a real, empty one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.settings.exports import ROOT, Machine, Settings, worker_environment
from executorch_goldens.store import environment, keys
from executorch_goldens.store.environment import Environment, Ingredients
from executorch_goldens.store.facts import Digests
from executorch_goldens.store.keys import different, request
from executorch_goldens.variations import Variation

FIRST = Cell("tosa-fp", "first")
PLAIN = Variation(0, 0)


@dataclass
class House:
    """Settings of a sweep, and an environment that exports."""

    python: Path
    settings: Settings
    variables: dict[str, str] = field(default_factory=dict)

    def request(self, cell: Cell = FIRST, variation: Variation = PLAIN, **changed: object) -> Ingredients:
        settings = replace(self.settings, **{name: changed[name] for name in changed if name != "further"})  # type: ignore[arg-type]
        variables = worker_environment(self.python, 0, settings.machine) | self.variables
        further = changed.get("further", ())
        assert isinstance(further, tuple)
        return request(settings, Environment.of(self.python, variables), cell, variation, further)


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def house(empty_python: Path, tmp_path: Path) -> House:
    return House(
        empty_python,
        Settings(empty_python, ("zoo",), ("partition-order",), 2, 60.0, machine=Machine(paths=(tmp_path,))),
    )


def test_nothing_changes_a_request_that_it_should_not(house: House) -> None:
    before = house.request()
    house.variables["EXECUTORCH_GOLDENS_CALLED_AS"] = "nox"
    assert house.request() == before
    assert house.request(jobs=1, limit=5.0) == before


Change = Callable[[House], Mapping[str, object]]


def elsewhere(house: House) -> Mapping[str, object]:
    house.variables["PYTHONPATH"] = os.pathsep.join(["/somewhere/else", str(ROOT)])
    return {}


def test_where_the_harness_itself_is_makes_no_difference(house: House) -> None:
    house.variables["PYTHONPATH"] = ""
    before = house.request()
    house.variables["PYTHONPATH"] = str(ROOT)
    assert house.request() == before


#: The changed object, the change, and the name of the ingredient that differs.
CHANGES: Mapping[str, tuple[Change, str]] = {
    "a directory that modules are looked for in": (elsewhere, "path"),
    "the zoos": (lambda house: {"models": ("zoo", "another")}, "zoos"),
    "patches": (lambda house: {"patches": ()}, "patches"),
    "further patches": (lambda house: {"further": ("output-aliases",)}, "patches"),
    "shortcuts": (lambda house: {"shortcuts": ()}, "shortcuts"),
    "the variation": (lambda house: {"variation": Variation(4, 1)}, "variation"),
    "the target": (lambda house: {"cell": Cell("tosa-int", "first")}, "target"),
    "the case": (lambda house: {"cell": Cell("tosa-fp", "second")}, "case"),
    "the tolerance": (lambda house: {"tolerances": {"tosa-fp": 0.5}}, "tolerance"),
    "what is captured": (lambda house: {"capture": 3}, "capture"),
    "whether it is executed": (lambda house: {"execute": False}, "execute"),
    "twins": (lambda house: {"twins": 2}, "twins"),
    "isolation": (lambda house: {"isolation": "fresh"}, "isolation"),
    "the kernels": (
        lambda house: {"machine": replace(house.settings.machine, capability="avx2")},
        "machine",
    ),
    "threads": (lambda house: {"machine": replace(house.settings.machine, threads=2)}, "machine"),
    "oneDNN": (lambda house: {"machine": replace(house.settings.machine, onednn=True)}, "machine"),
    "an environment variable of torch": (
        lambda house: house.variables.update(TORCH_SHOW="1") or {},
        "variable TORCH_SHOW",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_ingredient_changes_the_request(what: str, house: House) -> None:
    change, name = CHANGES[what]
    before = house.request()
    after = house.request(**change(house))  # type: ignore[arg-type]
    assert name in different(before, after)
    assert keys.digest(before) != keys.digest(after)


def test_the_processor_python_and_format_change_the_request(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = house.request()
    monkeypatch.setattr(environment, "processor", lambda: "another")
    monkeypatch.setattr(keys, "FORMAT", keys.FORMAT + 1)
    assert set(different(before, house.request())) == {"processor", "format"}
    assert dict(before)["python"].split()[0] == sys.version.split()[0]


def test_digests_are_remembered_and_an_edit_in_place_is_noticed(tmp_path: Path) -> None:
    file, memory = tmp_path / "pass.py", tmp_path / "memory"
    file.write_text("one")
    first = Digests(memory)
    before = first.of(str(file))
    # A file this young may change again within the clock's grain: it is read every time.
    assert not first.known
    state = file.stat()
    first.known[str(file)] = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, before)
    first.changed = True
    first.save()
    again = Digests(memory)
    assert again.known == first.known
    # Of the same size, and with the old time put back, as archives do.
    file.write_text("two")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert again.of(str(file)) != before
    when_read = (state.st_size, state.st_mtime_ns, state.st_ino)
    assert not again.is_as_read(str(file), when_read, state.st_mtime_ns + 10**9)


@pytest.mark.parametrize("damaged", [b"", b"\x93damaged", b"\x81\xa3a\xff\xff"])
def test_a_damaged_memory_of_digests_is_no_memory(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "memory").write_bytes(damaged)
    assert Digests(tmp_path / "memory").known == {}
