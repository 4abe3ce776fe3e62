"""Requests of exports: a changed ingredient changes the request."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.settings.exports import ROOT, Machine, Settings
from executorch_goldens.sweep import keys
from executorch_goldens.sweep.facts import Digests
from executorch_goldens.sweep.keys import Ingredients, request
from executorch_goldens.zoo.variations import Variation

FIRST = Cell("tosa-fp", "first")
PLAIN = Variation(0, 0)


@dataclass
class House:
    """Settings of a sweep, in an environment of another folder."""

    settings: Settings
    patch: pytest.MonkeyPatch

    def request(self, cell: Cell = FIRST, variation: Variation = PLAIN, **changed: Any) -> Ingredients:
        further = changed.pop("further", ())
        return request(replace(self.settings, **changed), (cell, variation, further))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    python = tmp_path / "bin" / "python"
    return House(
        Settings(python, ("zoo",), ("partition-order",), 2, 60.0, machine=Machine(paths=(tmp_path,))),
        monkeypatch,
    )


def test_nothing_changes_a_request_that_it_should_not(house: House, tmp_path: Path) -> None:
    house.patch.setenv("PYTHONPATH", "")
    before = house.request()
    house.patch.setenv("EXECUTORCH_GOLDENS_CALLED_AS", "nox")
    house.patch.setenv("PYTHONPATH", str(ROOT))
    assert house.request() == before
    assert house.request(jobs=1, limit=5.0, interpreter=tmp_path / "elsewhere" / "bin" / "python") == before


Change = Callable[[House], Mapping[str, object]]


def variable(name: str, value: str) -> Change:
    return lambda house: house.patch.setenv(name, value) or {}


def released(house: House) -> Mapping[str, object]:
    packages = house.settings.interpreter.parent.parent / "lib" / "python3.11" / "site-packages"
    (packages / "executorch-1.5.1.dist-info").mkdir(parents=True)
    return {}


#: The changed object, the change, and the name of the ingredient that differs.
CHANGES: Mapping[str, tuple[Change, str]] = {
    "a directory that modules are looked for in": (
        variable("PYTHONPATH", f"/else{os.pathsep}{ROOT}"),
        "path",
    ),
    "the release": (released, "release"),
    "the zoos": (lambda house: {"models": ("zoo", "another")}, "models"),
    "patches": (lambda house: {"patches": ()}, "patches"),
    "further patches": (lambda house: {"further": ("output-aliases",)}, "patches"),
    "shortcuts": (lambda house: {"shortcuts": {}}, "shortcuts"),
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
    "an environment variable of torch": (variable("TORCH_SHOW", "1"), "variable TORCH_SHOW"),
}


def differing(one: keys.Ingredients, other: keys.Ingredients) -> set[str]:
    return {name for name, _ in {*one} ^ {*other}}


@pytest.mark.parametrize("what", CHANGES)
def test_each_ingredient_changes_the_request(what: str, house: House) -> None:
    change, name = CHANGES[what]
    before = house.request()
    after = house.request(**change(house))
    assert name in differing(before, after)
    assert keys.digest(before) != keys.digest(after)


def test_the_processor_and_the_format_change_the_request(house: House) -> None:
    before = house.request()
    house.patch.setattr(keys, "processor", lambda: "another")
    house.patch.setattr(keys, "FORMAT", keys.FORMAT + 1)
    assert differing(before, house.request()) == {"system", "format"}


def test_digests_are_remembered_and_an_edit_in_place_is_noticed(tmp_path: Path) -> None:
    file, memory = tmp_path / "pass.py", tmp_path / "memory"
    file.write_text("one")
    first = Digests(memory)
    before = first.digest(str(file))
    # A file this young may change again within the clock's grain: it is read every time.
    assert not first.known
    state = file.stat()
    first.known[str(file)] = ((state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino), before)
    first.save()
    again = Digests(memory)
    assert again.known == first.known
    # Of the same size, and with the old time put back, as archives do.
    file.write_text("two")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert again.digest(str(file)) != before
    assert again.rewritten == {str(file)}


@pytest.mark.parametrize("damaged", [b"", b"\x93damaged", b"\x81\xa3a\xff\xff"])
def test_a_damaged_memory_of_digests_is_no_memory(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "memory").write_bytes(damaged)
    assert Digests(tmp_path / "memory").known == {}
