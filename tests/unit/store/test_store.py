"""The store of artifacts: reading returns what was put, or nothing; and the use of the store by a sweep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from executorch_goldens import releases
from executorch_goldens.artifact import (
    Artifact,
    Casualty,
    Cell,
    Delegate,
    Failure,
    Lowered,
    Outcome,
    PassRun,
    Sample,
    Tensor,
    Watched,
)
from executorch_goldens.exporting.recording import FILE
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.results.rows import Results, read
from executorch_goldens.settings.arguments import amount
from executorch_goldens.settings.exports import Settings, default_interpreter
from executorch_goldens.store import reuse
from executorch_goldens.store.environment import Environment
from executorch_goldens.store.facts import Fact, Record
from executorch_goldens.store.reuse import Reuse, ReuseError
from executorch_goldens.store.store import REMEMBERED, Made, Store, StoredExport, StoreError
from executorch_goldens.variations import variations
from executorch_goldens.workers.sweep import Sweep

LISTING = (("case", "a"), ("installed torch", "b"))
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
ARTIFACT = Artifact(LOWERED, ("patch",), 0.5, WATCHED, ("shortcut",))
KEPT = StoredExport(ARTIFACT, 1.5, 300.0, 1.25)
#: Of an export that depended on nothing.
NOTHING = Record(0, None, ())
#: Cells of tests.support.zoo that are never exported here.
CELL, OTHER = Cell("xnnpack-fp32", "steady"), Cell("xnnpack-fp32", "wrong")
VARIATIONS = variations((0, 4))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "store")
    found.open()
    return found


def settings(used: Reuse | None) -> Settings:
    return Settings(default_interpreter(), ("tests.support.zoo",), (), 2, 60.0, reuse=used)


@pytest.fixture
def used(store: Store, monkeypatch: pytest.MonkeyPatch) -> Reuse:
    """A use of the store, in an environment that need not be read for it."""
    return uses(store, monkeypatch)


def uses(store: Store, monkeypatch: pytest.MonkeyPatch, check: str = "") -> Reuse:
    here = Reuse(store, reuse.Recheck.of(check)) if check else Reuse(store)
    nothing = Environment((("python", "3"),), {}, ("/schemas",))
    monkeypatch.setattr(here, "_environment", lambda settings: nothing)
    return here


def made(cell: Cell = CELL, artifact: Any = ARTIFACT, variation: int = 0) -> Outcome:
    return Outcome(cell, VARIATIONS[variation].name, artifact, 1.5, 300.0, 1.25)


@pytest.mark.parametrize("result", [LOWERED, FAILURE, replace(FAILURE, made=None)])
def test_what_is_read_is_what_was_put(result: Lowered | Failure, store: Store) -> None:
    kept = replace(KEPT, artifact=replace(ARTIFACT, result=result))
    key = store.put(LISTING, kept)
    assert store.get(key) == kept
    read = store.get(key)
    assert read is not None
    # Compared without what does not count for equality, too.
    assert repr(read) == repr(kept)
    # A field with its default value would be read as it was, kept or not.
    assert all(getattr(ARTIFACT, each.name) for each in fields(Artifact) if each.name != "twins")


def test_what_answered_a_request_is_remembered_the_last_first_and_not_without_end(store: Store) -> None:
    request = "0" * 64
    answers = [Made(f"{number:064x}", (f"{number:064x}",)) for number in range(REMEMBERED + 2)]
    for made in answers:
        store.remember(request, made)
    assert store.made(request) == answers[:1:-1]
    store.remember(request, answers[5])
    assert store.made(request)[0] == answers[5]
    assert len(store.made(request)) == REMEMBERED


@pytest.mark.parametrize("folder", ["made", "lists", "last"])
def test_damaged_notes_of_the_store_are_none(folder: str, store: Store) -> None:
    request = "0" * 64
    store.remember(request, Made(request, ()))
    store.put_list(request, [Fact(FILE, "a", (), "b")])
    store.note_last("an export", LISTING)
    for path in (store.root / folder).glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1])
    found = {"made": store.made(request), "lists": store.facts(request), "last": store.last("an export")}
    assert not found[folder]
    assert all(found[other] for other in found if other != folder)


def test_an_unknown_key_gives_nothing(store: Store) -> None:
    assert store.get("0" * 64) is None
    assert not store.damaged


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-3],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "another format": lambda content: content.replace(b"artifact 2", b"artifact 3", 1),
    "longer": lambda content: content + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_noticed_and_deleted(damage: str, store: Store) -> None:
    key = store.put(LISTING, KEPT)
    store.path(key).write_bytes(DAMAGES[damage](store.path(key).read_bytes()))
    assert store.get(key) is None
    assert not store.holds(key)
    assert store.damaged == [key]
    assert not store.is_sound(key)


def test_an_entry_under_the_key_of_another_is_damaged(store: Store) -> None:
    key = store.put(LISTING, KEPT)
    other = store.path("f" * 64)
    other.parent.mkdir(parents=True)
    other.write_bytes(store.path(key).read_bytes())
    assert store.get("f" * 64) is None
    assert store.damaged == ["f" * 64]


def test_what_was_used_least_recently_goes_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.open()
    listings = [(("case", str(number)),) for number in range(10)]
    found = [store.put(listing, KEPT) for listing in listings]
    for number, key in enumerate(found):
        os.utime(store.path(key), ns=(number, number))
    assert store.is_sound(found[0])
    size = store.path(found[0]).stat().st_size
    store.size = 5 * size + size // 2
    assert store.evict() == 6
    assert [key for key in found if store.holds(key)] == [found[0], *found[7:]]
    assert store.evict() == 0


def test_what_a_living_run_has_used_goes_when_it_has_ended(tmp_path: Path) -> None:
    before, used, later = ((("case", name),) for name in ("before", "used", "later"))
    store, other = (Store(tmp_path / "store", size=0) for _ in range(2))
    store.open()
    keys = [store.put(listing, KEPT) for listing in (before, used)]
    for key in keys:
        os.utime(store.path(key), ns=(1, 1))
    other.open()
    assert other.is_sound(keys[1])
    keys.append(store.put(later, KEPT))
    assert store.evict() == 1
    assert [store.holds(key) for key in keys] == [False, True, True]
    other.close()
    assert store.evict() == 2


def test_what_began_long_ago_keeps_nothing_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = (Store(tmp_path / "store", size=0) for _ in range(2))
    store.open()
    other.open()
    store.put((("case", "x"),), KEPT)
    assert store.evict() == 0
    monkeypatch.setattr("executorch_goldens.store.store.LONGEST_NS", 0)
    assert store.evict() == 1


def test_a_killed_run_keeps_nothing_in_the_store(tmp_path: Path) -> None:
    killed = (
        "from pathlib import Path; from executorch_goldens.store.store import Store; "
        f"Store(Path({str(tmp_path)!r})).open()"
    )
    subprocess.run([sys.executable, "-c", f"{killed}; import os; os._exit(1)"], check=False)
    assert len(list((tmp_path / "runs").iterdir())) == 1
    store = Store(tmp_path, size=0)
    store.open()
    store.put((("case", "x"),), KEPT)
    assert store.evict() == 1
    store.close()
    assert not list((tmp_path / "runs").iterdir())


def test_runs_may_share_a_store(store: Store) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(20):
            listing = (("case", str(turn % 3)),)
            kept = replace(KEPT, seconds=float(number))
            read = store.get(store.put(listing, kept))
            if read is None or replace(read, seconds=0.0) != replace(kept, seconds=0.0):
                wrong.append(read)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not store.damaged
    assert not list(store.root.rglob("*.new~"))


def test_a_store_that_cannot_be_written_is_one_error_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"--cache DIR for another, or --cache off") as raised:
        Store(tmp_path / "file").open()
    assert str(tmp_path / "file") in str(raised.value)


def test_numbers_of_bytes_are_read() -> None:
    assert (amount("500M"), amount("2 GiB"), amount("7")) == (500 * 2**20, 2 * 2**30, 7)
    for text in ("", "0", "-1G", "1X", "G"):
        with pytest.raises(ValueError, match="not a number of bytes"):
            amount(text)


def test_a_sweep_whose_exports_are_all_stored_starts_no_template(used: Reuse) -> None:
    asked = settings(used)
    for number, variation in enumerate(VARIATIONS):
        used.put(asked, (CELL, variation, ()), made(variation=number), NOTHING)
    with Sweep([CELL], VARIATIONS, asked) as sweep:
        outcomes = sweep.outcomes(CELL)
        assert sweep.templates == {}
    assert [outcome.result for outcome in outcomes] == [ARTIFACT] * 2
    assert all(outcome.reused for outcome in outcomes)
    assert [(outcome.seconds, outcome.core_seconds) for outcome in outcomes] == [(1.5, 1.25)] * 2
    first = outcomes[0].result
    assert isinstance(first, Artifact)
    assert isinstance(first.result, Lowered)
    # It is decoded with what is installed here, wherever it was made.
    assert first.result.schemas == ("/schemas",)
    assert next(used.lines()) == f"reused 2 of 2 exports; cache: {used.store.root}"


def test_what_came_to_no_end_or_may_go_otherwise_next_time_is_not_stored(used: Reuse) -> None:
    for result in (
        Casualty("timed-out", "no end within 5 s"),
        Casualty("crashed", "killed by SIGSEGV"),
        replace(ARTIFACT, result=replace(FAILURE, type="OSError", message="No space left on device")),
        replace(ARTIFACT, result=replace(FAILURE, message="DefaultCPUAllocator: can't allocate memory")),
    ):
        used.put(settings(used), (CELL, VARIATIONS[0], ()), made(artifact=result), NOTHING)
    assert not list(used.store.entries())


def test_what_was_changed_while_an_export_read_it_is_not_kept(used: Reuse, tmp_path: Path) -> None:
    asked, file = settings(used), tmp_path / "file"
    file.write_text("one")
    record = Record(0, None, ((FILE, str(file), "", None),))
    used.put(asked, (CELL, VARIATIONS[0], ()), made(), record)
    assert not list(used.store.entries())
    assert f"not kept: 1, because {file} changed while exports were made" in list(used.lines())
    used.put(asked, (CELL, VARIATIONS[0], ()), made(), replace(record, began=time.time_ns() + 10**9))
    assert list(used.store.entries())


def test_an_artifact_is_used_again_where_all_that_it_was_made_from_is_as_it_was(
    used: Reuse, tmp_path: Path
) -> None:
    asked, wanted = settings(used), (CELL, VARIATIONS[0], ())
    file, template = tmp_path / "file", tmp_path / "template"
    for branch in ("one", "two"):
        file.write_text(branch)
        template.write_text(
            json.dumps(
                {"began": time.time_ns() + 10**9, "before": None, "facts": [["file", str(file), "", None]]}
            )
        )
        used._templates.clear()
        result = replace(LOWERED, graph=branch)
        used.put(asked, wanted, made(artifact=replace(ARTIFACT, result=result)), Record(0, template, ()))
    for branch in ("one", "two", "one"):
        file.write_text(branch)
        (stored,) = used.take(asked, [wanted])
        assert stored is not None
        found = stored().result
        assert isinstance(found, Artifact)
        assert isinstance(found.result, Lowered)
        assert found.result.graph == branch
    file.write_text("three")
    assert list(used.take(asked, [wanted])) == [None]
    assert f"exported again: 1, because {file} changed" in list(used.lines())


def test_what_changed_is_told_of_the_release_itself_and_of_its_own_files_first(
    used: Reuse, tmp_path: Path
) -> None:
    asked, wanted = settings(used), (CELL, VARIATIONS[0], ())
    model, package = tmp_path / "model.py", tmp_path / "executorch-1.5.1.dist-info" / "METADATA"
    package.parent.mkdir()

    def kept(file: Path) -> None:
        file.write_text("before")
        record = Record(time.time_ns() + 10**9, None, ((FILE, str(file), "", None),))
        result = replace(LOWERED, graph=file.name)
        used.put(asked, wanted, made(artifact=replace(ARTIFACT, result=result)), record)

    kept(package)
    package.write_text("another release")
    assert list(used.take(asked, [wanted])) == [None]
    assert not [line for line in used.lines() if line.startswith("exported again")]
    kept(model)
    kept(package)
    model.write_text("after")
    package.write_text("another release")
    assert list(used.take(asked, [wanted])) == [None]
    assert [line for line in used.lines() if line.startswith("exported again")] == [
        f"exported again: 1, because {model} changed"
    ]


def test_what_has_no_record_is_not_kept(used: Reuse) -> None:
    used.put(settings(used), (CELL, VARIATIONS[0], ()), made(), None)
    assert not list(used.store.entries())


def test_a_sample_is_exported_again_and_a_difference_names_the_cell(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = uses(store, monkeypatch, "100%")
    asked = settings(used)
    wanted = [(cell, VARIATIONS[0], ()) for cell in (CELL, OTHER)]
    for each in wanted:
        used.put(asked, each, made(each[0]), NOTHING)
    assert list(used.take(asked, wanted)) == [None, None]
    used.put(asked, wanted[0], made(CELL), NOTHING)
    used.put(
        asked, wanted[1], made(OTHER, replace(ARTIFACT, result=replace(LOWERED, graph="another\n"))), NOTHING
    )
    assert used.error_of(CELL) is None
    wrong = used.error_of(OTHER)
    assert isinstance(wrong, ReuseError)
    assert "stale cache entry: xnnpack-fp32/wrong [seed0-heap0]" in str(wrong)
    assert "exported 2 of the stored again: 1 differ" in next(used.lines())
    # The new artifact is there.
    again = uses(store, monkeypatch)
    (stored,) = again.take(settings(again), [wanted[1]])
    assert stored is not None
    outcome = stored()
    assert isinstance(outcome.result, Artifact)
    assert isinstance(outcome.result.result, Lowered)
    assert outcome.result.result.graph == "another\n"


def test_a_sample_follows_its_seed_and_has_one_at_least() -> None:
    found = [f"{number:02}" for number in range(100)]
    chosen = reuse.Recheck.of("5%:7").choose(found)
    assert len(chosen) == 5
    assert chosen == reuse.Recheck.of("5%:7").choose(found[::-1])
    assert chosen != reuse.Recheck.of("5%:8").choose(found)
    assert len(reuse.Recheck.of("1%").choose(found[:3])) == 1
    assert not reuse.Recheck.of("1%").choose([])


def test_a_line_says_by_what_the_key_has_changed(used: Reuse, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = settings(used)
    used.put(asked, (CELL, VARIATIONS[0], ()), made(), NOTHING)
    changed = replace(asked, isolation="fresh")
    assert list(used.take(changed, [(CELL, VARIATIONS[0], ())])) == [None]
    assert "exported again: 1, because isolation changed" in list(used.lines())


def test_a_damaged_entry_is_exported_anew_and_a_line_says_so(used: Reuse) -> None:
    asked = settings(used)
    used.put(asked, (CELL, VARIATIONS[0], ()), made(), NOTHING)
    for entry in (used.store.root / "artifacts").glob("*/*"):
        entry.write_bytes(b"damaged")
    assert list(used.take(asked, [(CELL, VARIATIONS[0], ())])) == [None]
    used.put(asked, (CELL, VARIATIONS[0], ()), made(), NOTHING)
    assert None not in used.take(asked, [(CELL, VARIATIONS[0], ())])
    assert "damaged entries of the cache, deleted and made again: 1" in list(used.lines())


def test_a_store_that_cannot_be_written_any_more_ends_no_run(used: Reuse, tmp_path: Path) -> None:
    asked = settings(used)
    used.store.root = tmp_path / "file"
    used.store.root.write_text("")
    used.put(asked, (CELL, VARIATIONS[0], ()), made(), NOTHING)
    assert any(line.startswith("nothing more was kept: the cache") for line in used.lines())


def test_the_line_of_a_cell_that_was_reused_and_wrong_is_not_accepted(tmp_path: Path) -> None:
    results = Results(tmp_path, releases.load().release("1.4.1"))
    results.open()
    results.note(Verdict(CELL, "stable", ""), [made()], None, "stale cache entry")
    (row,) = read(results.file)
    assert (row["accepted"], row["reason"]) == (False, "stale cache entry")
