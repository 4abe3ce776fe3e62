"""Compact goldens: proposals of their cells, the texts on both sides, known defects by cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell, PassRun
from executorch_goldens.goldens import equality, golden, parts, rendering, roots
from executorch_goldens.goldens.compact import GONE, OTHER, compact, recorded_runs
from executorch_goldens.judging import known, verdict
from executorch_goldens.results.proposals import Proposal
from executorch_goldens.review import listing
from executorch_goldens.review.groups import BARRED, PENDING, seen
from tests import REPOSITORY
from tests.commands.review.conftest import Printed, cells, found, path_of, titled
from tests.conftest import Artifacts
from tests.support.making import wrong
from tests.support.runner import Runner

#: Whole runs over compact goldens, which only the lab writes.
pytestmark = pytest.mark.slow

RUN = ("--variations", "0,4", "--models", "zoo_two", "--tier", "full", "--explain", "off")
UPDATE = "--snapshot-update"

Reviews = Callable[..., Printed]


@pytest.fixture
def compacted(
    runner: Runner, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Runner:
    """A runner over a compact root, whose last run found a constant that differs, and a cell that is wrong."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(REPOSITORY)
    runner.zoo("zoo_two", "alpha", "beta")
    runner.goldens.mkdir()
    (runner.goldens / roots.ZOO).write_text("format: 2\nmodels: zoo_two\nform: compact\n")
    constants, steady = artifacts["hashed-constant"], artifacts["steady"][0]
    runner.answers({"alpha": constants[0], "*": steady})
    assert runner(*RUN, UPDATE).code == 0
    runner.answers({"alpha": constants[1], "tosa-fp/beta": wrong(steady), "*": steady})
    assert runner(*RUN).code == 1
    return runner


@pytest.fixture
def reviewing(compacted: Runner, capsys: pytest.CaptureFixture[str]) -> Reviews:
    """``goldens review`` over the results of `compacted`."""

    def call(*words: str) -> Printed:
        folders = (f"--goldens={compacted.goldens}", f"--sweeps={compacted.folder / 'sweeps'}")
        code = cli.main(["review", *folders, *words])
        printed = capsys.readouterr()
        return Printed(code, printed.out, printed.err)

    return call


def test_a_changed_compact_cell_is_proposed_and_accepted_with_those_of_its_cause(
    compacted: Runner, reviewing: Reviews, artifacts: Artifacts
) -> None:
    changed = [group for group in found(compacted).values() if group.state == PENDING]
    assert {cell for group in changed for cell in cells(group)} == {
        f"{target}/alpha" for target in ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")
    }
    assert all(golden.is_compact(member.proposed or {}) for group in changed for member in group.members)
    assert (
        reviewing("--accept", changed[0].name, *(f"--accept={each.name}" for each in changed[1:])).code == 0
    )
    assert {path.suffix for path in compacted.root.iterdir()} == {".txt"}
    finished = compacted(*RUN)
    assert {cell for cell, verdict in finished.verdicts().items() if verdict != "stable"} == {"tosa-fp/beta"}


def test_texts_that_only_digests_are_known_of_are_said_to_be_so(compacted: Runner) -> None:
    """No run of `compacted` uses a cache, so nothing was kept."""
    (member,) = (
        member
        for group in found(compacted).values()
        for member in group.members
        if str(member.proposal.cell) == "tosa-fp/alpha"
    )
    shown = list(listing.difference(member))
    assert shown[0].startswith("the golden's texts are known by their digests alone; those of now are in ")
    assert any(line.strip().startswith("+layout: sha256 ") for line in shown), shown


def test_the_whole_texts_are_compared_where_an_export_of_the_golden_is_kept(
    compacted: Runner, artifacts: Artifacts
) -> None:
    now = Proposal.read(path_of(compacted, "tosa-fp/alpha"))
    kept = now.made()[0]
    reviewed = golden.read(golden.directory(compacted.root, now.cell))
    assert reviewed is not None
    # What was recorded, whole: of the same artifact in a root whose goldens are not compact.
    (compacted.goldens / roots.ZOO).unlink()
    compacted.answers({"*": artifacts["hashed-constant"][0]})
    other = replace(compacted, folder=compacted.folder)
    (compacted.folder / "whole").mkdir()
    finished = other(*RUN, UPDATE, "--cell=tosa-fp/alpha", f"--goldens={compacted.folder / 'whole'}")
    assert finished.code == 0, finished.output
    whole = golden.read(compacted.folder / "whole" / compacted.release / "tosa-fp" / "alpha")
    assert whole is not None
    now.write(compact(kept), whole)
    for variation in ("seed0-heap0",):
        golden.write(now.folder / variation, kept)
    member = seen(replace(now, content=golden.digest(compact(kept))), compacted.goldens)
    assert (member.before, member.after) == (whole, kept)
    assert any("constant" in line for line in listing.difference(member))
    # Texts of another golden than the one that is there are none of it.
    now.write(compact(kept), kept)
    member = seen(replace(now, content=golden.digest(compact(kept))), compacted.goldens)
    assert member.before == reviewed


def test_a_rejected_cause_is_known_in_the_root_and_the_next_run_accepts_it_and_no_other(
    compacted: Runner, reviewing: Reviews, artifacts: Artifacts
) -> None:
    group = titled(compacted, "wrong values in tosa-fp/beta")
    assert group.state == BARRED
    said = reviewing("--reject", group.name, "--reason", "a table of codes", "--known")
    assert said.code == 0, said
    (defect,) = known.read(compacted.root, compacted.release).values()
    assert (defect.verdict, defect.why) == ("corrupt", "a table of codes")
    finished = compacted(*RUN, "--cell=tosa-fp/beta", "-v")
    assert finished.code == 0, finished.output
    assert "known defect: tosa-fp/beta is corrupt: a table of codes" in finished.output
    compacted.answers({"*": artifacts["does-not-lower"][0]})
    assert compacted(*RUN, "--cell=tosa-fp/beta").code == 1
    # Wrong with the same verdict, for something else.
    steady = artifacts["steady"][0]
    outputs = replace(
        steady.result.samples[0], outputs=tuple(each for each in steady.result.samples[0].outputs[:0])
    )
    fewer = replace(steady, result=replace(steady.result, samples=(outputs, *steady.result.samples[1:])))
    compacted.answers({"*": fewer})
    finished = compacted(*RUN, "--cell=tosa-fp/beta", "-v")
    assert finished.code == 1
    assert "is known for something else, corrupt: " in finished.output


def test_what_is_known_to_be_wrong_and_is_right_is_accepted_by_a_review(
    compacted: Runner, reviewing: Reviews, artifacts: Artifacts
) -> None:
    assert compacted(*RUN, UPDATE).code == 0
    assert list(known.read(compacted.root, compacted.release)) == ["tosa-fp/beta"]
    compacted.answers({"alpha": artifacts["hashed-constant"][1], "*": artifacts["steady"][0]})
    finished = compacted(*RUN)
    assert {cell for cell, verdict in finished.verdicts().items() if verdict != "stable"} == {"tosa-fp/beta"}
    (group,) = found(compacted).values()
    assert reviewing("--accept", group.name).code == 0
    assert not known.read(compacted.root, compacted.release)
    assert compacted(*RUN).code == 0


def test_the_trace_in_short_names_the_passes_of_the_run_at_hand(compacted: Runner) -> None:
    reviewed = golden.read(golden.directory(compacted.root, Cell("xnnpack-fp32", "beta")))
    assert reviewed is not None
    whole = Proposal.read(path_of(compacted, "xnnpack-fp32/alpha")).made()[0]
    runs = list(rendering.read_trace(whole[golden.TRACE]))
    assert recorded_runs(compact(whole), runs) == runs
    first, *others = runs
    changed = replace(first, fingerprint="000000000000")
    was = PassRun(first.pipeline, first.name, OTHER, True)
    assert recorded_runs(compact(whole), [changed, *others]) == [was, *others]
    assert recorded_runs(compact(whole), others) == [PassRun("", GONE, OTHER, True), *others]
    without = golden.unsealed(reviewed)
    fields = [
        line for line in without[golden.MANIFEST].splitlines(keepends=True) if golden.PASSES not in line
    ]
    assert recorded_runs(golden.sealed({**without, golden.MANIFEST: "".join(fields)}), runs) is None


GRAPH = """graph():
    %x0_0 : [num_users=1] = placeholder[target=x0_0]
    %x1_0 : [num_users=1] = placeholder[target=x1_0]
    %aten_abs_default : [num_users=1] = call_function[target=executorch.exir.dialects.edge._ops.aten.abs.default]\
(args = (%x0_0,), kwargs = {})
    %aten_neg_default : [num_users=1] = call_function[target=executorch.exir.dialects.edge._ops.aten.neg.default]\
(args = (%x1_0,), kwargs = {})
    return (aten_abs_default, aten_neg_default)
"""


def test_the_line_of_a_part_follows_it_alone(artifacts: Artifacts) -> None:
    steady = artifacts["steady"][0].result
    sheet = replace(steady, graph=GRAPH, samples=(), delegates=(), parts=(("abs-0", 1), ("neg-0", 1)))
    one, two = parts.lines(sheet, {})
    assert one.startswith("abs-0: graph ")
    assert one.endswith("; delegate -; outside: aten.abs.default (1); not run")
    # A further node that nothing of the second part reads, and names that are numbered otherwise.
    more = GRAPH.replace("%x1_0,", "%x1_0, 7,").replace("neg_default", "neg_default_3")
    again, other = parts.lines(replace(sheet, graph=more), {})
    assert (again, other.partition(": ")[0]) == (one, "neg-0")
    assert other != two
    renamed = list(parts.lines(replace(sheet, graph=GRAPH.replace("neg_default", "neg_default_3")), {}))
    assert renamed == [one, two]
    # Outputs that are no part's: nothing is said.
    assert not list(parts.lines(replace(sheet, parts=(("abs-0", 1),)), {}))


def test_a_golden_that_was_recorded_before_parts_had_lines_is_equal_and_lacks_them(
    compacted: Runner,
) -> None:
    whole = Proposal.read(path_of(compacted, "tosa-fp/alpha")).made()[0]
    lines = {
        **golden.unsealed(compact(whole)),
        golden.PARTS: "abs-0: graph 1; delegate -; outside: none; right\n",
    }
    made = golden.sealed(lines)
    assert equality.equal(compact(whole), made)
    assert equality.missing(compact(whole), made) == (golden.PARTS,)
    assert equality.confirmed(compact(whole), made) == made
    other = golden.sealed({**lines, golden.PARTS: lines[golden.PARTS].replace("right", "wrong")})
    assert not equality.equal(made, other)
    changed = verdict.changed(Cell("tosa-fp", "sheet"), made, other)
    assert changed.detail[0] == "parts that differ, of 1: abs-0"
