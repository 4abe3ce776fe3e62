"""The command line: text, JSON, one tensor, differences, exit codes, and errors that name the way out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.cli import main
from executorch_goldens.decode import Schemas
from executorch_goldens.decode.schemas import ENVIRONMENT_VARIABLE
from executorch_goldens.diff.changes import IN_DIGEST
from executorch_goldens.goldens import golden, program
from executorch_goldens.goldens.record import Record
from tests import GOLDENS
from tests.support.decoding.payloads import FIXTURES, load
from tests.support.making import with_texts
from tests.support.screens import screen

SCHEMAS = ("--schemas", str(Schemas.installed().places[0]))
TOSA = str(FIXTURES / "1.5.1/tosa-int-0.tosa")
OTHER = str(FIXTURES / "1.1.0/tosa-int-0.tosa")


FACTS = {"variations": "x"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments, *SCHEMAS])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_decode_prints_the_golden_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "show", TOSA) == (0, load("1.5.1/tosa-int-0.tosa").text(), "")


def test_the_short_form_has_an_operator_a_line_and_the_constants_after_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "show", "--short", TOSA)
    operators, _, constants = out.partition("constants\n")
    decoded = load("1.5.1/tosa-int-0.tosa")
    (graph,) = decoded.graphs
    computing = [each.type for each in graph.operators if not each.type.startswith("CONST")]
    assert code == 0
    assert re.findall(r" = (\w+)\(", operators) == computing
    assert {line.split(":")[0].strip() for line in constants.splitlines()} == set(decoded.constants())
    assert "sha256" not in out
    assert len(out) < len(decoded.text()) / 2


def test_kind_is_told_from_the_bytes_not_the_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    odd = tmp_path / "weights.zip"
    odd.write_bytes((FIXTURES / "1.5.1/xnnpack-int4.pte").read_bytes())
    code, out, _ = run(capsys, "show", str(odd))
    assert (code, out.split()[0]) == (0, "pte")


def test_decode_reads_standard_input() -> None:
    command = [sys.executable, "-m", "executorch_goldens", "show", "-", *SCHEMAS]
    finished = subprocess.run(command, input=Path(TOSA).read_bytes(), capture_output=True, check=True)
    assert finished.stdout.decode() == load("1.5.1/tosa-int-0.tosa").text()


def test_one_tensor_as_npy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name, constant = max(load("1.5.1/tosa-int-0.tosa").constants().items(), key=lambda item: item[1].size)
    target = tmp_path / "weight.npy"
    code, out, _ = run(capsys, "show", TOSA, "--tensor", name, "--output", str(target))
    assert (code, out) == (0, "")
    assert np.array_equal(np.load(target), constant.array())


def test_diff_of_the_same_is_silent_and_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "diff", TOSA, TOSA) == (0, "", "")
    assert run(capsys, "diff", TOSA, TOSA + ".txt") == (0, "", "")


def test_diff_of_two_payloads_is_a_report_and_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "diff", TOSA, OTHER)
    assert code == 1
    assert out.startswith(f"A: {TOSA}\nB: {OTHER}\ndifferent\n")


def test_diff_of_two_folders_of_goldens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    text = Path(TOSA + ".txt").read_text()
    for side, pad in (("a", "[1, 1, 1, 1]"), ("b", "[0, 0, 0, 0]")):
        sections = {"delegate_0.tosa": text.replace("[1, 1, 1, 1]", pad), "graph": f"graph\n{pad}\n"}
        golden.write(tmp_path / side / "linear.txt", Record(FACTS, sections))
    (tmp_path / "a/only.txt").write_text("")
    code, out, _ = run(capsys, "diff", str(tmp_path / "a"), str(tmp_path / "b"))
    assert code == 1
    assert screen(out, {tmp_path: "TMP"}) == snapshot


def test_diff_of_a_golden_and_a_payload_is_of_its_only_section_of_that_kind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    text = Path(TOSA + ".txt").read_text()
    other = text.replace("[1, 1, 1, 1]", "[0, 0, 0, 0]")
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    golden.write(one, Record(FACTS, {"graph": "", "delegate_0.tosa": text}))
    assert run(capsys, "diff", str(one), TOSA) == (0, "", "")
    assert run(capsys, "diff", OTHER, str(one))[0] == 1
    golden.write(two, Record(FACTS, {"graph": "", "delegate_0.tosa": text, "delegate_1.tosa": other}))
    code, _, error = run(capsys, "diff", str(two), TOSA)
    assert code == 2
    assert screen(error, {tmp_path: "TMP", FIXTURES: "FIXTURES"}) == snapshot


def test_diff_of_a_golden_and_a_program_is_of_what_a_golden_has_of_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole, path = load("1.5.1/tosa-fp.pte").text(delegates=False), tmp_path / "golden.txt"
    golden.write(path, Record(FACTS, {"graph": "", "pte": program.section(whole)}, whole=whole), kept=True)
    assert run(capsys, "diff", str(path), str(FIXTURES / "1.5.1/tosa-fp.pte")) == (0, "", "")
    other = tmp_path / "other.txt"
    elsewhere = whole.replace("memory_offset = 0\n", "memory_offset = 16\n", 1)
    section = Record(FACTS, {"graph": "", "pte": program.section(elsewhere)}, whole=elsewhere)
    golden.write(other, section)
    code, out, _ = run(capsys, "diff", str(path), str(other))
    assert (code, f"    its whole text: {path.with_suffix(golden.WHOLE)}" in out.splitlines()) == (1, True)
    golden.write(other, section, kept=True)
    code, out, _ = run(capsys, "diff", str(path), str(other))
    assert (code, "memory_offset 0 -> 16" in out, IN_DIGEST in out) == (1, True, False)


def test_diff_of_two_goldens_has_no_digest_and_nothing_of_how_they_were_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = GOLDENS / "1.5.1/tosa-int/linear.txt"
    _, out, _ = run(capsys, "diff", str(before), str(GOLDENS / "1.4.1/tosa-int/linear.txt"))
    assert "compile_specs[2].key" in out
    assert out.endswith("\nfacts\n  executorch: 1.5.1 -> 1.4.1\n  torch: 2.14.1 -> 2.13.0\n")
    # Bytes that no text explains are a difference; another way to the same artifact is none.
    texts = golden.read(before)
    facts, after = texts.texts()["manifest"], tmp_path / "after.txt"
    trace = re.sub(r"[0-9a-f]{12}$", "0" * 12, texts.texts()["trace"], flags=re.MULTILINE)
    other = facts.replace("variations: ", "variations: another ")
    golden.write(after, with_texts(texts, {"manifest": other, "trace": trace}))
    assert run(capsys, "diff", str(before), str(after)) == (0, "", "")
    changed = re.sub(r"(pte: \d+ bytes sha256 )\w+", r"\g<1>" + "0" * 16, facts)
    golden.write(after, with_texts(texts, {"manifest": changed}))
    code, out, _ = run(capsys, "diff", str(before), str(after))
    assert (code, out.splitlines()[2:]) == (1, ["facts", "  pte: different bytes"])


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["show", "nowhere.pte"], ["nowhere.pte is missing", "No such file"]),
        (["show", f"{FIXTURES.name}/nowhere"], [f"{FIXTURES.name}/nowhere is missing"]),
        (["show", __file__], ["test_show.py", "TOSA", "byte 4"]),
        (["show", TOSA, "--tensor", "nothing"], ["no constant nothing", "it has"]),
        (["diff", TOSA, "nowhere.tosa"], ["nowhere.tosa is missing", "No such file"]),
        (["diff", str(FIXTURES), "nowhere"], ["nowhere is missing", "No such file"]),
        (["diff", "nowhere", str(FIXTURES)], ["nowhere is missing", "No such file"]),
        (["diff", "1.5.1", "nowhere"], ["1.5.1 and nowhere", "missing"]),
        (["diff", TOSA, str(FIXTURES)], ["is a folder", "two folders or two files"]),
    ],
)
def test_errors_are_one_line_that_names_the_thing_and_the_way_out(
    arguments: list[str],
    parts: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(FIXTURES.parent)
    code, out, error = run(capsys, *arguments)
    assert (code, out, error.count("\n")) == (2, "", 1)
    for part in parts:
        assert part in error


@pytest.mark.parametrize("command", ["show", "diff"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"goldens {command} " in capsys.readouterr().out.partition("examples:")[2]


def test_neither_torch_nor_executorch_is_imported() -> None:
    program = (
        "import sys, executorch_goldens.cli, executorch_goldens.commands.show, executorch_goldens.commands.diff; "
        "print(*sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert not {"torch", "executorch", "tosa", "ml_dtypes"} & set(finished.stdout.split())


def test_a_reader_that_stops_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "executorch_goldens", "show", TOSA, *SCHEMAS]
    finished = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, text=True)
    os.close(writing)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_without_an_executorch_the_schemas_are_those_of_the_default_toolchain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The toolchain that is chosen is this environment; only the first look for schemas finds none.
    monkeypatch.setattr(Schemas, "installed", classmethod(lambda cls: cls(())))
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    code = main(["show", TOSA])
    assert (code, *capsys.readouterr()) == (0, load("1.5.1/tosa-int-0.tosa").text(), "")
