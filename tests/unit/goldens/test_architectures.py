"""A golden is of its content: the same artifact on another architecture is no change, and every change is one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import STAGE, Lowered, PassRun
from executorch_goldens.decode import decode
from executorch_goldens.goldens import equality, golden, rendering
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import MANIFEST, TRACE, Record
from executorch_goldens.goldens.rendering import MadeWith
from executorch_goldens.judging.comparison import compare
from executorch_goldens.settings.releases import load
from tests.support import making
from tests.support.decoding.other_order import other_order
from tests.support.decoding.payloads import FIXTURES, SCHEMAS
from tests.support.making import STACK, artifact, tosa, with_texts
from tests.support.screens import of_verdict

#: A program with a convolution and a clamp, of ExecuTorch 1.5.1.
PROGRAM = (FIXTURES / "1.5.1/tosa-fp.pte").read_bytes()
PAYLOAD = bytes(decode(PROGRAM, schemas=SCHEMAS).delegates[0].payload)
OTHER = other_order(SCHEMAS.load("tosa"), PAYLOAD)
VARIATIONS = ("seed0-heap0", "seed4-heap1")


def lowered(payload: bytes = PAYLOAD, program: bytes = PROGRAM) -> Lowered:
    return making.lowered("graph\n", tosa(payload), pte=program.replace(PAYLOAD, payload))


def rendered(
    made: Lowered, architecture: str, variations: tuple[str, ...] = VARIATIONS, stages: tuple[str, ...] = ()
) -> dict[str, str]:
    origin = MadeWith(STACK, variations, Numerics(), architecture)
    runs = tuple(PassRun(STAGE, name, "0123456789ab", True) for name in stages)
    return rendering.render(artifact(made, *runs), origin)


HERE = rendered(lowered(), golden.FIRST)
THERE = rendered(lowered(OTHER), "aarch64")


def said(texts: Record, name: str) -> str | None:
    return texts.facts.get(name)


def lacking(texts: Record) -> dict[str, str]:
    """Return a golden as it was recorded before there were layouts."""
    lines = texts.texts()[MANIFEST].splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.startswith("layout"))
    return with_texts(texts, {MANIFEST: kept})


def test_the_order_of_an_attributes_vectors_is_no_change_on_another_architecture() -> None:
    assert OTHER != PAYLOAD
    assert said(HERE, golden.DIGESTS) is None
    assert said(THERE, golden.DIGESTS) == "aarch64"
    assert equality.equal(HERE, THERE)
    assert equality.equal(lacking(HERE), THERE)


def test_bytes_are_compared_on_one_architecture() -> None:
    for architecture in (golden.FIRST, "aarch64"):
        one, other = (rendered(made, architecture) for made in (lowered(), lowered(OTHER)))
        assert not equality.equal(one, other)
        assert not equality.equal(lacking(one), lacking(other))


def _longer() -> Lowered:
    return lowered(OTHER, PROGRAM + b"\0" * 8)


def _renamed() -> Lowered:
    return replace(lowered(OTHER), delegates=(replace(lowered(OTHER).delegates[0], name="lowered_module_1"),))


def _regraphed() -> Lowered:
    return replace(lowered(OTHER), graph="another\n")


def _reattributed() -> Lowered:
    """A different pad, in its own bytes: four zeros become ones."""
    vector = bytes([4, 0, 0, 0]) + bytes(16)
    at = OTHER.index(vector)
    return lowered(OTHER[: at + 4] + b"\1" + OTHER[at + 5 :])


def _moved() -> Lowered:
    """Another order of fields that the serializer leaves no choice in."""
    return lowered(other_order(SCHEMAS.load("tosa"), OTHER, of="TosaTensor"))


def _around() -> Lowered:
    """A byte of padding of the program."""
    at = PROGRAM.index(PAYLOAD) - 1
    assert PROGRAM[at] == 0
    return lowered(OTHER, PROGRAM[:at] + b"\1" + PROGRAM[at + 1 :])


@pytest.mark.parametrize("change", [_longer, _renamed, _regraphed, _reattributed, _moved, _around])
def test_every_other_change_is_one_on_another_architecture(change: object) -> None:
    assert callable(change)
    made = rendered(change(), "aarch64")
    assert not equality.equal(HERE, made)


def test_confirming_on_another_architecture_adds_its_digests_and_then_bytes_are_compared_there() -> None:
    both = equality.confirmed(HERE, THERE)
    assert equality.digests(both) == {**equality.digests(HERE), **equality.digests(THERE)}
    assert both.facts | {"contents": ""} == HERE.facts | {
        "digests aarch64": " ".join(equality.digests(THERE)["aarch64"]),
        "contents": "",
    }
    assert equality.equal(both, HERE)
    assert equality.equal(both, THERE)
    assert not equality.equal(both, rendered(lowered(), "aarch64"))
    assert equality.confirmed(both, THERE) == equality.confirmed(both, HERE) == both


def test_digests_that_hold_on_both_architectures_are_there_once() -> None:
    both = equality.confirmed(HERE, rendered(lowered(), "aarch64"))
    assert said(both, golden.DIGESTS) == "x86-64 aarch64"
    assert said(both, "digests aarch64") is None
    assert not equality.equal(both, THERE)


def test_a_golden_of_before_gets_its_layout_when_it_is_confirmed() -> None:
    before = lacking(HERE)
    assert equality.missing(before, HERE) == (golden.LAYOUT,)
    assert equality.confirmed(before, HERE) == HERE
    assert equality.missing(HERE, HERE) == ()
    assert equality.missing(rendered(lowered(), golden.FIRST), lacking(HERE)) == ()


def test_a_trace_is_not_taken_over_for_the_bytes_of_an_architecture() -> None:
    one = rendered(lowered(), golden.FIRST, stages=("exported",))
    trace = "stage: exported 0123456789ab\nstage: delegate_0 aaaaaaaaaaaa\nstage: pte bbbbbbbbbbbb\n"
    made = rendered(lowered(OTHER), "aarch64", stages=("exported", "delegate_0", "pte"))
    both = equality.confirmed(one, made)
    assert both.sections[TRACE] == one.sections[TRACE]
    assert [equality.makes_bytes(run) for run in Record({}, {TRACE: trace}).trace] == [False, True, True]


def test_a_change_is_not_blamed_on_payloads_that_differ_by_architecture(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """The golden was made here; on another architecture its payload has other bytes, and a later pass is to blame."""
    reviewed = rendered(lowered(), golden.FIRST, stages=("exported", "delegate_0", "lowered"))
    runs = (
        PassRun(STAGE, "exported", "0123456789ab", True),
        PassRun(STAGE, "delegate_0", "aaaaaaaaaaaa", True),
        PassRun(STAGE, "lowered", "bbbbbbbbbbbb", True),
    )
    regraphed = making.outcome(artifact(_regraphed(), *runs))
    monkeypatch.setattr(rendering, "here", lambda: "aarch64")
    release = load().release("1.4.1")
    judged = compare(regraphed.cell, [regraphed], reviewed, release).verdict
    assert judged.name == "changed"
    assert judged.divergence.name == "lowered"
    assert of_verdict(judged) == snapshot
