"""How fixes are tried on cells: halved until one alone is seen, kept, and reported."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from executorch_goldens.artifact import Cell
from executorch_goldens.goldens import golden
from lab.mutants.history import FIXES
from lab.mutants.history.__main__ import lines
from lab.mutants.history.__main__ import met as met_of
from lab.mutants.history.document import REPOSITORY, Source, document, not_seen, recall, row, summary
from lab.mutants.history.earlier import earlier
from lab.mutants.history.fix import Fix
from lab.mutants.history.measure import (
    ENOUGH,
    STABLE,
    Kept,
    Met,
    Result,
    Search,
    Seen,
    Tried,
    joined,
    key,
    numbers,
    results,
)
from lab.mutants.mutant import Edit

ARM, XNNPACK, SHARED = "backends.arm.tosa", "backends.xnnpack._passes", "exir.passes"


def fix(number: int, module: str = SHARED) -> Fix:
    edit = Edit(f"executorch.{module}:call", "a", str(number))
    return Fix(f"{number}-a-fix", number, "1.3.1", "crash", "it broke", (edit,))


EIGHT = [fix(number) for number in range(8)]
CELL = Cell("tosa-fp", "add")
CORRUPT = Seen("corrupt", "FoldPass")


class Answered(Search):
    """A search that exports nothing: cells see the fixes of which it was told."""

    def __init__(
        self,
        kept: Kept,
        fixes: Sequence[Fix],
        sees: Collection[int],
        guarded: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        run: Any = SimpleNamespace(root=kept.goldens)
        super().__init__(run, fixes, kept, minutes=1.0, guarded=guarded)
        self.sees = sees

    def _judge(self, cell: Cell, fixes: Sequence[Fix]) -> Seen:
        self.exports += 1
        return CORRUPT if any(fix.number in self.sees for fix in fixes) else Seen(STABLE, "-")


def kept(folder: Path, contents: str = "a graph\n") -> Kept:
    place = folder / "goldens" / str(CELL)
    texts = golden.sealed(
        {
            golden.MANIFEST: f"format: {golden.FORMAT}\nvariations: seed0-heap0\nshortcuts: none\n",
            golden.GRAPH: contents,
        }
    )
    golden.write(place, texts)
    return Kept(folder / "build" / "1.3.1.jsonl", folder / "goldens")


def test_a_cell_that_sees_no_fix_is_exported_once(tmp_path: Path) -> None:
    search = Answered(kept(tmp_path), EIGHT, sees=())
    tried = search._try(CELL)
    assert tried is not None
    assert (search.exports, tried.seen, len(tried.fixes)) == (1, {}, 8)


def test_each_fix_that_a_cell_sees_is_found_alone_and_the_cell_itself_is_exported_once_more(
    tmp_path: Path,
) -> None:
    search = Answered(kept(tmp_path), EIGHT, sees=(2, 7))
    tried = search._try(CELL)
    assert tried is not None
    assert tried.seen == {key(EIGHT[2]): CORRUPT, key(EIGHT[7]): CORRUPT}
    assert tried.control == STABLE


def test_fixes_of_one_backend_are_not_tried_on_cells_of_the_other(tmp_path: Path) -> None:
    search = Answered(kept(tmp_path), [fix(1, ARM), fix(2, XNNPACK), fix(3)], sees=())
    assert [fix.number for fix in search._wanted(CELL)] == [1, 3]
    assert [fix.number for fix in search._wanted(Cell("xnnpack-fp32", "add"))] == [2, 3]


def test_a_cell_may_meet_no_fixes_but_those_that_its_case_names(tmp_path: Path) -> None:
    search = Answered(kept(tmp_path), EIGHT, sees=(2, 3), guarded={"add": numbers("a sum is one (#3, #5)")})
    tried = search._try(CELL)
    assert tried is not None
    assert tried.fixes == (key(EIGHT[3]), key(EIGHT[5]))
    assert set(tried.seen) == {key(EIGHT[3])}
    assert Answered(kept(tmp_path), EIGHT, sees=(), guarded={"add": ()})._try(CELL) is None


def test_what_was_tried_is_not_tried_again_unless_the_golden_or_the_fix_is_another(tmp_path: Path) -> None:
    Answered(kept(tmp_path), EIGHT, sees=(2,))._try(CELL)
    again = Answered(kept(tmp_path), EIGHT, sees=(2,))
    assert again._try(CELL) is None
    assert again.exports == 0
    other = replace(EIGHT[0], edits=(Edit("executorch.exir.other:call", "a", "b"),))
    assert Answered(kept(tmp_path), [other, *EIGHT[1:]], sees=())._wanted(CELL) == [other]
    assert len(Answered(kept(tmp_path, contents="another"), EIGHT, sees=())._wanted(CELL)) == 8


def test_a_golden_of_a_guest_zoo_which_stands_in_a_table_counts_as_one(tmp_path: Path) -> None:
    of_guest = kept(tmp_path)
    place = golden.directory(of_guest.goldens, CELL)
    texts = golden.read(place)
    assert texts is not None
    golden.prune(of_guest.goldens, CELL)
    assert of_guest.golden(str(CELL)) == ""
    compact = golden.unsealed(texts)
    compact[golden.MANIFEST] += f"{golden.FORM}: {golden.COMPACT}\n"
    golden.write(place, golden.sealed(compact))
    assert not place.exists()
    assert len(of_guest.golden(str(CELL))) == 12


def test_a_fix_that_enough_cells_have_seen_is_tried_no_more(tmp_path: Path) -> None:
    search = Answered(kept(tmp_path), EIGHT, sees=())
    names = tuple(map(key, EIGHT))
    search.known = [Tried(f"tosa-int/{n}", names, {names[3]: CORRUPT}, STABLE) for n in range(ENOUGH)]
    assert EIGHT[3] not in search._wanted(CELL)
    search.known.pop()
    assert search._wanted(CELL)[0] == EIGHT[3]


def test_a_session_that_ends_keeps_nothing_of_a_cell_that_is_not_done(tmp_path: Path) -> None:
    search = Answered(kept(tmp_path), EIGHT, sees=(2,))
    search.end = time.monotonic() - 1
    assert search._try(CELL) is None
    assert search._split(CELL, EIGHT) is None
    assert kept(tmp_path).read() == []


def test_a_cell_that_is_not_stable_by_itself_says_nothing() -> None:
    names = tuple(map(key, EIGHT))
    tried = [
        Tried("tosa-fp/a", names, {names[0]: CORRUPT}, STABLE),
        Tried("tosa-fp/b", names, {names[0]: CORRUPT}, "changed"),
        Tried("tosa-fp/c", names[1:], {}),
    ]
    first, second, *_ = results(EIGHT, tried)
    assert (first.tried, first.seen) == (1, {"tosa-fp/a": CORRUPT})
    assert (second.tried, second.seen) == (2, {})
    assert lines(tried[0]) == ["tosa-fp/a sees #0: corrupt, FoldPass"]
    assert lines(tried[1]) == ["tosa-fp/b is changed without any fix taken back"]


def met(
    number: int,
    zoo: int = 0,
    situations: int = 0,
    sees: int = 0,
    guests: int = 0,
    sheets: int = 0,
    pairs: int = 0,
) -> Met:
    """Return a fix that so many cells of each zoo have met, and so many of the situations have seen."""
    seen = {str(n): CORRUPT for n in range(sees)}
    return Met(
        fix(number),
        Result(fix(number), zoo, {}),
        Result(fix(number), situations, seen),
        Result(fix(number), guests, {}),
        Result(fix(number), sheets, {}),
        Result(fix(number), pairs, {}),
    )


def test_a_row_says_what_was_broken_and_how_many_of_each_zoo_saw_it() -> None:
    link = f"| [#5]({REPOSITORY}5) | 1.3.1 | crash | it broke |"
    assert row(met(5)) == f"{link} not tried | not tried | not tried | not tried | not tried | - | - |"
    others = f"{link} 0 of 40 | 0 of 9 | 0 of 7 | 0 of 2 | not tried | - | - |"
    assert row(met(5, zoo=40, guests=9, sheets=7, pairs=2)) == others
    seen = row(met(5, zoo=40, situations=3, sees=2))
    assert seen == f"{link} 0 of 40 | not tried | not tried | not tried | 2 of 3 | corrupt | FoldPass |"
    assert f" {ENOUGH} or more of 40 |" in row(met(5, situations=40, sees=ENOUGH))


def test_what_several_guest_zoos_say_counts_together_and_what_they_see_is_seen() -> None:
    of_two = [Result(EIGHT[0], 3, {"tosa-fp/a": CORRUPT}), Result(EIGHT[0], 4, {"tosa-fp/a": CORRUPT})]
    guests = joined(EIGHT[0], of_two)
    assert (guests.tried, len(guests.seen)) == (7, 2)
    nothing = Result(EIGHT[0], 0, {})
    assert Met(EIGHT[0], nothing, nothing, guests, nothing, nothing).seen == [CORRUPT, CORRUPT]


def test_totals_count_fixes_by_release_before_and_after_the_situations() -> None:
    found = [met(1), met(2, zoo=3), met(3, zoo=3, situations=2, sees=1), met(4, guests=2, sheets=5)]
    assert "| 1.3.1 | 4 | 0 | 532 + 90 + 7 | 2 | 0 | 1 | 1 | 0 | 1 | 0 | 0 | 0 | 1 |" in summary(
        found, {"1.3.1": (532, 90, 7)}
    )


def test_recall_counts_fixes_by_source_and_kind_and_what_was_taught_is_a_source_of_its_own() -> None:
    nothing = Result(EIGHT[0], 3, {})
    seen = Result(EIGHT[0], 3, {"tosa-fp/a": CORRUPT})
    lost = replace(EIGHT[1], kind="lost delegate")
    found = [
        Met(EIGHT[0], nothing, seen, nothing, seen, nothing),
        Met(lost, nothing, seen, nothing, nothing, nothing),
    ]
    of_sheets = Source("sheets", lambda each: bool(each.sheets.seen), {"1.3.1": 12.4}, {"1.3.1": 70})
    taught = Source("taught", lambda each: bool(each.situations.seen), {})
    rows = list(recall(found, [of_sheets, taught]))
    assert "| sheets | 1.1.0 | 1.3.1 | 1 of 1 | 0 of 0 | 0 of 1 | 1 of 2 | 70 | 12 |" in rows
    assert "| taught | 1.1.0 | 1.3.1 | 1 of 1 | 0 of 0 | 1 of 1 | 2 of 2 | - | - |" in rows
    assert rows[-2].startswith("| sheets | both |")
    assert "1 of 2 (50%)" in rows[-2]
    assert seen not in found[1].untaught


def test_what_the_exports_of_a_cell_take_is_kept(tmp_path: Path) -> None:
    file = kept(tmp_path)
    file.add(Tried(str(CELL), (key(EIGHT[0]),), {}, "", 3.14159))
    assert [each.core_seconds for each in file.read()] == [3.1]


def test_a_fix_that_is_not_seen_is_listed_with_its_reason_unless_it_is_seen_after_all() -> None:
    why = replace(fix(2), unseen="two effects hide each other")
    nothing = Result(why, 0, {})
    found = [
        met(1, zoo=3),
        Met(why, Result(why, 1, {}), nothing, nothing, nothing, nothing),
        met(3, situations=1, sees=1),
    ]
    assert list(not_seen(found)) == [
        f"- [#2]({REPOSITORY}2), 1.3.1: two effects hide each other",
        f"- not looked into: [#1]({REPOSITORY}1)",
    ]
    seen = Met(why, Result(why, 1, {}), Result(why, 1, {"tosa-fp/a": CORRUPT}), nothing, nothing, nothing)
    assert list(not_seen([seen])) == []


def test_counts_of_the_session_that_was_not_kept_stand_until_a_kept_one_has_tried_more() -> None:
    (silu,) = (fix for fix in FIXES if fix.number == 21437)
    (before, after) = (earlier(silu, Result(silu, tried, {})) for tried in (3, 60))
    assert (before.tried, [seen.verdict for seen in before.seen.values()]) == (56, ["changed"])
    assert (after.tried, after.seen) == (60, {})
    assert earlier(EIGHT[0], Result(EIGHT[0], 0, {})).tried == 0


def test_a_fix_out_of_reach_is_counted_and_listed_with_its_reason() -> None:
    far = replace(fix(1), unreachable="nothing asks for it")
    nothing = Result(far, 0, {})
    found = [Met(far, nothing, nothing, nothing, nothing, nothing), met(2, zoo=1)]
    page = list(document(found, {}, [], [], (7, "0123456789abcdef0", 9, "abc")))
    assert "| 1.3.1 | 2 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in page
    assert any("7 samples, sha256 `0123456789abcdef`" in line for line in page)
    assert any("9 small models" in line for line in page)
    assert [line for line in page if line.startswith("- ")] == [
        f"- not looked into: [#2]({REPOSITORY}2)",
        f"- [#1]({REPOSITORY}1): nothing asks for it",
    ]


def test_no_fix_with_a_reason_why_it_is_not_seen_is_seen() -> None:
    for each in FIXES:
        if each.unreachable or each.unseen:
            found = met_of(each)
            assert not any(seen.seen for seen in (*found.untaught, found.situations)), each.name
