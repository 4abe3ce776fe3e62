"""Programs with data files, in a corpus."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from executorch_goldens_plugins.field.format import OBJECTS, CorpusError, FrozenProgram
from executorch_goldens_plugins.field.reading import Corpus
from executorch_goldens_plugins.field.replay import LISTING
from executorch_goldens_plugins.field.writing import Writer
from tests.plugins.field.corpora import XNNPACK, program

WEIGHTS = b"the weights of a program"


def written(folder: Path, name: str = "weights.ptd") -> FrozenProgram:
    """Write a corpus of one program that needs a data file; return the program."""
    one = dataclasses.replace(program(XNNPACK, "program"), files=((name, WEIGHTS),))
    with Writer(folder) as writer:
        writer.add(XNNPACK, ["one", "other"], [one])
        writer.finish({}, [])
    return one


def test_data_files_come_back_and_are_listed_for_a_device(tmp_path: Path) -> None:
    one = written(tmp_path / "corpus")
    corpus = Corpus.load(tmp_path / "corpus")
    corpus.check()
    ((entry,),) = (cell.programs for cell in corpus.manifest.cells)
    assert corpus.program(entry).files == one.files
    lines = (tmp_path / "corpus" / LISTING).read_text().splitlines()
    assert f"data weights.ptd {OBJECTS}/{entry.files[0].sha256}" in lines


def test_a_data_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "corpus")
    corpus = Corpus.load(tmp_path / "corpus")
    digest = corpus.manifest.cells[0].programs[0].files[0].sha256
    (tmp_path / "corpus" / OBJECTS / digest).write_bytes(WEIGHTS[::-1])
    with pytest.raises(CorpusError, match="was changed: its SHA-256 is not its name"):
        corpus.check()


def test_a_data_file_whose_name_no_listing_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="'my weights' is no name of a method, of a backend or of a data file"
    ):
        written(tmp_path / "corpus", "my weights")
