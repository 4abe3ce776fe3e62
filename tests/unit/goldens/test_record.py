"""The file of a golden: what its writer wrote is what its reader reads."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.record import Record, RecordError
from tests import GOLDENS

ROOTS = sorted(path.parent for path in GOLDENS.rglob(golden.RELEASE))

LINES = strategies.text(
    strategies.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12
)
WORDS = strategies.from_regex(r"[a-z][a-z_.0-9]{0,8}", fullmatch=True)
#: Lines that are nearly headers, facts, markers of conflicts or escaped.
TRICKY = strategies.sampled_from(
    [
        "== graph ==",
        "\\\\== graph ==",
        "\\\\\\\\== x ==",
        "== ",
        "golden: 3",
        "contents: sha256 0",
        "=======",
        "\\\\",
        "",
        " == x ==",
        "a\r",
    ]
)
TEXTS = strategies.builds(
    lambda lines, end: "\n".join(lines) + end,
    strategies.lists(strategies.one_of(LINES, TRICKY), max_size=6),
    strategies.sampled_from(["", "\n", "\n\n"]),
)
FACTS = strategies.dictionaries(
    WORDS.filter(lambda name: name not in ("golden", "contents", "without")), LINES, max_size=5
)
RECORDS = strategies.builds(
    lambda facts, sections: Record.in_order(facts.items(), sections),
    FACTS,
    strategies.dictionaries(WORDS, TEXTS, max_size=4),
)


@hypothesis.given(RECORDS, FACTS)
def test_any_record_is_read_back_and_written_the_same_whatever_a_release_shares(
    record: Record, shared: dict[str, str]
) -> None:
    text = record.text(shared)
    read = Record.parse(text, shared)
    assert (read, read.text(shared)) == (record, text)
    assert [*read.sections] == [*record.sections]
    # Grouped by release or not, it is the same golden.
    assert Record.parse(record.text()).digest == record.digest


@hypothesis.given(RECORDS, RECORDS)
def test_different_records_have_different_files_and_digests(one: Record, other: Record) -> None:
    assert (one == other) == (one.text() == other.text()) == (one.digest == other.digest)


@hypothesis.given(RECORDS, strategies.data())
def test_a_file_with_another_character_is_refused_with_a_line(
    record: Record, data: strategies.DataObject
) -> None:
    text = record.text()
    at = data.draw(strategies.integers(text.index("\n"), len(text) - 1))
    hypothesis.assume(text[at] != "#")
    with pytest.raises(RecordError, match=r"line \d+: "):
        Record.parse(f"{text[:at]}#{text[at + 1 :]}")


@pytest.mark.parametrize("folder", ROOTS, ids=lambda folder: folder.relative_to(GOLDENS).as_posix())
def test_every_golden_there_is_is_written_as_it_was_read(folder: Path) -> None:
    shared = golden.shared(folder)
    files = sorted(folder.glob(f"*/*{golden.SUFFIX}"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert Record.parse(text, shared).text(shared) == text, file
