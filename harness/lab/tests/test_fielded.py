"""Programs in the runtime of another release: results of sound, damaged and deadly ones, and their use."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.artifact import Cell, Tensor
from executorch_goldens.cli import DIFFERENT, ERROR, SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import GRAPH
from executorch_goldens.running import core
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens.zoo.targets import BUILD, RUNTIME, find
from executorch_goldens_plugins.field.format import EXECUTORCH, FrozenProgram, FrozenSample, FrozenTensor
from executorch_goldens_plugins.field.running import CRASHED, REFUSED, TIMED_OUT, Ran, RunningError
from lab.__main__ import main
from lab.fielded import command as fielded
from lab.fielded import corpus, goldens, page, running
from lab.fielded.corpus import WHOLE, CorpusError, Shipped
from lab.fielded.goldens import Pair
from lab.fielded.judging import is_break, is_clean, judge, lasting
from tests import DATA, GOLDENS

RELEASE = releases.load().default

#: Programs that ``nox -s lab -- fielded`` made in the environment of 1.1.0; named after their cell. An 8-bit
#: transposed convolution is one that XNNPACK refuses, and the reference model dies of a pad by a negative amount.
PAYLOADS = DATA / "payloads"
LINEAR = PAYLOADS / "xnnpack-fp32-linear-1.1.0.program"
PAYLOAD = PAYLOADS / "tosa-int-linear-1.1.0.program"
UNRUNNABLE = PAYLOADS / "xnnpack-int8-conv-transpose2d-1.1.0.program"
DEADLY = PAYLOADS / "tosa-fp-cropping-pad-1.1.0.program"

#: Place of a flatbuffer's identifier, and the magic number of an XNNPACK payload (XNNHeader of 1.1.0).
IDENTIFIER, XNNPACK_MAGIC = slice(4, 8), b"XH00"


def with_data(shipped: Shipped, data: bytes) -> Shipped:
    (program,) = shipped.programs
    return msgspec.structs.replace(shipped, programs=(dataclasses.replace(program, data=data),))


def damaged() -> dict[str, Shipped]:
    """Return a program whose bytes were changed in several ways."""
    linear, of_payload = corpus.read(LINEAR), corpus.read(PAYLOAD)
    pte, payload = linear.programs[0].data, of_payload.programs[0].data
    assert pte[IDENTIFIER] == b"ET12"
    header = pte.index(XNNPACK_MAGIC)
    return {
        "delegate": with_data(linear, pte[:header] + b"Z" + pte[header + 1 :]),
        "version": with_data(linear, pte[:4] + b"ET99" + pte[8:]),
        "truncated": with_data(linear, pte[: len(pte) // 2]),
        # The sign of the last element of the bias.
        "weight": with_data(linear, pte[:-1] + bytes([pte[-1] ^ 0x80])),
        "payload": with_data(of_payload, payload[: len(payload) // 2]),
    }


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The result of each program in the installed release, as a golden has it."""
    folder = tmp_path_factory.mktemp("programs")
    files = {"linear": LINEAR, "tosa": PAYLOAD, "refused": UNRUNNABLE, "deadly": DEADLY}
    for name, shipped in damaged().items():
        files[name] = folder / f"{name}.program"
        corpus.write(files[name], shipped)
    found = running.run(default_interpreter(), list(files.values()), 2)
    return {name: judge(*each).text for name, each in zip(files, found, strict=True)}


def test_a_program_of_another_release_gives_the_bytes_of_its_own(came: Mapping[str, str]) -> None:
    assert came["linear"] == "same"
    assert came["tosa"] == "same"


def test_what_its_own_release_refuses_is_refused_with_the_runtimes_error_and_breaks_nothing(
    came: Mapping[str, str],
) -> None:
    assert came["refused"].startswith("refused: RuntimeError: ")
    assert "xnn_status" in came["refused"]
    assert came["refused"].endswith("; refused on 1.1.0")
    assert not is_break(came["refused"])


def test_a_runtime_that_dies_is_a_result_and_the_others_run_on(came: Mapping[str, str]) -> None:
    assert came["deadly"].startswith("crashed: killed by SIG")
    assert came["deadly"].endswith(" on example, call 1; crashed on 1.1.0")
    assert len(came) == 9


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("delegate", "XNNPACK Delegate Serialization Format version identifier 'ZH00'"),
        ("version", "; Program identifier 'ET99' != expected 'ET12'"),
        ("truncated", "; File size is too small."),
    ],
)
def test_a_damaged_program_is_refused_with_a_reason(came: Mapping[str, str], name: str, reason: str) -> None:
    assert came[name].startswith("refused: RuntimeError: "), came[name]
    assert reason in came[name]
    assert is_break(came[name])


def test_a_truncated_payload_of_which_the_reference_model_dies_is_a_result(came: Mapping[str, str]) -> None:
    assert came["payload"].startswith("crashed: killed by SIG")
    assert is_break(came["payload"])


def test_a_changed_weight_is_wrong(came: Mapping[str, str]) -> None:
    assert came["weight"] == "wrong: output 0"


def test_an_environment_without_a_runtime_is_named() -> None:
    with pytest.raises(RunningError, match="/no/such/python cannot be run"):
        list(running.run(Path("/no/such/python"), [LINEAR], 1))


def test_a_file_that_cannot_be_read_ends_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.program").write_bytes(LINEAR.read_bytes()[:-1])
    with pytest.raises(CorpusError, match=r"x\.program"):
        list(running.run(default_interpreter(), [LINEAR, tmp_path / "x.program"], 1))


# Files of programs


def test_a_program_that_is_not_whole_is_named_with_the_way_out(tmp_path: Path) -> None:
    content = LINEAR.read_bytes()
    for name, damage in {
        "cut": content[:-1],
        "flipped": content[:-1] + bytes([content[-1] ^ 1]),
        "empty": b"",
        "other": content.replace(b"fielded 2", b"fielded 9", 1),
    }.items():
        (tmp_path / name).write_bytes(damage)
        with pytest.raises(CorpusError, match=f"{name}: .*Delete it"):
            corpus.read(tmp_path / name)


def test_a_program_that_is_a_link_or_a_pipe_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(LINEAR)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(CorpusError):
            corpus.read(tmp_path / name)


@pytest.mark.parametrize(
    "changed",
    [
        {"cell": Cell("tosa-fp", "../x")},
        {"cell": Cell("a\nb", "c")},
        {"release": "\x1b[2J"},
        {"own": "fine"},
        {"programs": (FrozenProgram(WHOLE, "sh", (), b"", ()),)},
    ],
    ids=str,
)
def test_a_program_that_does_not_hold_together_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    file = tmp_path / "x.program"
    corpus.write(file, msgspec.structs.replace(corpus.read(LINEAR), **changed))
    with pytest.raises(CorpusError, match=r"x\.program"):
        corpus.read(file)


def test_a_tensor_that_claims_more_than_its_bytes_is_refused(tmp_path: Path) -> None:
    content = LINEAR.read_bytes()
    claim = msgspec.msgpack.decode(content[len(corpus.MAGIC) + corpus.DIGEST_BYTES :])
    claim["programs"][0]["samples"][0]["steps"][0][0]["shape"] = [1 << 40]
    corpus.write(tmp_path / "x.program", claim)
    with pytest.raises(CorpusError, match=r"x\.program: .*takes"):
        corpus.read(tmp_path / "x.program")


# Outcomes


def tensor(*values: float) -> FrozenTensor:
    return FrozenTensor.from_tensor(Tensor.from_array(np.array(values, np.float32)))


SAMPLE = FrozenSample("example", ((),), (tensor(1.0),), (tensor(1.0),), (0.5,))


def of_samples(*samples: FrozenSample, own: str = corpus.RIGHT) -> Shipped:
    program = FrozenProgram(WHOLE, EXECUTORCH, (), b"", samples)
    return Shipped(Cell("xnnpack-fp32", "x"), "1.1.0", (program,), own)


def gave(*values: FrozenTensor) -> Ran:
    return Ran((values,), "", "", 0.0)


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        (gave(tensor(1.0)), "same"),
        (gave(tensor(1.25)), "within rounding"),
        (gave(tensor(2.0)), "wrong: output 0"),
        (gave(tensor(float("nan"))), "wrong: output 0"),
        (gave(tensor(1.0), tensor(1.0)), "wrong: 2 outputs where there were 1"),
        (gave(), "wrong: 0 outputs where there were 1"),
        (Ran((), REFUSED, "RuntimeError: no", 0.0), "refused: RuntimeError: no"),
        (Ran((), CRASHED, "killed by SIGSEGV", 0.0), "crashed: killed by SIGSEGV on example"),
        (Ran((), TIMED_OUT, "not done within 1 s", 0.0), "crashed: not done within 1 s on example"),
    ],
)
def test_the_outcome_of_a_program_that_is_right_on_its_own_release(ran: Ran, said: str) -> None:
    assert judge(of_samples(SAMPLE), [ran]).text == said
    assert is_break(said) is not is_clean(said)


def test_an_output_of_a_payload_is_named_with_its_payload() -> None:
    shipped = of_samples(SAMPLE)
    payloads = tuple(dataclasses.replace(shipped.programs[0], name=f"payload {n}") for n in (0, 1))
    ran = [gave(tensor(1.0)), gave(tensor(2.0))]
    text = judge(msgspec.structs.replace(shipped, programs=payloads), ran).text
    assert text == "wrong: output 0 of payload 1"


def test_how_far_it_is_from_its_own_release_is_a_part_of_the_largest_value() -> None:
    values = (tensor(4.0, 0.0),)
    sample = dataclasses.replace(SAMPLE, expected=values, outputs=values)
    assert judge(of_samples(sample), [gave(tensor(4.0, 0.5))]).furthest == 0.125


def test_a_bfloat16_is_what_the_same_number_is_in_a_dtype_of_numpys() -> None:
    given = FrozenTensor("bfloat16", (1,), bytes.fromhex("803f"))
    assert judge(of_samples(SAMPLE), [gave(given)]).text == "same"


def test_what_is_wrong_on_its_own_release_says_so_and_is_no_break() -> None:
    for value in (tensor(9.0), tensor(1.0)):
        shipped = of_samples(dataclasses.replace(SAMPLE, outputs=(value,)), own=corpus.WRONG)
        text = judge(shipped, [gave(value)]).text
        assert text.startswith("wrong: ")
        assert text.endswith("; wrong on 1.1.0")
        assert not is_break(text)


def test_a_long_reason_is_cut_off() -> None:
    assert len(lasting("x" * 1000)) == 200


# Goldens

VERSIONS = ("1.1.0", "1.2.0", "1.3.1")
PAIR = Pair("1.1.0", "1.2.0")
A, B, C = (Cell("xnnpack-fp32", name) for name in "abc")
LINES = {A: "same", B: "within rounding"}


def test_a_golden_is_read_as_it_was_written_and_not_written_again(tmp_path: Path) -> None:
    lines = list(goldens.text(PAIR, LINES, goldens.PROMISED, "2026.2.1"))
    assert lines[0] == "# Programs of ExecuTorch 1.1.0 in the runtime of 1.2.0: promised."
    assert goldens.read(PAIR, tmp_path) is None
    assert goldens.write(PAIR.file(tmp_path), lines)
    assert not goldens.write(PAIR.file(tmp_path), lines)
    assert goldens.read(PAIR, tmp_path) == LINES


def test_a_golden_that_was_edited_badly_is_named(tmp_path: Path) -> None:
    goldens.write(PAIR.file(tmp_path), ["xnnpack-fp32/a same"])
    with pytest.raises(GoldenError, match=r"1\.1\.0-1\.2\.0\.txt.*git checkout"):
        goldens.read(PAIR, tmp_path)


def test_what_moved_is_named_with_what_it_was_and_what_it_is(snapshot: SnapshotAssertion) -> None:
    found = {A: "refused: no", B: "same", C: "same"}
    changes = goldens.compared(PAIR, {**LINES, Cell("gone", "x"): "same"}, found, (A, B, C))
    assert [change.line() for change in changes] == snapshot


def test_what_was_not_run_is_no_change_and_stays() -> None:
    assert goldens.compared(PAIR, LINES, {A: "same"}, (A, B)) == []
    assert goldens.accepted(LINES, {A: "wrong: x"}, (A, B)) == {A: "wrong: x", B: "within rounding"}
    assert goldens.accepted(LINES, {A: "same"}, (A,)) == {A: "same"}


def test_a_new_release_is_run_with_every_other_and_none_else() -> None:
    assert fielded.pairs(VERSIONS, "1.3.1") == [
        *(Pair("1.3.1", "1.1.0"), Pair("1.3.1", "1.2.0")),
        *(Pair("1.1.0", "1.3.1"), Pair("1.2.0", "1.3.1"), Pair("1.3.1", "1.3.1")),
    ]
    assert len(fielded.pairs(VERSIONS, None)) == 9
    with pytest.raises(UsageError, match=r"--new '9\.9\.9' is not one of the releases given"):
        fielded.pairs(VERSIONS, "9.9.9")


# The page


def test_the_tables_count_pairs_and_group_what_breaks(snapshot: SnapshotAssertion) -> None:
    lines = {
        PAIR: {A: "same", B: "within rounding", C: "wrong: output 0; wrong on 1.1.0"},
        Pair("1.2.0", "1.1.0"): {A: "refused: <no>", B: "refused: <no>", C: "wrong: output 1"},
    }
    assert [*page.table(lines, VERSIONS[:2])] == snapshot
    assert [*page.broken(lines, VERSIONS[:2])] == snapshot
    assert [*page.broken({PAIR: {A: "same"}}, VERSIONS)] == snapshot
    assert [*page.broken({}, VERSIONS)] == snapshot


@pytest.mark.parametrize("version", releases.load().releases)
def test_every_program_of_a_core_was_reviewed_on_every_release(version: str) -> None:
    """An unreviewed one is new to the weekly run, which fails."""
    folder = GOLDENS / version
    programs = {cell for cell in core.read(folder / core.FILE) if ships(folder, cell)}
    for run in releases.load().releases:
        reviewed = goldens.read(Pair(version, run), GOLDENS) or {}
        assert sorted(map(str, programs - reviewed.keys())) == [], (
            f"on {run}: {fielded.CALLED} --snapshot-update"
        )


def ships(folder: Path, cell: Cell) -> bool:
    """Return whether the golden of a cell has something to run: a program, for TOSA one with delegates of known sizes.

    The command takes no builds, which may have several methods and data files: ``goldens freeze`` and ``thaw`` do.
    """
    if cell.target == BUILD:
        return False
    record = golden.read(golden.file_of(folder, cell))
    texts = record.texts() if record is not None else {}
    if find(cell.target).runs == RUNTIME:
        return GRAPH in texts
    is_run = record is None or record.numerics is None or not record.numerics.not_run
    return is_run and any(name.startswith("delegate_") for name in texts)


# The command


def test_what_the_command_cannot_do_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(default_interpreter())
    monkeypatch.setenv("CI", "1")
    assert main(["fielded", here, "--snapshot-update"]) == ERROR
    assert "--snapshot-update is refused because CI is set" in capsys.readouterr().err
    monkeypatch.delenv("CI")
    for words, fact in {
        ("1.4.0",): "unknown release '1.4.0'",
        (here, "--new", "1.6.0"): "--new '1.6.0' is not one of the releases given: 1.4.1",
        (here, "--cell", "nothing/at-all"): "--cell nothing/at-all: no cell of 1.4.1 matches",
    }.items():
        assert main(["fielded", *words]) == ERROR
        assert fact in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_makes_programs_once_and_compares_with_what_was_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    words = ["fielded", str(default_interpreter()), "--goldens", str(tmp_path / "goldens")]
    words += ["--programs", str(tmp_path / "programs"), "--cell", "*/linear"]
    words += ["--cell", "xnnpack-fp32/linear"]
    pair = Pair(RELEASE, RELEASE)
    assert main(words) == DIFFERENT
    printed = capsys.readouterr().out
    assert f"new: xnnpack-fp32/linear of {RELEASE} on {RELEASE}: same" in printed
    assert "accept: nox -s lab -- fielded --cell '*/linear'" in printed
    assert goldens.read(pair, tmp_path / "goldens") is None
    assert main([*words, "--snapshot-update"]) == SAME
    printed = capsys.readouterr().out
    assert " kept, 0 to make" in printed
    reviewed = goldens.read(pair, tmp_path / "goldens")
    assert reviewed is not None
    assert set(reviewed.values()) == {"same"}
    assert {cell.target for cell in reviewed} >= {"tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8"}
    file = pair.file(tmp_path / "goldens")
    file.write_text(file.read_text().replace("xnnpack-fp32/linear  same", "xnnpack-fp32/linear  wrong: x"))
    assert main(words) == DIFFERENT
    assert (
        f"changed: xnnpack-fp32/linear of {RELEASE} on {RELEASE}: wrong: x -> same" in capsys.readouterr().out
    )
    assert main([*words, "--snapshot-update"]) == SAME
    assert goldens.read(pair, tmp_path / "goldens") == reviewed
    assert main(words) == SAME
    (linear,) = (
        file
        for file in (tmp_path / "programs" / RELEASE).iterdir()
        if corpus.read(file).cell == Cell("xnnpack-fp32", "linear")
    )
    shipped = corpus.read(linear)
    corpus.write(linear, with_data(shipped, shipped.programs[0].data[:-100]))
    capsys.readouterr()
    assert main(words) == DIFFERENT
    said = capsys.readouterr().out
    assert f"broken: xnnpack-fp32/linear of {RELEASE} on {RELEASE}: same -> refused: RuntimeError: " in said
