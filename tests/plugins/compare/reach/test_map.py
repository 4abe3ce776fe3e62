"""A map of reach: what it says of functions, and what is no map."""

from __future__ import annotations

import lzma
from pathlib import Path

import msgspec
import pytest

from executorch_goldens_plugins.compare.reach import map as maps
from lab.reach import building
from tests.plugins.compare.reach.packages import (
    FILE,
    FOLD,
    INT16,
    LIKE,
    PLAIN,
    RAN,
    TORCHAO,
    USERS,
    function,
    known,
    packages,
)


@pytest.fixture
def made(tmp_path: Path) -> maps.ReachMap:
    return known(packages(tmp_path))


def named(made: maps.ReachMap, numbers: frozenset[int]) -> set[object]:
    return {made.cells[number].cell for number in numbers}


def test_a_line_has_the_cells_that_run_it(made: maps.ReachMap) -> None:
    call = made.by_name[FILE, "Fold.call"]
    assert named(made, made.cells_at(call, [13])) == {*RAN}
    assert named(made, made.cells_at(call, [15])) == {USERS, INT16}
    assert made.cells_at(call, [12]) == frozenset()
    assert named(made, made.cells_in(made.by_name[TORCHAO, "rounded"])) == {USERS, INT16}


def test_a_function_that_no_cell_reaches_is_there_with_the_statements_that_may_run(
    made: maps.ReachMap,
) -> None:
    unused, call = made.by_name[FILE, "unused"], made.by_name[FILE, "Fold.call"]
    assert (unused.situations, unused.statements) == ((), (0 + 1,))
    # Line 12 only raises; the conditions of lines 11 and 14 may be false.
    assert set(call.statements) == {1, -2, 3, 4, -5, 5, 6}


def test_cells_that_run_other_statements_reach_a_function_in_another_situation(made: maps.ReachMap) -> None:
    call = made.by_name[FILE, "Fold.call"]
    of = {each.cell: made.situation(number, call) for number, each in enumerate(made.cells)}
    assert of[PLAIN] == of[LIKE] != of[USERS] == of[INT16]


def test_a_function_is_found_by_its_code_wherever_it_is_and_a_changed_one_by_its_name(
    made: maps.ReachMap,
) -> None:
    call = made.by_name[FILE, "Fold.call"]
    assert made.function("executorch/elsewhere.py", "New.call", function(FOLD, "Fold.call").digest) is call
    assert made.function(FILE, "Fold.call", "0123456789abcdef") is call
    assert made.function("executorch/elsewhere.py", "New.call", "0123456789abcdef") is None


def test_a_map_is_read_as_it_was_written(made: maps.ReachMap, tmp_path: Path) -> None:
    building.write(tmp_path / maps.FILE, made)
    assert maps.read(tmp_path / maps.FILE) == made


@pytest.mark.parametrize("damage", ["none", "cut off", "no xz", "no map", "newer"])
def test_what_is_no_map_is_one_error_with_the_way_out(
    made: maps.ReachMap, tmp_path: Path, damage: str
) -> None:
    path = tmp_path / maps.FILE
    building.write(path, made)
    whole = path.read_bytes()
    if damage == "none":
        path.unlink()
    else:
        newer = msgspec.structs.replace(made, format=maps.FORMAT + 1)
        path.write_bytes(
            {
                "cut off": whole[:-40],
                "no xz": b"a" + whole,
                "no map": lzma.compress(msgspec.msgpack.encode([1])),
                "newer": lzma.compress(msgspec.msgpack.encode(newer)),
            }[damage]
        )
    with pytest.raises(maps.MapError) as raised:
        maps.read(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert str(raised.value).endswith(f"by: {maps.UPDATE}")


def test_a_map_that_is_too_large_unpacked_is_refused(
    made: maps.ReachMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "LARGEST", 100)
    building.write(tmp_path / maps.FILE, made)
    with pytest.raises(maps.MapError, match="larger than 100 bytes unpacked"):
        maps.read(tmp_path / maps.FILE)
