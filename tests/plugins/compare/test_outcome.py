"""Kinds of difference of a cell, from edited goldens of this project."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import (
    DIFFERS,
    GAVE_THE_SAME,
    UNKNOWN,
    Cell,
    Killed,
    ProbedFunction,
    TimedOut,
)
from executorch_goldens.goldens import equality, golden
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import Fails
from executorch_goldens.goldens.record import MANIFEST, Record
from executorch_goldens.results.compared import KINDS, SAME
from executorch_goldens.settings import releases
from executorch_goldens_plugins.compare import page
from executorch_goldens_plugins.compare.making import Compared
from executorch_goldens_plugins.compare.outcome import (
    ALLOWED,
    UNREACHED,
    Made,
    decided,
    kind_of,
    shown,
)
from tests import REPOSITORY
from tests.support.making import (
    artifact,
    failure,
    lowered,
    outcome,
    outcomes,
    with_another_program,
    with_texts,
)
from tests.support.screens import screen
from tests.support.verdicts import verdict

CELL = Cell("tosa-fp", "linear")


def recorded(cell: Cell, release: str = "1.5.1") -> Record:
    texts = golden.read(golden.file_of(REPOSITORY / "goldens" / release, cell))
    return texts


def edited(file: str, before: str, after: str, cell: Cell = CELL) -> Record:
    """Return a golden with a text in it replaced, wherever it is in a file."""
    texts = recorded(cell)
    assert before in texts.texts()[file]
    return with_texts(texts, {file: texts.texts()[file].replace(before, after)})


def right(texts: Record, used: float | None = 0.0, sqnr: float | None = None) -> Made:
    found = None if used is None else Accuracy(used, 1.0, used, sqnr)
    return Made(verdict("new", "one delegate", cell=CELL), texts, (), found)


def wrong(name: str, reason: str = "it is", every: tuple[tuple[object, ...], ...] = (("one",),)) -> Made:
    return Made(verdict(name, reason, cell=CELL), None, every, None)


PLAIN = right(recorded(CELL))
FAILING = right(recorded(Cell("xnnpack-int8", "constant-in-two-partitions")))
NOT_RUN = replace(PLAIN, not_run="no rule gives the sizes")
OTHER_FAILURE = right(recorded(Cell("tosa-fp+int", "inverted-residual")))
OUTSIDE = edited(
    "graph",
    "    return ",
    "    %more : [num_users=0] = call_function[target=executorch.exir.dialects.edge._ops.aten.add.Tensor](args = (), "
    "kwargs = {})\n    return ",
)
MEMORY = edited("pte", "non_const_buffer_sizes = [0, 240]", "non_const_buffer_sizes = [0, 241]")
BYTES = edited(MANIFEST, "pte: 3940 bytes", "pte: 3941 bytes")
FEWER_BYTES = edited(MANIFEST, "pte: 3940 bytes", "pte: 3939 bytes")
ELSEWHERE = with_another_program(recorded(CELL))
COUNTED = Cell("tosa-int", "index-arithmetic")
EQUAL = right(recorded(COUNTED))
FEWER_EQUAL = with_another_program(
    edited(MANIFEST, "accuracy 0: 6 of 6 equal", "accuracy 0: 4 of 6 equal", COUNTED)
)
OLDER = edited(MANIFEST, "1.5.1", "1.4.1")
UNSTABLE, ALSO_UNSTABLE, UNSTABLE_ELSEWHERE = (
    wrong("unstable", every=tuple((texts, number) for number, texts in enumerate(every)))
    for every in (
        [edited(MANIFEST, "pte: 3940 bytes", f"pte: {size} bytes") for size in (3941, 3942)],
        [edited(MANIFEST, "pte: 3940 bytes", f"pte: {size} bytes") for size in (3943, 3943)],
        [
            with_texts(OUTSIDE, {MANIFEST: OUTSIDE.texts()[MANIFEST].replace("3940 bytes", f"{size} bytes")})
            for size in (3943, 3944)
        ],
    )
)


def _of(made: Made) -> tuple[object, ...]:
    """Return what a side made in the form of `Made.every`."""
    assert made.record is not None
    return equality.compared(made.record), "program"


#: One variation of which made what `PLAIN` is.
TOSSED = wrong("unstable", every=(_of(PLAIN), _of(right(ELSEWHERE))))


@pytest.mark.parametrize(
    ("base", "head", "kind"),
    [
        (PLAIN, PLAIN, SAME),
        (PLAIN, right(OLDER), SAME),
        (PLAIN, wrong("corrupt"), "wrong"),
        (PLAIN, wrong("imprecise"), "wrong"),
        (PLAIN, wrong("crashed"), "wrong"),
        (PLAIN, wrong("undecodable"), "wrong"),
        (PLAIN, wrong("unstable"), "unstable"),
        # A result of the base that is one of the head's: the base may have had luck.
        (PLAIN, TOSSED, "at-times"),
        (PLAIN, replace(TOSSED, verdict=verdict("order-only", "it is", cell=CELL)), "at-times"),
        (PLAIN, wrong("crashed", every=(("crashed", "killed"), *TOSSED.every)), "at-times"),
        (PLAIN, wrong("crashed", every=(("crashed", "killed"), ("another",))), "wrong"),
        (wrong("corrupt"), wrong("unstable", every=(("one",), ("another",))), "at-times"),
        (TOSSED, PLAIN, "better"),
        (FAILING, wrong("unstable", every=(*TOSSED.every, _of(FAILING))), "at-times"),
        (FAILING, TOSSED, "unstable"),
        (PLAIN, wrong("order-only"), "unstable"),
        (wrong("corrupt"), wrong("unstable", every=(("another",),)), "unstable"),
        (PLAIN, FAILING, "fails"),
        (PLAIN, wrong("failed"), "fails"),
        (FAILING, wrong("corrupt"), "wrong"),
        (FAILING, FAILING, SAME),
        (PLAIN, NOT_RUN, "unjudged"),
        (NOT_RUN, PLAIN, SAME),
        (NOT_RUN, NOT_RUN, SAME),
        (NOT_RUN, wrong("corrupt"), "wrong"),
        # Nothing says that what was not run is right.
        (NOT_RUN, replace(right(ELSEWHERE), not_run="no rule gives the sizes"), "unknown"),
        (NOT_RUN, right(ELSEWHERE), "different"),
        (FAILING, OTHER_FAILURE, "differently"),
        (wrong("corrupt"), wrong("corrupt"), SAME),
        (wrong("corrupt"), wrong("corrupt", every=(("another",),)), "as-wrong"),
        (wrong("corrupt"), wrong("corrupt", "in another way", (("another",),)), "differently"),
        (wrong("corrupt"), wrong("crashed", every=(("another",),)), "differently"),
        (wrong("unstable"), wrong("unstable"), SAME),
        # What changes from one export to the next is no difference, what the variations agree on is one.
        (UNSTABLE, ALSO_UNSTABLE, SAME),
        (UNSTABLE, UNSTABLE_ELSEWHERE, "as-wrong"),
        (PLAIN, right(OUTSIDE), "outside"),
        (PLAIN, right(MEMORY), "memory"),
        (PLAIN, right(BYTES), "bytes"),
        (PLAIN, right(ELSEWHERE, used=0.5), "inexact"),
        (right(recorded(CELL), sqnr=40.0, used=0.5), right(ELSEWHERE, sqnr=39.0, used=0.5), "different"),
        (PLAIN, right(ELSEWHERE), "different"),
        (EQUAL, right(FEWER_EQUAL), "inexact"),
        (right(FEWER_EQUAL), EQUAL, "different"),
        (PLAIN, right(FEWER_BYTES), "better"),
        (right(MEMORY), PLAIN, "better"),
        (wrong("corrupt"), PLAIN, "better"),
        (wrong("unstable"), wrong("corrupt"), "better"),
        (FAILING, PLAIN, "better"),
        # What is worse in one way and better in another is what it is worst in.
        (right(MEMORY), right(BYTES), "bytes"),
        (right(MEMORY), right(OUTSIDE), "outside"),
    ],
    ids=itertools.count(),
)
def test_a_cell_is_of_the_worst_kind_that_fits(base: Made, head: Made, kind: str) -> None:
    assert kind_of(base, head) == kind


def test_a_method_without_a_reference_is_compared_too() -> None:
    release = releases.load().release("1.4.1")
    scaled = replace(lowered(), unchecked=("output0_scale",))
    base, other = (
        Made.from_outcomes(outcomes(*2 * [each]), release)
        for each in (scaled, replace(scaled, graph=scaled.graph.replace("x", "y")))
    )
    assert base.verdict.name == other.verdict.name == "new"
    assert kind_of(base, base) == SAME != kind_of(base, other)


def test_a_line_says_what_it_was_and_what_it_is(snapshot: SnapshotAssertion) -> None:
    pairs = (
        (PLAIN, wrong("corrupt", "output 0 differs")),
        (wrong("unstable", "two digests"), PLAIN),
        (PLAIN, right(MEMORY)),
        (PLAIN, right(ELSEWHERE, used=0.5)),
        (PLAIN, NOT_RUN),
        (EQUAL, right(FEWER_EQUAL)),
        (wrong("corrupt"), wrong("corrupt", every=(("another",),))),
    )
    assert screen(itertools.starmap(shown, pairs)) == snapshot


def test_what_fails_on_both_sides_is_no_arrow_to_stable(snapshot: SnapshotAssertion) -> None:
    failing = replace(FAILING, failure=Fails("ValueError", "no", stage="lower"))
    pairs = (
        (failing, replace(failing, verdict=verdict("stable", cell=CELL))),
        (failing, replace(OTHER_FAILURE, failure=Fails("ValueError", "never", stage="lower"))),
        (wrong("corrupt"), wrong("crashed")),
        (PLAIN, failing),
        (failing, PLAIN),
    )
    assert screen(itertools.starmap(shown, pairs)) == snapshot


def test_what_does_not_repeat_says_under_how_many_variations_the_other_side_does(
    snapshot: SnapshotAssertion,
) -> None:
    four = replace(PLAIN, variations=4)
    pairs = ((four, TOSSED), (four, wrong("unstable")), (TOSSED, four))
    assert screen(itertools.starmap(shown, pairs)) == snapshot


def test_cells_come_by_kind_and_then_by_how_much_there_is_more() -> None:
    twice = right(edited("pte", "non_const_buffer_sizes = [0, 240]", "non_const_buffer_sizes = [0, 480]"))
    cells = {"more": right(MEMORY), "twice": twice, "outside": right(OUTSIDE), "wrong": wrong("corrupt")}
    compared = [
        Compared(Cell("tosa-fp", name), kind_of(PLAIN, made), PLAIN, made) for name, made in cells.items()
    ]
    assert [each.cell.case for each in page.largest_first(compared)] == ["wrong", "outside", "twice", "more"]


def test_what_may_be_allowed_is_a_kind() -> None:
    assert set(ALLOWED.values()) - {UNREACHED} <= set(KINDS)
    assert page.asked_for("renames, order", "") == (("renamed", "order"), ())
    assert page.asked_for("", "reached,all") == ((), ("reached", "all"))
    for allow, require, why in (
        ("renames,names", "", "--allow: 'names' is not one of renames, order, unreached"),
        ("", "reach", "--require: 'reach' is not one of reached, all"),
        (
            "unreached",
            "all,reached",
            "--allow unreached contradicts --require reached: leave one of them out",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(why)):
            page.asked_for(allow, require)


def test_exports_that_reach_the_limit_are_the_same_however_long_they_took() -> None:
    release = releases.load().release("1.4.1")
    hung = [TimedOut(60.0, 60.0 + more, 61.0 + more, 0.0) for more in (0.1, 0.2)]
    base, head = (Made.from_outcomes(outcomes(*each), release) for each in (hung, hung[::-1]))
    assert base.repeats
    assert kind_of(base, head) == SAME
    slept = [TimedOut(60.0, 0.1, 61.0, 60.1)] * 2
    assert kind_of(base, Made.from_outcomes(outcomes(*slept), release)) == "differently"


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        ((), False),
        ((GAVE_THE_SAME, GAVE_THE_SAME), False),
        ((GAVE_THE_SAME, UNKNOWN), None),
        ((UNKNOWN, DIFFERS, GAVE_THE_SAME), True),
    ],
)
def test_an_export_is_decided_by_the_worst_of_its_functions(
    verdicts: tuple[str, ...], wanted: bool | None
) -> None:
    probes = tuple(ProbedFunction("executorch/pass.py", "run", 1, each) for each in verdicts)
    assert decided(outcome(artifact(lowered(), probes=probes))) is wanted
    # What fails on the head may come to a program with the base.
    assert decided(outcome(artifact(failure(), probes=probes))) is (wanted or None)
    assert decided(outcome(Killed("SIGSEGV"))) is None
