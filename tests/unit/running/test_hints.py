"""Advice in the messages of corrupt cells."""

from __future__ import annotations

import math
import tomllib

import pytest

from executorch_goldens import plugins
from executorch_goldens.artifact import Cell
from executorch_goldens.goldens.record import MODEL
from executorch_goldens.judging.divergence import Divergence
from executorch_goldens.judging.rightness import Excess
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.running.hints import unpatched, ways_out
from executorch_goldens.settings import releases

CELL = Cell("tosa-int", "some-case")


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What plugins propose is theirs."""
    monkeypatch.setattr(plugins, "load", dict)


def lines(excess: Excess | None, zoo: bool = True, name: str = "corrupt") -> list[str]:
    return list(ways_out(Verdict(CELL, name, "", excess=excess), "1.4.1", zoo))


SMALL = (
    "more than rounding explains; if the target's own arithmetic does: tosa-int = 0.013 under "
    "[tool.goldens.tolerances] in pyproject.toml, for all its cells"
)


def test_a_small_difference_names_the_place_of_a_tolerance_and_the_number() -> None:
    assert lines(Excess(0.013, ("example", "zeros"), ("drawn",))) == [SMALL]


def test_a_tolerance_is_not_for_what_is_wrong_outside_of_the_delegates() -> None:
    assert lines(Excess(0.013, ("example", "zeros"), ("drawn",), is_outside=True)) == []


@pytest.mark.parametrize("target", ["tosa-int", "tosa-fp+int"])
def test_the_lines_that_a_message_gives_can_be_written_where_it_says(target: str) -> None:
    judged = Verdict(Cell(target, "some-case"), "corrupt", "", excess=Excess(3e-05, ("example",), ()))
    line = next(ways_out(judged, "1.4.1", zoo=True))
    assert tomllib.loads(line.partition(" does: ")[2].partition(" under")[0]) == {target: 3e-05}


@pytest.mark.parametrize(
    ("bound", "size"),
    [(0.8, "0.8 of the largest value"), (math.inf, "no finite difference")],
)
def test_a_large_difference_is_not_to_be_tolerated(bound: float, size: str) -> None:
    assert lines(Excess(bound, ("example",), ())) == [
        f"not rounding: {size}; do not widen a tolerance for it",
    ]


@pytest.mark.parametrize(
    ("right", "kept"), [(("example",), '("example",)'), (("example", "drawn"), '("example", "drawn")')]
)
def test_a_cell_that_is_right_on_the_example_can_be_run_on_less(right: tuple[str, ...], kept: str) -> None:
    _, line = lines(Excess(0.8, ("zeros", "extremes"), right))
    assert line == f"if the model is not meant for zeros, extremes: run_on={kept} in its @case"


def test_a_test_that_exports_has_no_case_to_write_to() -> None:
    assert lines(Excess(0.013, ("zeros",), ("example",)), zoo=False) == [SMALL]
    assert lines(None, zoo=False) == []


@pytest.mark.parametrize("name", ["unstable", "failed", "stable", "new"])
def test_other_verdicts_have_other_ways_out(name: str) -> None:
    assert lines(None, name=name) == []


#: Of what upstream's serializer says of #19152.
ALIASED = "message: Output node 'aten_permute_copy_default' is already in the inputs."
CHANGED = "lowering changed pointwise.weight of the model that it was given"


def named(release: str, judged: Verdict, asked: str = "none", applied: tuple[str, ...] = ()) -> str:
    """Return the hint about patches in a message; empty for none."""
    return "".join(unpatched(judged, releases.load().release(release), asked, applied))


@pytest.mark.parametrize(
    ("release", "judged", "patches"),
    [
        ("1.4.1", Verdict(Cell("tosa-fp", "a"), "order-only", ""), "partition-order (#19045)"),
        ("1.5.1", Verdict(Cell("tosa-int", "a"), "unstable", ""), "partition-order (#19045)"),
        (
            "1.2.0",
            Verdict(Cell("tosa-int", "a"), "corrupt", "output 0"),
            "unique-outputs (#18866), list-qparams (#18971)",
        ),
        (
            "1.4.1",
            Verdict(Cell("tosa-int", "a"), "corrupt", CHANGED),
            "folded-scales (a scale that is folded into a convolution is not written to the model that was given)",
        ),
        (
            "1.4.1",
            Verdict(Cell("xnnpack-fp32", "a"), "failed", "lowering now fails", (ALIASED,)),
            "output-aliases (#19152)",
        ),
    ],
)
def test_what_a_declared_patch_is_for_names_it_its_issue_and_the_line_that_applies_it(
    release: str, judged: Verdict, patches: str
) -> None:
    assert named(release, judged) == (
        f'patches: exported without {patches}, which may be why: patches = "auto" under [tool.goldens] in '
        f"pyproject.toml applies the patches of {release}, or pass --patches auto"
    )


@pytest.mark.parametrize(
    "judged",
    [
        Verdict(Cell("xnnpack-fp32", "a"), "order-only", ""),
        Verdict(Cell("tosa-fp", "a"), "changed", ""),
        Verdict(Cell("tosa-fp", "a"), "corrupt", "output 0"),
        Verdict(Cell("xnnpack-fp32", "a"), "corrupt", CHANGED),
        Verdict(Cell("xnnpack-fp32", "a"), "failed", "lowering now fails", ("message: out of range",)),
        Verdict(Cell("tosa-fp", "a"), "unstable", "", delegates=("TOSABackend",)),
        Verdict(Cell("built", "a"), "unstable", "", delegates=("XnnpackBackend", "XnnpackBackend")),
        Verdict(
            Cell("built", "a"),
            "unstable",
            "",
            delegates=("TOSABackend", "TOSABackend"),
            divergence=Divergence("the case is the cause", MODEL),
        ),
    ],
    ids=[
        *("other-backend", "other-verdict", "other-reason", "other-pass", "other-failure"),
        *("one-delegate", "other-delegates", "other-weights"),
    ],
)
def test_what_no_declared_patch_is_for_names_none(judged: Verdict) -> None:
    assert not named("1.4.1", judged)


def test_a_patch_that_is_applied_or_was_left_out_of_auto_is_no_way_out() -> None:
    judged = Verdict(Cell("tosa-fp", "a"), "unstable", "")
    assert not named("1.4.1", judged, "partition-order", ("partition-order",))
    assert not named("1.4.1", judged, "auto")
    assert named("1.4.1", judged, "folded-scales", ("folded-scales",))
    assert named("1.4.1", Verdict(Cell("built", "a"), "unstable", "", delegates=("TOSABackend",) * 2))
