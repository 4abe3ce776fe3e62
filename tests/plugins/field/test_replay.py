"""The script of a device, line by line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from executorch_goldens import cli
from executorch_goldens.cli import ERROR
from executorch_goldens_plugins.field.format import FrozenProgram, FrozenSample, FrozenTensor
from executorch_goldens_plugins.field.reading import Corpus
from executorch_goldens_plugins.field.replay import LISTING
from executorch_goldens_plugins.field.writing import Writer
from tests.plugins.field.corpora import CHANNELS_LAST, REPLAYED, STATE, XNNPACK, program

LINES = (REPLAYED / LISTING).read_text().splitlines()


def fields_of(word: str) -> list[list[str]]:
    return [line.split(" ")[1:] for line in LINES if line.split(" ")[0] == word]


def test_every_program_of_executorch_is_listed_and_no_delegate_by_itself() -> None:
    assert LINES[0] == "goldens-replay 1"
    assert [(name, backends) for name, _, backends in fields_of("program")] == [
        ("tosa-bf16/linear/program", "TOSABackend"),
        ("xnnpack-fp32/conv2d-grouped-dilated/program", "XnnpackBackend"),
        ("xnnpack-fp32/running-state/program", "XnnpackBackend"),
    ]
    assert {fields[0] for fields in fields_of("step")} == {"forward"}
    assert ["xnnpack-fp32/running-state/program/third-step"] in fields_of("sample")
    steps = [len(sample.steps) for sample in program(STATE, "program", REPLAYED).samples]
    assert len(fields_of("step")) == sum(steps) + 8


def test_files_have_the_bytes_of_tensors_as_they_are_in_memory() -> None:
    at = LINES.index("sample xnnpack-fp32/conv2d-grouped-dilated/program/drawn")
    word, dtype, shape, order, file = LINES[at + 2].split(" ")
    assert (word, dtype, shape, order) == ("input", "float32", "1,4,10,12", "0,2,3,1")
    image = np.frombuffer((REPLAYED / file).read_bytes(), "<f4").reshape(1, 10, 12, 4).transpose(0, 3, 1, 2)
    (given,) = program(CHANNELS_LAST, "program", REPLAYED).samples[3].steps[0]
    assert np.array_equal(image, given.tensor().array())
    word, dtype, shape, order, file, _, expected, tolerance = LINES[at + 3].split(" ")
    assert (word, dtype, shape, order) == ("output", "float32", "1,3,3,2", "0,2,3,1")
    output = np.frombuffer((REPLAYED / file).read_bytes(), "<f4").reshape(1, 3, 2, 3).transpose(0, 3, 1, 2)
    eager = np.frombuffer((REPLAYED / expected).read_bytes(), "<f4").reshape(1, 3, 3, 2)
    far = np.frombuffer((REPLAYED / tolerance).read_bytes(), "<f8").reshape(1, 3, 3, 2)
    assert (np.abs(output - eager) <= far).all()


def test_a_listing_that_is_not_what_the_manifest_says_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Writer(tmp_path / "corpus") as writer:
        writer.add(XNNPACK, ["one", "other"], [program(XNNPACK, "program")])
        writer.finish({}, [])
    listing = tmp_path / "corpus" / LISTING
    listing.write_text(listing.read_text().replace("step forward", "step backward", 1))
    assert cli.main(["thaw", str(tmp_path / "corpus"), "--outputs", str(tmp_path)]) == ERROR
    said = capsys.readouterr().err
    assert f"{listing}: was changed: its digest is not the one in corpus.json" in said
    listing.unlink()
    assert cli.main(["thaw", str(tmp_path / "corpus"), "--outputs", str(tmp_path)]) == ERROR
    assert f"{listing}: is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"samples": (FrozenSample("a b", ((),)), FrozenSample("a-b", ((),)))}, "two samples of one folder"),
        ({"samples": (FrozenSample("..", ((),)),)}, "cannot be the name of a file or folder"),
        (
            {"samples": (FrozenSample("a", ((),), methods=("two words",)),)},
            "'two words' is no name of a method",
        ),
        ({"backends": ("A,B",)}, "'A,B' is no name of a method, of a backend or of a data file"),
    ],
)
def test_what_a_line_cannot_say_is_refused(tmp_path: Path, changes: dict[str, object], what: str) -> None:
    frozen = dataclasses.replace(program(XNNPACK, "program"), **changes)  # type: ignore[arg-type]
    with Writer(tmp_path / "new") as writer, pytest.raises(ValueError, match=what):
        writer.add(XNNPACK, ["one", "other"], [frozen])


def test_methods_are_as_many_as_steps_and_forward_where_none_is_named(tmp_path: Path) -> None:
    value = FrozenTensor("int8", (1,), b"1")
    with pytest.raises(ValueError, match="methods and steps are not as many"):
        FrozenSample("example", ((value,), (value,)), methods=("prefill",))
    assert [method for method, _ in FrozenSample("example", ((value,), ())).calls()] == ["forward", "forward"]
    sequence = FrozenSample("example", ((value,), (value,)), methods=("prefill", "decode"))
    with Writer(tmp_path / "corpus") as writer:
        writer.add(XNNPACK, ["one", "other"], [FrozenProgram("program", "device", (), b"pte", (sequence,))])
        writer.finish({}, [])
    lines = (tmp_path / "corpus" / LISTING).read_text().splitlines()
    assert [line for line in lines if line.startswith("step")] == ["step prefill", "step decode"]
    corpus = Corpus.load(tmp_path / "corpus")
    corpus.check()
    assert corpus.program(corpus.manifest.cells[0].programs[0]).samples == (sequence,)
