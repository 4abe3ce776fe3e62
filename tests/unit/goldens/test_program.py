"""A program in a golden: nothing of its whole text may differ unseen, and what a person reads is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from executorch_goldens.diff.changes import IN_DIGEST, DigestChanged
from executorch_goldens.diff.difference import Difference
from executorch_goldens.diff.payloads import compare
from executorch_goldens.diff.texts import difference
from executorch_goldens.goldens import golden, program
from executorch_goldens.goldens.outline import outline
from executorch_goldens.goldens.record import GRAPH, PROGRAM, Record
from tests.support.decoding.payloads import load

PROGRAMS = pytest.mark.parametrize("name", ["complex", "portable", "tosa-fp", "xnnpack-int4", "xnnpack-int8"])
FACTS = {"variations": "x"}


def whole_text(name: str) -> str:
    return load(f"1.5.1/{name}.pte").text(delegates=False)


def recorded(whole: str) -> Record:
    return Record(FACTS, {GRAPH: "", PROGRAM: program.section(whole)}, whole=whole)


@PROGRAMS
def test_every_line_of_the_whole_text_is_compared(name: str) -> None:
    whole = whole_text(name)
    section, lines = program.section(whole), whole.splitlines(keepends=True)
    assert program.is_of(whole, section)
    for at, line in enumerate(lines):
        for other in (f"{line.rstrip()}1\n", "", line * 2):
            changed = "".join([*lines[:at], other, *lines[at + 1 :]])
            assert program.section(changed) != section, line
            assert not program.is_of(changed, section)


@PROGRAMS
def test_sizes_and_offsets_alone_are_told_apart_from_the_rest(name: str) -> None:
    whole = whole_text(name)
    section, lines = program.section(whole), whole.splitlines(keepends=True)
    sizes = re.compile(r"pte |header\.|segments\[\d+\]\.(size|offset) |  size ")
    for at, line in enumerate(lines):
        other = re.sub(r"\d+(?=\D*$)", "987", line)
        changed = program.section("".join([*lines[:at], other, *lines[at + 1 :]]))
        assert program.same_but_sizes(changed, section) == (other == line or bool(sizes.match(line))), line


@PROGRAMS
def test_a_section_has_what_a_person_reads_of_the_program(name: str) -> None:
    decoded = load(f"1.5.1/{name}.pte")
    section = program.section(decoded.text())
    # Whether or not the payloads of delegates are written out.
    assert section == program.section(whole_text(name))
    read = outline(section)
    assert len(section.splitlines()) < len(whole_text(name).splitlines()) * 0.6
    assert (read.kind, read.size) == ("pte", str(decoded.size))
    assert {each.strip('"') for each in read.blobs} == {*decoded.blobs}
    for made, shown in zip(decoded.graphs, read.graphs, strict=True):
        assert [each.type for each in shown.operators] == [each.type for each in made.operators]
        for ours, theirs in ((shown.inputs, made.inputs), (shown.outputs, made.outputs)):
            assert [shown.values[each].type for each in ours] == [made.values[each].type for each in theirs]
        held = [each.contents.sha256 for each in shown.values.values() if each.contents is not None]
        constants = (each.constant for each in made.values.values())
        assert held == [each.sha256()[:16] for each in constants if each is not None]
    for stub, of_stub in zip(decoded.delegates, read.delegates, strict=True):
        assert (of_stub.name, of_stub.backend, of_stub.attributes["size"]) == (
            stub.name,
            stub.backend,
            str(len(stub.payload)),
        )


def test_one_more_value_renumbers_nothing() -> None:
    whole = whole_text("portable")
    more = re.sub(r"%(\d+)", lambda number: f"%{int(number[1]) + 1}", whole)
    ours, theirs = (program.section(each).splitlines() for each in (whole, more))
    assert [line for line in ours if line not in theirs] == [ours[1]]


def test_where_the_digest_alone_differs_the_answer_says_so_and_with_both_texts_which_line(
    tmp_path: Path,
) -> None:
    before = whole_text("tosa-fp")
    after = before.replace("memory_offset = 0\n", "memory_offset = 16\n", 1)
    assert after != before
    made = recorded(after)
    golden.write(tmp_path / "before.txt", recorded(before))
    reviewed = golden.read(tmp_path / "before.txt")
    (change,) = compare(reviewed.program, made.program).changes
    found = Difference(reviewed, made)
    assert isinstance(change, DigestChanged)
    assert change.content
    assert found.in_digest
    assert next(change.lines()) in "\n".join(difference(found))
    assert [str(edit) for edit in found.edits] == [f"program: {IN_DIGEST}"]
    found = Difference(recorded(before), made)
    assert "memory_offset 0 -> 16" in "\n".join(difference(found))
    assert not found.in_digest


def test_what_shows_elsewhere_is_not_said_of_the_digest_too() -> None:
    before = whole_text("tosa-fp")
    planned = re.sub(r"non_const_buffer_sizes = .*", "non_const_buffer_sizes = [0, 7]", before)
    (change,) = compare(*(outline(program.section(each)) for each in (before, planned))).changes
    assert "non_const_buffer_sizes" in next(change.lines())
    sized = re.sub(r"header.program_size = .*", "header.program_size = 7", before)
    found = compare(*(outline(program.section(each)) for each in (before, sized)))
    assert (found.verdict, [each.content for each in found.changes]) == ("layout only", [False])


def test_a_run_leaves_the_whole_text_beside_an_artifact_and_only_that_is_read(tmp_path: Path) -> None:
    made, path = recorded(whole_text("tosa-fp")), tmp_path / "golden.txt"
    golden.write(path, made)
    assert golden.read(path).whole is None
    golden.write(path, made, kept=True)
    assert golden.read(path).whole == made.whole
    path.with_suffix(golden.WHOLE).write_text("of another program\n")
    assert golden.read(path).whole is None
