"""Trials of reverted fixes on cells: halved until one alone is seen, kept, and reported."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Artifact, Cell, Failure, Outcome
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.record import GRAPH, Record
from executorch_goldens.judging.comparison import JudgedCell
from lab import findings
from lab.compact import goldens
from lab.compact.form import COUNTED
from lab.guests.triage import Explanation, explanations, why
from lab.mutants.history import FIXES, red
from lab.mutants.history.__main__ import SOURCES as MEASURED
from lab.mutants.history.__main__ import frozen, lines, red_results, tried_of
from lab.mutants.history.__main__ import met as met_of
from lab.mutants.history.document import REPOSITORY, SOURCES, Effort, document, needed, not_seen, recall, row
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
    latest,
    numbers,
    results,
)
from lab.mutants.history.needs import NEEDS
from lab.mutants.mutant import Edit
from tests.support.screens import screen
from tests.support.verdicts import verdict

ARM, XNNPACK, SHARED = "backends.arm.tosa", "backends.xnnpack._passes", "exir.passes"


def fix(number: int, module: str = SHARED) -> Fix:
    edit = Edit(f"executorch.{module}:call", "a", str(number))
    return Fix(f"{number}-a-fix", number, "1.3.1", "crash", "it broke", (edit,))


EIGHT = [fix(number) for number in range(8)]
CELL = Cell("tosa-fp", "add")
CORRUPT = Seen("corrupt", "FoldPass")


class Answered(Search):
    """A search that exports nothing: cells see the given fixes."""

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
    place = golden.file_of(folder / "goldens", CELL)
    golden.write(place, Record({"variations": "seed0-heap0"}, {GRAPH: contents}))
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
    place = golden.file_of(of_guest.goldens, CELL)
    record = golden.read(place)
    assert record is not None
    place.unlink()
    assert of_guest.golden(str(CELL)) == ""
    goldens.write(of_guest.goldens, {CELL: Record(record.facts, {COUNTED: "delegate a: 1\n"})})
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


def test_a_cell_that_is_not_stable_by_itself_says_nothing(snapshot: SnapshotAssertion) -> None:
    names = tuple(map(key, EIGHT))
    tried = [
        Tried("tosa-fp/a", names, {names[0]: CORRUPT}, STABLE),
        Tried("tosa-fp/b", names, {names[0]: CORRUPT}, "changed"),
        Tried("tosa-fp/c", names[1:], {}),
    ]
    first, second, *_ = results(EIGHT, tried)
    assert (first.tried, first.seen) == (1, {"tosa-fp/a": CORRUPT})
    assert (second.tried, second.seen) == (2, {})
    assert [*lines(tried[0]), *lines(tried[1])] == snapshot


def met(number: int, zoo: int = 0, taught: int = 0, sees: int = 0, of: Fix | None = None) -> Met:
    """Return a fix that so many cells of the zoo and of taught sources have met; so many of these have seen it."""
    each = of or fix(number)
    seen = {str(n): CORRUPT for n in range(sees)}
    found = {"zoo": Result(each, zoo, {}), "taught": Result(each, taught, seen)}
    return Met(each, found, frozenset(("taught",)))


def test_a_row_says_what_was_broken_and_how_many_cells_of_each_source_saw_it(
    snapshot: SnapshotAssertion,
) -> None:
    several = met(5), met(5, zoo=40), met(5, zoo=40, taught=3, sees=2), met(5, taught=40, sees=ENOUGH)
    assert [row(each) for each in several] == snapshot


def test_what_several_zoos_of_a_source_say_counts_together_and_what_they_see_is_seen() -> None:
    of_two = [Result(EIGHT[0], 3, {"tosa-fp/a": CORRUPT}), Result(EIGHT[0], 4, {"tosa-fp/a": CORRUPT})]
    guests = joined(EIGHT[0], of_two)
    assert (guests.tried, len(guests.seen)) == (7, 2)
    assert Met(EIGHT[0], {"guests": guests}).seen == [CORRUPT, CORRUPT]


def test_recall_counts_fixes_by_source_and_kind_and_what_was_taught_does_not_count(
    snapshot: SnapshotAssertion,
) -> None:
    lost = replace(EIGHT[1], kind="lost delegate")
    untaught = Met(EIGHT[0], {**met(0, taught=3, sees=1).found, "zoo": Result(EIGHT[0], 3, {"a": CORRUPT})})
    found = [replace(untaught, taught=frozenset(("taught",))), met(1, zoo=3, taught=3, sees=1, of=lost)]
    assert [*recall(found, {"zoo": {"1.3.1": Effort(70, 12.4), "1.5.1": Effort(0, 0.0)}})] == snapshot


def test_a_test_of_upstream_that_the_older_release_does_not_have_is_not_held_out() -> None:
    earlier_ones, later_ones = (
        {each.cell for each in tried_of(source, "arm-ops", "1.3.1")}
        for source in ("upstream's tests", "upstream's later tests")
    )
    assert earlier_ones
    assert later_ones
    assert not earlier_ones & later_ones
    # test_abs.py is older than test_cosh.py's cases in bfloat16.
    assert any(cell.endswith("-bf16") for cell in later_ones)
    assert not any(cell.endswith("-bf16") for cell in earlier_ones)


def test_what_is_not_seen_untaught_says_what_it_needs_those_of_a_kind_together() -> None:
    seen = replace(met(16681), found={"zoo": Result(fix(16681), 3, {"a": CORRUPT})})
    rows = list(needed([met(16636), met(17247), seen]))
    assert len(rows) == 3
    assert rows[-1].startswith(f"| sharing | 2 | [#16636]({REPOSITORY}16636): a channels-last constant")
    assert "16681" not in rows[-1]
    unseen = {each.number for each in FIXES if not (known := met_of(each)).is_seen(*known.untaught)}
    assert unseen <= {*NEEDS}


def test_every_source_is_described() -> None:
    assert [*SOURCES] == [*MEASURED]


def test_what_the_exports_of_a_cell_take_is_kept(tmp_path: Path) -> None:
    file = kept(tmp_path)
    file.add(Tried(str(CELL), (key(EIGHT[0]),), {}, "", 3.14159))
    assert [each.core_seconds for each in file.read()] == [3.1]


def test_a_fix_that_is_not_seen_is_listed_with_its_reason_unless_it_is_seen_after_all() -> None:
    why = replace(fix(2), unseen="two effects hide each other")
    found = [met(1, zoo=3), met(2, zoo=1, of=why), met(3, taught=1, sees=1)]
    assert list(not_seen(found)) == [
        f"- [#2]({REPOSITORY}2), 1.3.1: two effects hide each other",
        f"- not looked into: [#1]({REPOSITORY}1)",
    ]
    assert list(not_seen([met(2, taught=1, sees=1, of=why)])) == []


def test_counts_of_the_session_that_was_not_kept_stand_until_a_kept_one_has_tried_more() -> None:
    (silu,) = (fix for fix in FIXES if fix.number == 21437)
    (before, after) = (earlier(silu, Result(silu, tried, {})) for tried in (3, 60))
    assert (before.tried, [seen.verdict for seen in before.seen.values()]) == (56, ["changed"])
    assert (after.tried, after.seen) == (60, {})
    assert earlier(EIGHT[0], Result(EIGHT[0], 0, {})).tried == 0


def test_a_fix_out_of_reach_is_listed_with_its_reason() -> None:
    far = replace(fix(16637), unreachable="nothing asks for it")
    known = {**frozen(), "samples": 7, "digest": "0123", "rows": 9, "matrix": "abc"}
    page = list(document([met(16637, of=far), met(16636, zoo=1)], {}, [], known))
    assert any("7 samples, sha256 `0123`" in line for line in page)
    assert any("9 small models" in line and "sha256 `abc`" in line for line in page)
    assert not any("{" in line for line in page)
    assert [line for line in page if line.startswith("- ")] == [
        f"- not looked into: [#16636]({REPOSITORY}16636)",
        f"- [#16637]({REPOSITORY}16637): nothing asks for it",
    ]


def test_no_fix_with_a_reason_why_it_is_not_seen_is_seen() -> None:
    for each in FIXES:
        if each.unreachable or each.unseen:
            assert not met_of(each).seen, each.name


class Compared(Search):
    """A search over cells without goldens whose exports are texts: the remains of one after the seen fixes."""

    def __init__(self, folder: Path, unedited: str, sees: Collection[int]) -> None:
        run: Any = SimpleNamespace(root=folder)
        models = {CELL.case: "a sum"}
        super().__init__(run, EIGHT, Kept(folder / "1.3.1.jsonl", folder, models), minutes=1.0, unedited=True)
        self.first, self.sees = unedited, sees

    def _compare(
        self, cell: Cell, fixes: Sequence[Fix], reviewed: Record | None
    ) -> tuple[JudgedCell, Sequence[Outcome]]:
        self.exports += 1
        failure = Failure("lower", "ValueError", "no rank of 'aten_sum_default'", "SomePass", None, "")
        outcomes = [Outcome(cell, "seed0-heap0", Artifact(failure, (), 0.0), 0.0, 0.0)]
        if reviewed is None:
            right = self.first == "new"
            made = JudgedCell(verdict(self.first, cell=cell), {"graph": "a graph"} if right else None)
            return made, outcomes
        assert reviewed == {"graph": "a graph"}
        seen = any(fix.number in self.sees for fix in fixes)
        return JudgedCell(verdict("changed" if seen else STABLE, cell=cell)), outcomes


def test_without_a_golden_an_export_without_any_edit_is_what_others_are_compared_with(tmp_path: Path) -> None:
    search = Compared(tmp_path, "new", sees=(3,))
    tried = search._try(CELL)
    assert tried is not None
    assert set(tried.seen) == {key(EIGHT[3])}
    assert tried.control == STABLE
    assert Compared(tmp_path, "new", sees=())._try(CELL) is None


def test_without_a_golden_a_cell_that_is_not_right_says_nothing_and_is_not_tried_again(
    tmp_path: Path,
) -> None:
    search = Compared(tmp_path, "failed", sees=(3,))
    tried = search._try(CELL)
    assert tried is not None
    assert (tried.seen, tried.control, search.exports) == ({}, "failed", 1)
    assert results(EIGHT, search.known)[3].tried == 0
    assert Compared(tmp_path, "new", sees=())._try(CELL) is None


def test_a_cell_that_is_red_by_itself_is_kept_with_the_cause_and_without_names_of_its_model(
    tmp_path: Path,
) -> None:
    search = Compared(tmp_path, "failed", sees=())
    tried = search._try(CELL)
    assert tried is not None
    assert tried.is_red
    assert tried.cause == "lower, SomePass: ValueError: no rank of …"
    assert search.kept.read() == [tried]


def test_an_older_result_that_is_red_without_a_cause_is_looked_into_once(tmp_path: Path) -> None:
    all_of_them = tuple(map(key, EIGHT))
    Compared(tmp_path, "failed", sees=()).kept.add(Tried(str(CELL), all_of_them, {}, "failed"))
    search = Compared(tmp_path, "failed", sees=())
    again = search._try(CELL)
    assert again is not None
    assert (again.fixes, again.control, search.exports) == ((), "failed", 1)
    assert again.cause
    assert latest(search.kept.read()) == {str(CELL): again}
    assert Compared(tmp_path, "failed", sees=())._try(CELL) is None


def test_a_cell_that_was_red_and_is_right_now_is_red_no_more(tmp_path: Path) -> None:
    all_of_them = tuple(map(key, EIGHT))
    Compared(tmp_path, "failed", sees=()).kept.add(Tried(str(CELL), all_of_them, {}, "failed"))
    search = Compared(tmp_path, "new", sees=())
    assert search._try(CELL) is not None
    assert not latest(search.kept.read())[str(CELL)].is_red


def test_a_cause_is_kept_whichever_of_two_results_of_a_verdict_comes_first() -> None:
    known = Tried("tosa-fp/a", (), {}, "failed", cause="lower: no rank")
    unknown = Tried("tosa-fp/a", ("1@x",), {}, "failed")
    assert {latest(each)["tosa-fp/a"].cause for each in ([known, unknown], [unknown, known])} == {known.cause}
    assert latest([known, replace(unknown, control="corrupt")])["tosa-fp/a"].cause == ""


def test_red_cells_are_counted_by_source_with_the_causes_that_nothing_explains(
    snapshot: SnapshotAssertion,
) -> None:
    tried = {
        "wider": [
            Tried("tosa-fp/a", (), {}, "corrupt", cause="CAST : values differ"),
            Tried("tosa-fp/b", (), {}, "corrupt", cause="CAST : values differ"),
            Tried("tosa-fp/c", (), {}, "corrupt", cause="SLICE : values differ"),
            Tried("tosa-fp/d", (), {}, STABLE),
        ]
    }
    table = [Explanation("narrow-casts", "tosa-int/* tosa-fp/*", "corrupt", "^CAST ")]
    assert screen(red.lines(tried, "1.5.1", table)) == snapshot


def test_every_cause_of_a_red_cell_is_explained_and_every_explanation_is_used() -> None:
    table = explanations(red.TABLE)
    # One whose cause is not kept yet counts as left on the page.
    found = [each for each in red.wrong(red_results("1.5.1"), "1.5.1") if each.reason]
    assert len(found) > 50
    assert {why(each, table) for each in found} == {row.why for row in table}
    named = {name for row in table for name in re.findall(r"\(findings/([\w-]+)\.md\)", row.why)}
    assert named <= set(findings.load())


def test_what_was_found_with_another_model_does_not_count(tmp_path: Path) -> None:
    Compared(tmp_path, "new", sees=(3,))._try(CELL)
    kept_of = Kept(tmp_path / "1.3.1.jsonl", tmp_path, {CELL.case: "a sum"})
    assert len(kept_of.read()) == 1
    assert Kept(tmp_path / "1.3.1.jsonl", tmp_path, {CELL.case: "a difference"}).read() == []
    assert Kept(tmp_path / "1.3.1.jsonl", tmp_path, {}).read() == []
