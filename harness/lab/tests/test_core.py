"""The core of a zoo: its cover, what it must have, and the command that draws it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.goldens import golden
from executorch_goldens.running import core
from executorch_goldens_plugins.compare.reach import map as maps
from lab.__main__ import main
from lab.core import computing
from lab.core.computing import drawn
from lab.core.wanted import DEAR, Source
from tests import GOLDENS
from tests.plugins.compare.reach.packages import PLAIN, RAN, known, packages
from tests.support.screens import screen

A, B, C, D = (Cell("tosa-fp", name) for name in "abcd")
MAPPED = (GOLDENS / "1.4.1" / maps.FILE).is_file()

CHEAP, DEARER = 0b01, 0b10


def test_a_dear_cell_is_asked_for_no_mutant_alone_and_is_named(tmp_path: Path) -> None:
    # The first cell takes less than `DEAR` seconds, the second more.
    cells = Cell("tosa-fp", "cheap"), Cell("tosa-int", "dear")
    made = known(packages(tmp_path / "base"), 0.6 * DEAR, dict.fromkeys(cells, RAN[PLAIN]))
    mutants = {"mutant both": CHEAP | DEARER, "mutant dear": DEARER}
    source = Source(tmp_path, made, CHEAP | DEARER, CHEAP, (), mutants, {}, {})
    assert "mutant both" in dict(source.must())
    assert "mutant dear" not in dict(source.must())
    assert dict(source.shows())["mutant dear"] == DEARER
    assert source.unkept() == [f"mutant dear: {cells[1]}"]
    # A target is asked for whatever its cells take: the second one's has no other.
    assert set(drawn(source)) == {0, 1}


# The cover


def test_a_cell_that_alone_has_something_is_taken_and_what_it_has_beside_counts() -> None:
    assert computing.cover([0b0001, 0b0011, 0b0110, 0b0110], [], [1.0] * 3) == [0, 1]


def test_what_comes_with_something_narrower_does_not_count() -> None:
    # The first cell has three of four rows, and two of these come with the second, which alone has the fourth.
    assert computing.cover([0b0010, 0b0011, 0b0111, 0b1001], [], [1.1, 2.0, 1.0, 1.0]) == [3, 1]


def test_ties_go_by_number() -> None:
    assert computing.cover([0b1110], [], [1.0] * 4) == [1]


def test_cells_that_must_be_in_the_core_come_first_and_count() -> None:
    assert computing.cover([0b0011], [3, 1], [1.0] * 4) == [3, 1]


def test_what_is_cheap_is_taken_before_what_is_dear() -> None:
    assert computing.cover([0b011, 0b101], [], [3.0, 2.0, 2.0]) == [0]
    assert sorted(computing.cover([0b011, 0b101], [], [5.0, 2.0, 2.0])) == [1, 2]


def test_a_cell_that_later_ones_make_needless_goes_again() -> None:
    # By what a second gives, the last is taken first; the first two are needed for the rest, and have what it has.
    rows = [0b1001, 0b1010, 0b0101, 0b0110]
    assert sorted(computing.cover(rows, [], [3.0, 3.0, 9.0, 1.0])) == [0, 1]


# What a core must have


def source(*situations: int, **others: object) -> Source:
    """Return four cells of 1, 2, 3 and 4 seconds that run a statement each of a function in some situations."""
    cells = tuple(
        maps.MappedCell(0, cell.target, cell.case, 1000 * n, "") for n, cell in enumerate((A, B, C, D), 1)
    )
    lines = tuple(maps.Situation((n,), bytes([of])) for n, of in enumerate(situations, 1))
    function = maps.MappedFunction(0, "f", 1, "x", lines, tuple(range(1, len(lines) + 1)))
    known = maps.ReachMap(
        1, "1.4.1", "", "", ("models",), cells, ("executorch/exir/pass_base.py",), (function,)
    )
    given = {"candidates": 0b1111, "committed": 0, "gone": (), "mutants": {}, "fixes": {}, "always": {}}
    return Source(Path(), known, **{**given, **others})  # type: ignore[arg-type]


def test_a_core_runs_what_the_committed_one_runs_at_no_more_seconds_and_has_the_rest() -> None:
    # The committed D runs what A runs; C alone kills.
    made = source(0b1001, 0b0010, committed=0b1000, mutants={"m": 0b0100}, always={1: "issue"})
    assert computing.drawn(made) == [1, 0, 2]
    assert computing.text(made, [1, 0, 2]).splitlines()[-3:] == [
        "tosa-fp/b  issue; target tosa-fp; 1 statements",
        "tosa-fp/a  1 statements",
        "tosa-fp/c  m",
    ]


def test_what_is_left_of_the_seconds_goes_to_cells_that_run_most_for_a_second() -> None:
    # A has what D has and costs 3 seconds less: B runs one more statement for 2 seconds, C one for 3.
    assert computing.drawn(source(0b1001, 0b0010, 0b0100, committed=0b1000)) == [0, 1]
    assert computing.drawn(source(0b1001, 0b0100, committed=0b1000)) == [0, 2]


def test_cells_without_a_golden_are_named_and_not_taken() -> None:
    made = source(0b1111, candidates=0b0001, committed=0b0001, fixes={"fix": 0b0100, "other": 0b0101})
    assert computing.drawn(made) == [0]
    assert made.unkept() == ["fix: tosa-fp/c"]


def test_a_core_without_what_it_must_have_says_what_it_lacks() -> None:
    made = source(
        0b1111,
        mutants={"m": 0b0110},
        fixes={"fix": 0b1000},
        always={0: "issue #1"},
        gone=(Cell("x", "gone"),),
    )
    assert computing.lacking(made, 0b0010) == ["a golden of x/gone", "fix", "issue #1 by tosa-fp/a"]
    assert computing.lacking(source(0b1111), 0) == ["target tosa-fp"]


def test_a_cell_is_superfluous_if_others_run_each_function_in_its_situations() -> None:
    # A and B alike; C runs what D runs, and alone kills.
    assert computing.superfluous(source(0b0011, 0b1100, mutants={"m": 0b0100}), 0) == [3, 1]
    assert computing.superfluous(source(0b0011, 0b1100, mutants={"m": 0b1000}), 0) == [2, 1]
    assert computing.superfluous(source(0b0011, 0b1100), 0b1000) == [2, 1]


# The command


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A root with two goldens of 1.4.1, one of them in the core."""
    for cell in ("tosa-int/linear", "xnnpack-int8/linear"):
        file = golden.file_of(tmp_path / "1.4.1", Cell(*cell.split("/")))
        golden.write(file, golden.read(GOLDENS / "1.4.1" / f"{cell}.txt"))
    (tmp_path / "1.4.1" / core.FILE).write_text("tosa-int/linear  target tosa-int\n")
    return tmp_path


@pytest.mark.skipif(not MAPPED, reason="1.4.1 has no map of reach")
def test_a_core_that_lacks_something_is_drawn_again(some: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(GOLDENS / "1.4.1" / maps.FILE, some / "1.4.1")
    command = ["core", "--release", "1.4.1", "--goldens", str(some)]
    assert main(command) == DIFFERENT
    printed = capsys.readouterr().out
    assert "core.txt: lacks " in printed
    assert "target xnnpack-int8" in printed
    assert f"accept: {core.UPDATE}" in printed
    assert main([*command, "--update"]) == SAME
    assert main(command) == SAME
    assert "core.txt: as committed" in capsys.readouterr().out
    assert set(core.read(some / "1.4.1" / core.FILE)) == {
        Cell("tosa-int", "linear"),
        Cell("xnnpack-int8", "linear"),
    }


def test_without_a_map_of_reach_the_core_stays_and_the_command_says_so(
    some: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert main(["core", "--release", "1.4.1", "--goldens", str(some), "--update"]) == SAME
    assert screen(capsys.readouterr().out, {some: "ROOT"}) == snapshot
