"""Compact goldens: their form, their tables, what is known beside them, and runs over them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from executorch_goldens.artifact import Artifact, Cell, Killed, Lowered, Outcome, PassRun, TimedOut
from executorch_goldens.goldens import decisions, golden, rendering
from executorch_goldens.goldens.decisions import FAILURE, IMPRECISE, NO_DELEGATE, Decision, Decisions
from executorch_goldens.goldens.decisions import KNOWN as DEFECT
from executorch_goldens.goldens.findings import (
    Deviated,
    Finding,
    Frame,
    NotFinished,
    OwnFileFails,
    TensorType,
    Undecodable,
    WrongValues,
)
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import TRACE, Record
from executorch_goldens.judging.verdict import Verdict
from executorch_goldens.settings import releases
from lab.compact import form, goldens, known, runs, table
from lab.compact.form import COUNTED, GONE, OTHER, compact, recorded_runs
from lab.compact.runs import KNOWN, RECORDED, UNEXPECTED, Compact, Run
from tests.conftest import Artifacts
from tests.support.making import other, wrong

INSTALLED = metadata.version("executorch").partition("+")[0]
VARIATIONS = ("seed0-heap0", "seed4-heap1")


@pytest.fixture
def whole(artifacts: Artifacts) -> Record:
    origin = rendering.MadeWith({"executorch": INSTALLED}, VARIATIONS, Numerics())
    return rendering.render(artifacts["steady"][0], origin)


# Form


def test_a_compact_golden_reads_as_the_whole_one_in_what_it_counts(whole: Record) -> None:
    of_compact, of_whole = compact(whole).inventory, whole.inventory
    for name in ("delegates", "operators", "outside", "size", "memory", "constant_bytes", "duplicated"):
        assert getattr(of_compact, name) == getattr(of_whole, name), name
    assert of_whole.operators


def test_a_compact_golden_without_a_delegate_asks_for_a_decision_that_says_what_is_outside(
    whole: Record,
) -> None:
    facts = {name: value for name, value in whole.facts.items() if not name.startswith("delegate ")}
    alone = compact(replace(whole, facts=facts))
    missing = decisions.NONE.missing(Cell("xnnpack-fp32", "alone"), alone)
    assert missing is not None
    assert missing.decision.what == NO_DELEGATE
    assert missing.decision.outside == decisions.outside_of(replace(whole, facts=facts))


def test_a_compact_golden_differs_where_any_text_does(whole: Record) -> None:
    for name in ("graph", "pte", "delegate_0.xnnpack"):
        one, two = (
            compact(Record(whole.facts, {**whole.sections, name: f"{whole.sections[name]}more = {number}\n"}))
            for number in (1, 2)
        )
        assert not form.equal(one, two)
        assert any(line.startswith(f"+{name}.txt: ") for line in form.differences(one, two))
    without_trace = Record(whole.facts, {**whole.sections, TRACE: ""}, whole=whole.whole)
    assert form.equal(compact(without_trace), compact(whole))


def test_what_goldens_came_to_have_later_is_compared_where_both_have_it(whole: Record) -> None:
    now = compact(whole)
    counts = [
        line for line in now.sections[COUNTED].splitlines(keepends=True) if not line.startswith("duplicated")
    ]
    before = form.CompactRecord(now.facts, {COUNTED: "".join(counts)})
    assert form.equal(before, now)
    assert before.inventory.duplicated is None


def test_the_trace_in_short_names_the_passes_of_the_run_at_hand(whole: Record) -> None:
    there = list(whole.trace)
    assert recorded_runs(compact(whole), there) == there
    first, *others = there
    changed = replace(first, fingerprint="000000000000")
    was = PassRun(first.pipeline, first.name, OTHER, True)
    assert recorded_runs(compact(whole), [changed, *others]) == [was, *others]
    assert recorded_runs(compact(whole), others) == [PassRun("", GONE, OTHER, True), *others]
    without = {name: text for name, text in whole.sections.items() if name != TRACE}
    assert recorded_runs(compact(Record(whole.facts, without)), there) is None


# Tables


def test_compact_goldens_of_a_target_are_one_file(tmp_path: Path, whole: Record) -> None:
    cells = [Cell("tosa-fp", case) for case in ("b", "a")]
    goldens.write(tmp_path, dict.fromkeys(cells, compact(whole)))
    assert [path.name for path in tmp_path.iterdir()] == [f"tosa-fp{table.SUFFIX}"]
    assert list(goldens.recorded(tmp_path)) == sorted(cells)
    assert goldens.read(tmp_path, cells[0]) == compact(whole)
    assert goldens.read(tmp_path, Cell("tosa-fp", "c")) is None
    goldens.write(tmp_path, dict.fromkeys(cells))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace("bytes", "byte"), "was edited by hand"),
        (lambda text: f"x\n{text}", "belongs to no golden"),
        (lambda text: text + text, "is there twice"),
        (lambda text: f"{text}<<<<<<< HEAD\n", "was left by a merge"),
    ],
    ids=["edited", "no case", "twice", "merge"],
)
def test_a_damaged_table_is_an_error(
    tmp_path: Path, whole: Record, damage: Callable[[str], str], said: str
) -> None:
    cell = Cell("tosa-fp", "a")
    goldens.write(tmp_path, {cell: compact(whole)})
    file = table.file_of(tmp_path, "tosa-fp")
    file.write_text(damage(file.read_text()))
    with pytest.raises(golden.GoldenError, match=said):
        goldens.read(tmp_path, cell)


# Known defects


@pytest.mark.parametrize(
    ("verdict", "found", "noted"),
    [
        ("crashed", NotFinished("seed0-heap0", Killed("SIGABRT")), True),
        # The system lacked memory, or a person ended it.
        ("crashed", NotFinished("seed0-heap0", Killed("SIGKILL")), False),
        ("timed-out", NotFinished("seed0-heap0", TimedOut(180.0, 180.1, 190.0, 0.0)), False),
        # This repository's mistake, which no release makes.
        ("failed", OwnFileFails("ValueError", "wrong", at=Frame("harness/lab/x.py", 1, "program")), False),
    ],
)
def test_what_the_next_run_may_not_find_is_not_noted(verdict: str, found: Finding, noted: bool) -> None:
    assert known.is_defect(Verdict(Cell("tosa-fp", "add"), verdict, (found,))) is noted


def wrong_values(dtype: str) -> WrongValues:
    return WrongValues(3, "example", Deviated(TensorType(dtype, (4,)), TensorType(dtype, (4,))))


def test_an_update_keeps_what_is_still_so_and_what_it_did_not_judge() -> None:
    both = Decision(
        *(DEFECT, "corrupt"),
        finding={"kind": "wrong-values", "dtype": "int8"},
        why="a sign",
        releases=("1.4.1", "1.5.1"),
        cells=("a/a", "a/b", "a/c"),
    )
    judged = {
        "a/a": Verdict(Cell("a", "a"), "corrupt", (wrong_values("int8"),)),
        "a/b": Verdict(Cell("a", "b"), "corrupt", (wrong_values("int16"),)),
        "a/d": Verdict(Cell("a", "d"), "stable"),
    }
    other = {"kind": "wrong-values", "dtype": "int16"}
    assert decisions.joined(known.settled([both], "1.5.1", judged)) == decisions.joined(
        [
            msgspec.structs.replace(both, cells=("a/a", "a/c")),
            msgspec.structs.replace(both, releases=("1.4.1",), cells=("a/b",)),
            Decision(DEFECT, "corrupt", finding=other, releases=("1.5.1",), cells=("a/b",)),
        ]
    )


@given(st.text(st.characters(), min_size=1).filter(str.strip))
@example("a \x7f, a \x00, a \x85, a \u2028")
@example("half of a pair: \ud800")
def test_any_reason_is_read_as_it_was_written(reason: str) -> None:
    """TOML cannot hold half of a UTF-16 pair, so it is escaped."""
    judged = {"tosa-fp/add": Verdict(Cell("tosa-fp", "add"), "undecodable", (Undecodable(reason),))}
    settled = list(known.settled([], INSTALLED, judged))
    with tempfile.TemporaryDirectory() as folder:
        decisions.write(Path(folder), settled)
        assert decisions.read(Path(folder)) == tuple(settled)


# Runs

ALPHA, BETA = (Cell("xnnpack-fp32", case) for case in ("alpha", "beta"))
Running = Callable[..., dict[Cell, str]]


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Run over two cells whose exports were made before; return what is found of each."""
    answers: dict[Cell, Artifact] = {}

    class Replayed:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> Replayed:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def outcomes(self, cell: Cell) -> list[Outcome]:
            return [Outcome(cell, name, answers[cell], 0.0, 0.0) for name in VARIATIONS]

    monkeypatch.setattr(runs, "Sweep", Replayed)
    release = releases.load().release(INSTALLED)
    root = tmp_path / INSTALLED
    root.mkdir()

    def run(made: Mapping[Cell, Artifact], updating: bool = False) -> dict[Cell, str]:
        answers.update(made)
        planned = SimpleNamespace(
            root=root,
            release=release,
            cells=[ALPHA, BETA],
            zoo=(ALPHA, BETA),
            variations=(),
            settings=None,
            listed=SimpleNamespace(files=()),
            decided=Decisions.of_root(tmp_path, INSTALLED),
        )
        zoo = Compact("own", "own", Path("own"), lambda release: frozenset(("alpha",)))
        return {found.verdict.cell: found.label for found in Run(zoo, planned, updating)([ALPHA, BETA])}

    return run


def test_an_update_records_what_is_right_and_notes_what_is_wrong(
    running: Running, artifacts: Artifacts, tmp_path: Path
) -> None:
    steady = artifacts["steady"][0]
    made = {ALPHA: steady, BETA: wrong(steady)}
    assert running(made) == {ALPHA: "new", BETA: "corrupt"}
    assert running(made, updating=True) == {ALPHA: RECORDED, BETA: KNOWN}
    files = {path.name: path.read_bytes() for path in (tmp_path / INSTALLED).iterdir()}
    assert files.keys() == {f"xnnpack-fp32{table.SUFFIX}"}
    decided = (tmp_path / decisions.FILE).read_bytes()
    assert running(made) == {ALPHA: "stable", BETA: KNOWN}
    assert running(made, updating=True) == {ALPHA: "stable", BETA: KNOWN}
    assert {path.name: path.read_bytes() for path in (tmp_path / INSTALLED).iterdir()} == files
    assert (tmp_path / decisions.FILE).read_bytes() == decided


def test_what_changes_fails_until_it_is_recorded(
    running: Running, artifacts: Artifacts, tmp_path: Path
) -> None:
    steady = artifacts["steady"][0]
    running({ALPHA: steady, BETA: wrong(steady)}, updating=True)
    # One now makes something else, the other is right now.
    made = {ALPHA: other(steady), BETA: steady}
    assert running(made) == {ALPHA: "changed", BETA: "changed"}
    assert running(made, updating=True) == {ALPHA: RECORDED, BETA: RECORDED}
    assert not (tmp_path / decisions.FILE).exists()
    assert running(made) == {ALPHA: "stable", BETA: "stable"}
    # A golden from when it was right goes.
    assert running({ALPHA: wrong(steady), BETA: steady}) == {ALPHA: "corrupt", BETA: "stable"}
    assert running({ALPHA: wrong(steady), BETA: steady}, updating=True) == {ALPHA: KNOWN, BETA: "stable"}
    assert list(goldens.recorded(tmp_path / INSTALLED)) == [BETA]


def test_what_nothing_checks_is_recorded_where_a_person_accepts_it(
    running: Running, artifacts: Artifacts, tmp_path: Path
) -> None:
    steady = artifacts["steady"][0]
    assert isinstance(steady.result, Lowered)
    scaled = replace(steady, result=replace(steady.result, unchecked=("output0_scale",)))
    made = {ALPHA: steady, BETA: scaled}
    assert running(made)[BETA] == "imprecise"
    decisions.write(
        tmp_path, [Decision(IMPRECISE, unchecked=("output0_scale",), why="as told", cells=(str(BETA),))]
    )
    assert running(made, updating=True) == {ALPHA: RECORDED, BETA: RECORDED}
    assert running(made) == {ALPHA: "stable", BETA: "stable"}


def undecodable(artifact: Artifact) -> Artifact:
    assert isinstance(artifact.result, Lowered)
    delegate = replace(artifact.result.delegates[0], payload=b"no payload")
    return replace(artifact, result=replace(artifact.result, delegates=(delegate,)))


def test_what_is_wrong_is_accepted_for_its_cause_alone(running: Running, artifacts: Artifacts) -> None:
    steady = artifacts["steady"][0]
    running({ALPHA: steady, BETA: undecodable(steady)}, updating=True)
    assert running({ALPHA: steady, BETA: undecodable(steady)}) == {ALPHA: "stable", BETA: KNOWN}
    assert running({ALPHA: steady, BETA: wrong(steady)})[BETA] == "corrupt"


def test_a_failure_is_recorded_where_it_is_expected_by_its_cause(
    running: Running, artifacts: Artifacts, tmp_path: Path
) -> None:
    steady, failing = artifacts["steady"][0], artifacts["does-not-lower"][0]
    made = {ALPHA: steady, BETA: failing}
    assert running(made, updating=True) == {ALPHA: RECORDED, BETA: UNEXPECTED}
    origin = rendering.MadeWith({"executorch": INSTALLED}, VARIATIONS, Numerics())
    cause = decisions.cause_of(rendering.render(failing, origin))
    expected = Decision(FAILURE, cause=cause, releases=(INSTALLED,), cells=("xnnpack-fp32/*",))
    decisions.write(tmp_path, [expected])
    assert running(made, updating=True) == {ALPHA: "stable", BETA: RECORDED}
    assert running(made) == {ALPHA: "stable", BETA: "stable"}
