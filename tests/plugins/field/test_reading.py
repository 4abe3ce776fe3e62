"""A corpus: written values are read, damage is named, whoever wrote it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_goldens import cli
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import ERROR
from executorch_goldens_plugins.field.format import (
    MANIFEST,
    OBJECTS,
    SEAL,
    CorpusError,
    FrozenSample,
    FrozenTensor,
)
from executorch_goldens_plugins.field.reading import Corpus
from executorch_goldens_plugins.field.writing import Writer
from tests import REPOSITORY
from tests.plugins.field.corpora import FROZEN, REPLAYED, XNNPACK, edited, first_object, program, sealed


def rewritten(frozen: Path, folder: Path) -> Corpus:
    """Return a corpus whose `folder` has another one's content."""
    corpus = Corpus.load(frozen)
    corpus.check()
    with Writer(folder) as writer:
        for entry in corpus.manifest.cells:
            programs = [corpus.program(each) for each in entry.programs]
            writer.add(Cell.named(entry.cell), entry.variations, programs)
        writer.finish(corpus.manifest.made_with, corpus.manifest.patches)
    return Corpus.load(folder)


def test_a_corpus_that_was_read_is_written_with_the_same_bytes(tmp_path: Path) -> None:
    rewritten(REPLAYED, tmp_path / "again")
    written = {str(path.relative_to(tmp_path / "again")) for path in (tmp_path / "again").rglob("*")}
    assert written == {str(path.relative_to(REPLAYED)) for path in REPLAYED.rglob("*")}
    for name in written:
        if (REPLAYED / name).is_file():
            assert (tmp_path / "again" / name).read_bytes() == (REPLAYED / name).read_bytes()


def test_a_corpus_of_format_1_has_the_same_programs_in_format_2(tmp_path: Path) -> None:
    before, after = Corpus.load(FROZEN), rewritten(FROZEN, tmp_path / "again")
    assert (before.manifest.format, after.manifest.format) == (1, 2)
    for one, other in zip(before.manifest.cells, after.manifest.cells, strict=True):
        for old, new in zip(one.programs, other.programs, strict=True):
            named = tuple(
                dataclasses.replace(sample, methods=("forward",) * len(sample.steps))
                for sample in before.program(old).samples
            )
            assert dataclasses.replace(before.program(old), samples=named) == after.program(new)


def test_tensors_of_format_1_are_in_c_order_whatever_their_strides_are(folder: Path) -> None:
    corpus = Corpus.load(folder)
    (given,) = corpus.manifest.cells[0].programs[0].samples[0].steps[0]
    strides = [192, 1, 24, 3]
    edited(folder, lambda manifest: _tensor(manifest).update(strides=strides))
    found = (
        Corpus.load(folder).program(Corpus.load(folder).manifest.cells[0].programs[0]).samples[0].steps[0][0]
    )
    assert found.strides == tuple(strides)
    assert found.data == (folder / OBJECTS / given.sha256).read_bytes()


@pytest.mark.parametrize("frozen", [FROZEN, REPLAYED])
def test_sha256sum_and_python_alone_read_a_corpus(frozen: Path) -> None:
    # What docs/plugins/field.md promises.
    subprocess.run(["sha256sum", "--check", "--quiet", SEAL], cwd=frozen, check=True)
    manifest = json.loads((frozen / MANIFEST).read_bytes())
    for cell in manifest["cells"]:
        for each in cell["programs"]:
            data = (frozen / OBJECTS / each["sha256"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == each["sha256"]
            for sample in each["samples"]:
                for tensor in (*sample["steps"][0], *sample["outputs"], *sample["expected"]):
                    raw = (frozen / OBJECTS / tensor["sha256"]).read_bytes()
                    bits = "<u2" if tensor["dtype"] == "bfloat16" else tensor["dtype"]
                    np.frombuffer(raw, bits).reshape(tensor["shape"])


def test_a_corpus_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    frozen = program(XNNPACK, "program")
    with Writer(tmp_path / "new") as writer:
        writer.add(XNNPACK, ["one", "other"], [frozen])
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_what_a_corpus_cannot_hold_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    frozen = program(XNNPACK, "program")
    narrow = (FrozenTensor("bfloat16", (1,), b"12"),)
    odd = dataclasses.replace(
        frozen, data=b"odd", samples=(FrozenSample("example", ((),), narrow, narrow, (0.0,)),)
    )
    with Writer(tmp_path / "new") as writer:
        with pytest.raises(ValueError, match="bfloat16 expected, which nothing can be measured by"):
            writer.add(XNNPACK, ["one", "other"], [odd])
        writer.add(XNNPACK, ["one", "other"], [frozen])
        writer.finish({}, [])
    Corpus.load(tmp_path / "new").check()
    assert not (tmp_path / "new" / OBJECTS / hashlib.sha256(b"odd").hexdigest()).exists()


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        (("int4", (1,), b"1"), "no dtype 'int4' is known"),
        (("float32", (1 << 40,), b"1234"), "takes 4,398,046,511,104 bytes, not 4"),
        (("int8", (2, 3), b"123456", (2, 1)), "do not fit the shape"),
    ],
)
def test_a_tensor_that_does_not_hold_together_is_none(facts: tuple[Any, ...], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        FrozenTensor(*facts)


@pytest.mark.parametrize("there", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_exists_is_never_written_to(tmp_path: Path, there: Callable[[Path], None]) -> None:
    there(tmp_path / "corpus")
    with pytest.raises(CorpusError, match="exists, and a corpus is never changed"):
        Writer(tmp_path / "corpus")
    with pytest.raises(CorpusError, match="cannot be written"):
        Writer(tmp_path / "no such" / "corpus")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _link(path: Path) -> None:
    outside = path.parent.parent.parent / "outside"
    shutil.move(path, outside)
    path.symlink_to(outside)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "byte": (lambda folder: _flip(first_object(folder)), OBJECTS, "its SHA-256 is not its name"),
    "truncated": (lambda folder: os.truncate(first_object(folder), 100), OBJECTS, "has 100 bytes where"),
    "missing": (lambda folder: first_object(folder).unlink(), OBJECTS, "is missing"),
    "link": (lambda folder: _link(first_object(folder)), OBJECTS, "is a link, which is not followed"),
    "pipe": (lambda folder: _pipe(first_object(folder)), OBJECTS, "is no file"),
    "links": (lambda folder: _link(folder / OBJECTS), OBJECTS, "is a link, which is not followed"),
    "manifest": (lambda folder: _flip(folder / MANIFEST), MANIFEST, "one of them was changed"),
    "seal": (lambda folder: (folder / SEAL).unlink(), SEAL, "is missing"),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "", "is no corpus"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_corpus_is_one_error_that_names_the_file(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, file, what = DAMAGE[kind]
    damage(folder)
    assert cli.main(["thaw", str(folder), "--runtime", "/no/such/python"]) == ERROR
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(folder / file) in said
    assert what in said
    assert "copy it again" in said or kind == "no manifest"


def _first(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["cells"][0]["programs"][0]
    return found


def _tensor(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _first(manifest)["samples"][0]["steps"][0][0]
    return found


def _least(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a cell that takes few bytes."""
    sample = {"name": "example", "steps": [[]], "outputs": [], "expected": [], "tolerances": []}
    program = {**_first(manifest), "samples": [sample]}
    return {**manifest["cells"][0], "programs": [program]}


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer": (lambda m: m.update(format=3, more={}), "has format 3, and this harness reads 1 to 2"),
    "unknown field": (lambda m: m.update(run="rm"), "unknown field `run`"),
    "too many cells": (
        lambda m: m.update(cells=[_least(m)] * 10_001),
        "Expected `array` of length <= 10000",
    ),
    "no cell": (lambda m: m.update(cells=[]), "length >= 1"),
    "twice": (lambda m: m["cells"].append(m["cells"][0]), "is there twice"),
    "path": (lambda m: m["cells"][0].update(cell="../x"), "cannot be the name of a file"),
    "no cell's name": (lambda m: m["cells"][0].update(cell="linear"), "is not TARGET/CASE"),
    "digest": (lambda m: _first(m).update(sha256="../../outside"), "matching regex"),
    "engine": (lambda m: _first(m).update(engine="sh"), "no engine 'sh' is known"),
    "size": (lambda m: _first(m).update(size=1 << 40), "`int` <= 1073741824"),
    "dtype": (lambda m: _tensor(m).update(dtype="object"), "'object'"),
    "huge": (lambda m: _tensor(m).update(shape=[1 << 20, 1 << 20]), "more than 268,435,456"),
    "negative": (lambda m: _tensor(m).update(shape=[-1]), "`int` >= 0"),
    "dimensions": (lambda m: _tensor(m).update(shape=[1] * 17), "length <= 16"),
    "strides": (
        lambda m: _tensor(m).update(strides=[9 for _ in _tensor(m)["shape"]]),
        "do not fit the shape",
    ),
    "outputs": (lambda m: _first(m)["samples"][0]["outputs"].clear(), "the numbers of"),
    "tolerance": (lambda m: _first(m)["samples"][0].update(tolerances=[-1.0]), ">= 0"),
    "one variation": (lambda m: m["cells"][0].update(variations=["seed0"]), "length >= 2"),
    "colours": (lambda m: m["cells"][0].update(cell="\x1b[2J/x"), "cannot be the name of a file"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_manifest_that_does_not_hold_together_is_one_error(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, what = HOSTILE[kind]
    edited(folder, edit)
    assert cli.main(["thaw", str(folder), "--runtime", "/no/such/python"]) == ERROR
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(folder / MANIFEST) in said
    assert what in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"format": 1, "x": ' + b"[" * 100_000, b"\xff", b"[]", b"", b"null"]
)
def test_a_manifest_that_is_none_is_refused(folder: Path, data: bytes) -> None:
    sealed(folder, data)
    with pytest.raises(CorpusError, match="is no manifest of a corpus") as raised:
        Corpus.load(folder)
    assert raised.value.path == folder / MANIFEST


def test_reading_imports_neither_torch_nor_a_zoo() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from executorch_goldens_plugins.field import thaw\n"
        "from executorch_goldens_plugins.field.reading import Corpus\n"
        f"Corpus.load(Path({str(FROZEN)!r})).check()\n"
        "print([name for name in ('torch', 'executorch', 'models', 'tosa_reference_model') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert said.stdout == "[]\n"
