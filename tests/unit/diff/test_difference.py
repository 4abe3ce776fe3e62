"""One difference: each part of it is found once, whoever asks, and needs no payload once it is found."""

from __future__ import annotations

from collections import Counter

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.diff import pair
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.payloads import Differences, compare
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.outline import Outline
from executorch_goldens.goldens.record import Record
from tests import GOLDENS


def recorded(release: str) -> Record:
    record = golden.read(golden.file_of(GOLDENS / release, Cell("tosa-int", "five-delegates")))
    return record


def test_payloads_are_compared_once_and_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: Counter[tuple[str, str]] = Counter()

    def counted(before: Outline, after: Outline) -> Differences:
        compared[before.text, after.text] += 1
        return compare(before, after)

    monkeypatch.setattr(pair, "compare", counted)
    found = Difference(recorded("1.1.0"), recorded("1.5.1"))
    first = asked(found)
    assert len(compared) > 1
    assert {*compared.values()} == {1}
    found.forget()
    for side in (found.before, found.after):
        monkeypatch.setattr(side.outlines, "read", lambda text: pytest.fail("it is read again"))
    assert asked(found) == first
    assert {*compared.values()} == {1}


def asked(found: Difference) -> list[object]:
    """Return what judging, a cause and a review ask."""
    lines = [*found.lines(), *found.directions()]
    return [
        found.differing,
        found.names_alone,
        found.likeness,
        lines,
        found.edits,
        found.quantities,
        found.in_digest,
    ]
