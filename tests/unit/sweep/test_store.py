"""The store of artifacts: reading returns what was put, or nothing; and the use of the store by a sweep."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import (
    MACHINE,
    Artifact,
    Cell,
    Delegate,
    Failure,
    Killed,
    Lowered,
    Outcome,
    PassRun,
    ProbedFunction,
    Sample,
    Tensor,
    TimedOut,
    Watched,
)
from executorch_goldens.exporting.recording import FILE, state_when_read
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.sweep.reuse import Reuse
from executorch_goldens.sweep.store import IN_USE_NS, REMEMBERED, Store
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.zoo.variations import variations
from tests.support.screens import screen

REQUEST, NAME = "0" * 64, "1" * 64
TENSOR = Tensor("float32", (2,), bytes(8))
LOWERED = Lowered(
    graph="graph\n",
    delegates=(Delegate("lowered_module_0", "TOSABackend", b"\0\xff", (("key", b"bytes"),)),),
    pte=bytes(100_000),
    samples=(Sample("example", (TENSOR,), (TENSOR,)),),
    bound=1e-5,
    schemas=("/here",),
    scales=(0.5,),
    codes=(TENSOR,),
)
FAILURE = Failure("lower", "RuntimeError", "no", "Pass", None, "Traceback", made=LOWERED)
WATCHED = Watched((PassRun("exir", "Pass", "f", True, "names"),), ("Visitor",), "kept")
REACH = {"executorch/exir/pass_base.py": (12, -14)}
PROBES = (ProbedFunction("executorch/exir/pass_base.py", "ExportPass.call", 2, "same"),)
ARTIFACT = Artifact(LOWERED, ("patch",), WATCHED, reach=REACH, probes=PROBES)
#: Cells of tests.support.zoo that are never exported here.
CELL, OTHER = Cell("xnnpack-fp32", "steady"), Cell("xnnpack-fp32", "wrong")
VARIATIONS = variations((0, 4))
WANTED = (CELL, VARIATIONS[0], ())
SETTINGS = Settings(default_interpreter(), ("tests.support.zoo",), (), 2, 60.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def used(store: Store) -> Reuse:
    found = Reuse(store)
    found.open()
    return found


def made(cell: Cell = CELL, artifact: Any = ARTIFACT, variation: int = 0) -> Outcome:
    return Outcome(cell, VARIATIONS[variation].name, artifact, 1.5, 300.0, 1.25)


def record(
    folder: Path, *files: Path, began: int | None = None, before: Path | None = None, end: str = "[]"
) -> Path:
    """Leave the record of an export that has read some files, by default after they were written."""
    began = time.time_ns() + 10**10 if began is None else began
    lines = [
        [began, str(before) if before else None],
        *([FILE, str(file), state_when_read(str(file))] for file in files),
    ]
    path = folder / f"record-{len(list(folder.glob('record-*')))}"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + end)
    return path


def exports(store: Store) -> list[Path]:
    return list(store.root.glob("exports/*/*"))


@pytest.mark.parametrize("result", [LOWERED, FAILURE, replace(FAILURE, made=None)])
def test_what_is_read_is_what_was_put(result: Lowered | Failure, store: Store) -> None:
    kept = made(artifact=replace(ARTIFACT, result=result))
    read = store.get(store.put(REQUEST, [NAME], kept), CELL, VARIATIONS[0].name)
    # Compared without what does not count for equality, too.
    assert repr(read) == repr(replace(kept, reused=True))
    # A field with its default value would be read as it was, kept or not.
    assert all(getattr(ARTIFACT, each.name) for each in fields(Artifact) if each.name != "twins")


def test_what_answered_a_request_is_found_the_last_first_and_not_without_end(store: Store) -> None:
    keys = [store.put(REQUEST, [f"{number:064x}"], made()) for number in range(REMEMBERED + 2)]
    for number, key in enumerate(keys):
        os.utime(store.path(key), ns=(number, number))
    assert store.answers(REQUEST) == keys[:1:-1]
    assert store.content(keys[0]) is not None
    assert store.answers(REQUEST)[0] == keys[0]
    assert store.answers(NAME) == []


def test_an_unknown_key_gives_nothing(store: Store) -> None:
    assert store.content(f"facts/{NAME}") is None
    assert not store.damaged


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-3],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "longer": lambda content: content + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_noticed_and_deleted(damage: str, store: Store) -> None:
    key = store.put(REQUEST, [NAME], made())
    facts = f"facts/{store.put_facts(())}"
    for each in (key, facts):
        whole = (store.path(each).read_bytes() + bytes(200))[: -200 if damage == "cut" else None]
        store.path(each).write_bytes(DAMAGES[damage](whole))
    assert store.get(key, CELL, VARIATIONS[0].name) is None
    assert store.facts(facts) is None
    assert not store.path(key).exists()
    assert store.damaged == [key, facts]


def test_an_entry_under_the_key_of_another_is_damaged(store: Store) -> None:
    content = store.content(store.put(REQUEST, [NAME], made()))
    assert content is not None
    other = f"exports/{REQUEST}/{'f' * 64}"
    store.add(other, content)
    assert store.content(other) is None
    assert store.damaged == [other]


def test_a_store_of_before_is_not_read(store: Store, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    for folder in ("artifacts", "lists", "made", "last"):
        (store.root / folder / "00").mkdir(parents=True)
        (store.root / folder / "00" / REQUEST).write_bytes(b"executorch-goldens artifact 2\nof before")
    (store.root / "files").mkdir()
    (store.root / "files" / "digests").write_bytes(b"\x81\xa3a.b\x95\x01\x02\x03\x04\xa1d")
    used = Reuse(store)
    used.open()
    assert list(used.take(SETTINGS, [WANTED])) == [None]
    used.put(SETTINGS, WANTED, made(), record(tmp_path))
    assert list(used.take(SETTINGS, [WANTED])) != [None]
    assert screen(used.lines(), {store.root: "STORE"}) == snapshot


def test_what_was_used_least_recently_goes_first_and_what_was_used_today_stays(store: Store) -> None:
    keys = [store.put(REQUEST, [f"{number:064x}"], made()) for number in range(10)]
    for number, key in enumerate(keys):
        os.utime(store.path(key), ns=(number, number))
    size = store.path(keys[0]).stat().st_size
    assert store.content(keys[0]) is not None
    store.size = 5 * size + size // 2
    store.evict()
    assert [key for key in keys if store.path(key).exists()] == [keys[0], *keys[7:]]
    store.size = 0
    store.evict()
    assert [key for key in keys if store.path(key).exists()] == [keys[0]]
    long_ago = time.time_ns() - IN_USE_NS - 10**9
    os.utime(store.path(keys[0]), ns=(long_ago, long_ago))
    store.evict()
    assert not exports(store)


def test_runs_may_share_a_store(store: Store) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(20):
            kept = replace(made(), seconds=float(number))
            read = store.get(store.put(REQUEST, [f"{turn % 3:064x}"], kept), CELL, kept.variation)
            if read is None or replace(read, seconds=0.0) != replace(kept, seconds=0.0, reused=True):
                wrong.append(read)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not store.damaged
    assert not list(store.root.rglob("*.new~"))


def test_a_sweep_whose_exports_are_all_stored_starts_no_template(
    used: Reuse, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    schemas = str(SETTINGS.interpreter.parent.parent / "schemas")
    artifact = replace(ARTIFACT, result=replace(LOWERED, schemas=(schemas,)))
    for number, variation in enumerate(VARIATIONS):
        kept = made(artifact=artifact, variation=number)
        used.put(SETTINGS, (CELL, variation, ()), kept, record(tmp_path))
    # It is decoded with what is installed here, wherever it was made.
    (key, _) = (f"exports/{path.parent.name}/{path.name}" for path in exports(used.store))
    found = used.store.get(key, CELL, "")
    assert found is not None
    assert "schemas=('<environment>/schemas',)" in repr(found)
    with Sweep([CELL], VARIATIONS, SETTINGS, reuse=used) as sweep:
        outcomes = sweep.outcomes(CELL)
        assert sweep.templates == {}
    assert [repr(outcome.result) for outcome in outcomes] == [repr(artifact)] * 2
    assert all(outcome.reused for outcome in outcomes)
    assert [(outcome.seconds, outcome.core_seconds) for outcome in outcomes] == [(1.5, 1.25)] * 2
    assert screen(used.lines(), {used.store.root: "STORE"}) == snapshot


def test_what_came_to_no_end_or_may_go_otherwise_next_time_is_not_stored(used: Reuse, tmp_path: Path) -> None:
    for result in (
        TimedOut(5.0, 5.1, 6.0, 0.0),
        Killed("SIGSEGV"),
        replace(ARTIFACT, result=replace(FAILURE, fault=MACHINE)),
    ):
        used.put(SETTINGS, WANTED, made(artifact=result), record(tmp_path))
    assert not exports(used.store)


def test_what_was_changed_while_an_export_read_it_is_not_kept(
    used: Reuse, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    used.put(SETTINGS, WANTED, made(), record(tmp_path, file, began=0))
    assert not exports(used.store)
    assert screen(used.lines(), {tmp_path: "FOLDER"}) == snapshot
    # A watch exports again by itself where that changes.
    used.unknown.clear()
    used.watched = {str(tmp_path)}
    used.put(SETTINGS, WANTED, made(), record(tmp_path, file, began=0))
    assert not exports(used.store)
    assert not list(used.troubles())
    used.put(SETTINGS, WANTED, made(), tmp_path / "missing")
    assert any(used.troubles())
    used.put(SETTINGS, WANTED, made(), record(tmp_path, file))
    assert exports(used.store)


@pytest.mark.parametrize("end", ["", "[", '["file", "/a", ""]', "null", "\n[]\n[]", "[]\n[]"])
def test_what_has_no_whole_record_is_not_kept(end: str, used: Reuse, tmp_path: Path) -> None:
    missing, whole = tmp_path / "missing", record(tmp_path)
    for each in (missing, record(tmp_path, end=end), record(tmp_path, before=missing)):
        used.put(SETTINGS, WANTED, made(), each)
    assert not exports(used.store)
    assert used.unknown.total() == 3
    used.put(SETTINGS, WANTED, made(), whole)
    assert exports(used.store)


def test_an_artifact_is_used_again_where_all_that_it_was_made_from_is_as_it_was(
    used: Reuse, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    file = tmp_path / "file"
    for branch in ("one", "two"):
        file.write_text(branch)
        result = replace(LOWERED, graph=branch)
        whole = record(tmp_path, before=record(tmp_path, file))
        used.put(SETTINGS, WANTED, made(artifact=replace(ARTIFACT, result=result)), whole)
    for branch in ("one", "two", "one"):
        file.write_text(branch)
        (stored,) = used.take(SETTINGS, [WANTED])
        assert stored is not None
        found = stored().result
        assert isinstance(found, Artifact)
        assert isinstance(found.result, Lowered)
        assert found.result.graph == branch
    file.write_text("three")
    assert list(used.take(SETTINGS, [WANTED])) == [None]
    assert screen(used.lines(), {tmp_path: "FOLDER"}) == snapshot


def test_what_is_observed_is_exported_and_kept_for_its_facts(used: Reuse, tmp_path: Path) -> None:
    observed = replace(SETTINGS, observer="a.module:Observer")
    used.put(observed, WANTED, made(), record(tmp_path))
    assert exports(used.store)
    assert list(used.take(observed, [WANTED])) == [None]


def test_a_damaged_entry_is_exported_again_and_a_line_says_so(
    used: Reuse, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    used.put(SETTINGS, WANTED, made(), record(tmp_path))
    for entry in exports(used.store):
        entry.write_bytes(b"damaged")
    assert list(used.take(SETTINGS, [WANTED])) == [None]
    used.put(SETTINGS, WANTED, made(), record(tmp_path))
    assert None not in used.take(SETTINGS, [WANTED])
    assert screen(used.lines(), {tmp_path: "FOLDER"}) == snapshot


def test_a_store_that_cannot_be_written_any_more_ends_no_run(
    used: Reuse, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    used.store.root = tmp_path / "file"
    used.store.root.write_text("")
    used.put(SETTINGS, WANTED, made(), record(tmp_path))
    assert screen(used.lines(), {tmp_path: "FOLDER"}) == snapshot
