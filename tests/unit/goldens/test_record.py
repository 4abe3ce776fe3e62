"""The file of a golden: what its writer wrote is what its reader reads."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from executorch_goldens.goldens import equality, golden
from executorch_goldens.goldens.operators import OPERATORS
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
#: Sections of which a golden has a table.
LARGE = strategies.dictionaries(
    strategies.sampled_from(["delegate_0.tosa", "delegate_10.xnnpack", "delegate_2.tosa"]),
    strategies.builds(
        lambda numbers: "".join(f"  operator {name}\n" * number for name, number in numbers.items()),
        strategies.dictionaries(WORDS, strategies.integers(1, 400), max_size=3),
    ),
    max_size=3,
)
RECORDS = strategies.builds(
    lambda facts, sections, large: Record.in_order(facts.items(), {**sections, **large}),
    FACTS,
    strategies.dictionaries(WORDS.filter(lambda name: name != OPERATORS), TEXTS, max_size=4),
    LARGE,
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


def test_a_golden_of_many_operators_begins_with_a_table_of_where_they_run() -> None:
    sections = {
        "graph": "%a = call_function[target=operator.getitem](args = ())\n"
        "%b = call_function[target=executorch.exir.dialects.edge._ops.aten.add.Tensor](args = ())\n",
        "delegate_0.tosa": "  operator ADD\n" * 200 + "  operator MUL\n",
        "delegate_1.tosa": "  operator ADD\n" * 98,
    }
    few = Record({}, sections)
    assert "operator" not in few.text().partition("== graph")[0]
    more = Record({}, {**sections, "delegate_1.tosa": sections["delegate_1.tosa"] + "  operator SUB\n"})
    table = more.text().partition("== operators ==\n")[2].partition("== graph")[0]
    assert table.splitlines() == [
        "     all outside       0       1  operator",
        "     301       1     201      99",
        "     298       .     200      98  ADD",
        "       1       .       1       .  MUL",
        "       1       .       .       1  SUB",
        "       1       1       .       .  aten.add.Tensor",
    ]
    with pytest.raises(RecordError, match="table of operators"):
        Record.parse(more.text().replace(table, table.replace("298", "299")))
    with pytest.raises(RecordError, match="table of operators"):
        Record.parse(more.text().replace(f"== operators ==\n{table}", ""))


@pytest.mark.parametrize("folder", ROOTS, ids=lambda folder: folder.relative_to(GOLDENS).as_posix())
def test_every_golden_there_is_is_written_as_it_was_read(folder: Path) -> None:
    shared = golden.shared(folder)
    files = sorted(folder.glob(f"*/*{golden.SUFFIX}"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert Record.parse(text, shared).text(shared) == text, file


def test_a_payload_is_read_once_for_a_record_and_what_is_compared_of_it() -> None:
    record = golden.read(GOLDENS / "1.4.1" / "tosa-int" / "linear.txt")
    (read,) = record.delegates.values()
    assert [*record.delegates.values()] == [read]
    for other in (record, equality.compared(record)):
        assert other.delegates["delegate_0.tosa"] is read
    record.outlines.forget()
    (again,) = record.delegates.values()
    assert again is not read
    assert again == read
