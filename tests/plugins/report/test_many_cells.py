"""A report of many cells: what is held of each, and what is not done twice."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import Member
from executorch_goldens.diff.graphs import Pairing
from executorch_goldens.diff.operators import rows
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.record import Record
from executorch_goldens.settings import config
from executorch_goldens_plugins.report import cell, document, gathering
from executorch_goldens_plugins.report.operators import listings
from tests import DATA, REPOSITORY

STOCK = DATA / "report_results" / "stock"


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> gathering.Gathered:
    monkeypatch.chdir(REPOSITORY)
    return gathering.gather([STOCK], REPOSITORY / "goldens", config.load())


def test_a_page_is_made_when_its_turn_comes_and_is_gone_before_the_next(
    gathered: gathering.Gathered, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[Any]] = []
    make = cell.page

    def page(*words: Any) -> Any:
        assert [each for each in made if each() is not None] == []
        shown = make(*words)
        made.append(weakref.ref(shown))
        return shown

    monkeypatch.setattr(cell, "page", page)
    # What is held by references in a circle, the collector would let go sooner or later.
    gc.collect()
    gc.disable()
    try:
        before = [len(made) for piece in document.document(gathered) if "page-" in piece]
    finally:
        gc.enable()
    # Nothing is made before its piece is asked for.
    assert sorted({*before}) == [*range(len(made) + 1)]
    assert len(made) > 3
    assert [each for each in made if each() is not None] == []


def test_texts_of_cells_are_not_held(gathered: gathering.Gathered) -> None:
    members = {each.proposal.cell: each for group in gathered.groups for each in group.members}
    member = members.pop(Cell("tosa-int", "cat-h-v"))
    texts = {text for side in sides(gathered.whole(member)) for text in side.sections.values()}
    assert len(texts) > 5
    # Those that were read last are.
    assert texts & set(texts_of(gathered))
    others = [side for each in members.values() for side in sides(gathered.whole(each))]
    assert len(others) > 1
    assert all(side.sections for side in others)
    held = set(texts_of(gathered))
    assert member.proposal.blamed in held
    assert held & texts == set()


def sides(member: Member) -> list[Record]:
    return [side for side in (member.before, member.after) if side is not None]


def texts_of(root: object) -> Iterator[str]:
    """Yield every text that an object refers to, however far."""
    seen, left = {id(root)}, [root]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        for other in gc.get_referents(each):
            if id(other) not in seen and not isinstance(other, type | ModuleType | FunctionType):
                seen.add(id(other))
                left.append(other)


def test_a_cell_that_changes_while_the_report_is_written_is_an_error_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    shutil.copytree(STOCK, tmp_path / "results")
    found = gathering.gather([tmp_path / "results"], REPOSITORY / "goldens", config.load())
    kept = tmp_path / "results" / "1.2.0" / "tosa-int" / "cat-h-v"
    made = next(kept.glob("seed*-heap*")) / "golden.txt"
    record = golden.read(made)
    golden.write(made, Record({**record.facts, "numerics": "none"}, record.sections))
    (tmp_path / "report.html").write_text("of before")
    with pytest.raises(
        UsageError, match=r"tosa-int/cat-h-v/.*golden.txt changed while the report was written"
    ):
        document.write(tmp_path / "report.html", document.document(found))
    assert (tmp_path / "report.html").read_text() == "of before"
    assert not list(tmp_path.glob("*.new~"))


def test_operators_that_both_artifacts_have_are_those_that_are_found_by_matching() -> None:
    for at in ("tosa-int/five-delegates", "tosa-fp/condition", "xnnpack-int8/ds-cnn"):
        texts = golden.read(REPOSITORY / "goldens" / "1.4.1" / f"{at}.txt")
        assert texts is not None
        listed = list(listings(texts, texts))
        assert listed
        for listing in listed:
            pair = Pairing(listing.after, listing.after)
            assert list(rows(pair)) == listing.rows
            assert pair.names == listing.names
            assert listing.renamed == 0
