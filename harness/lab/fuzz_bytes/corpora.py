"""Readers of frozen programs: corpora of both formats, a program's outputs, and shipped programs."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from executorch_goldens_plugins.field import comparing, running
from executorch_goldens_plugins.field.format import MANIFEST, OBJECTS, SEAL, CorpusError
from executorch_goldens_plugins.field.reading import Corpus, cell_of
from lab.fielded import corpus as shipped
from lab.fielded.judging import judge
from lab.fuzz_bytes.reader import DATA, Reader, files, written

#: Of format 1, and of format 2 with methods and recorded outputs; the first is read where its manifest is not mutated.
CORPORA = tuple(DATA / "corpora" / name for name in ("linear-1.4.1", "replayed-1.4.1"))
CORPUS = CORPORA[0]


def read_corpus(data: bytes, folder: Path) -> None:
    """Read a corpus whose manifest is mutated, with a digest that fits; the programs of all are there."""
    copied = corpus_in(folder)
    written(copied / MANIFEST, data)
    written(copied / SEAL, f"{hashlib.sha256(data).hexdigest()}  {MANIFEST}\n".encode())
    use_corpus(copied)


def read_whole_corpus(data: bytes, folder: Path) -> None:
    """Read a corpus with a mutated manifest, digest or program; the first line names it."""
    copied = corpus_in(folder)
    name, _, content = data.partition(b"\n")
    files = {MANIFEST: copied / MANIFEST, SEAL: copied / SEAL}
    changed = files.get(name.decode(errors="replace"), first_object(copied))
    before = changed.read_bytes()
    written(changed, content)
    try:
        use_corpus(copied)
    finally:
        written(changed, before)


def corpus_in(folder: Path) -> Path:
    copied = folder / "corpus"
    if not copied.is_dir():
        shutil.copytree(CORPUS, copied)
        for other in CORPORA[1:]:
            shutil.copytree(other / OBJECTS, copied / OBJECTS, dirs_exist_ok=True)
    return copied


def manifests() -> list[bytes]:
    """Return a manifest of each format."""
    return [(corpus / MANIFEST).read_bytes() for corpus in CORPORA]


def use_corpus(folder: Path) -> None:
    """Do the steps of thaw before it runs a program."""
    corpus = Corpus.load(folder)
    corpus.check()
    for entry in corpus.manifest.cells:
        str(cell_of(entry))
        for each in entry.programs:
            corpus.program(each)


def corpus_files() -> list[bytes]:
    """Return the manifest, its digest and a program."""
    names = (MANIFEST, SEAL, str(first_object(CORPUS).relative_to(CORPUS)))
    return [f"{name}\n".encode() + (CORPUS / name).read_bytes() for name in names]


def first_object(folder: Path) -> Path:
    """Return the file of the first program."""
    corpus = Corpus.load(CORPUS)
    return folder / OBJECTS / corpus.manifest.cells[0].programs[0].sha256


def read_outputs(data: bytes, folder: Path) -> None:
    """Read a program's list of outputs: a malicious one may list anything."""
    corpus = Corpus.load(CORPUS)
    frozen = corpus.program(corpus.manifest.cells[0].programs[0])
    written(folder / "out-0.json", data)
    written(folder / "out-0-0", frozen.samples[0].outputs[0].data)
    answer = {"status": 0, "timed_out": False, "seconds": 0.0}
    ran = running._taken(frozen, folder, answer, running.ProgramLimits())
    comparing.compare(frozen, ran)


def output_lists() -> list[bytes]:
    corpus = Corpus.load(CORPUS)
    outputs = corpus.manifest.cells[0].programs[0].samples[0].outputs
    return [json.dumps([{"dtype": output.dtype, "shape": list(output.shape)} for output in outputs]).encode()]


def read_program(data: bytes, folder: Path) -> None:
    """Read a shipped program with a matching digest, and judge the result."""
    head = shipped.MAGIC + hashlib.sha256(data).digest()
    found = shipped.read(written(folder / "x.program", head + data))
    ran = [
        running.Ran(tuple(sample.outputs for sample in program.samples), "", "", 0.0)
        for program in found.programs
    ]
    judge(found, ran)


def programs() -> list[bytes]:
    """Return the shipped programs, without the head."""
    head = len(shipped.MAGIC) + shipped.DIGEST_BYTES
    return [data[head:] for data in files("*.program", under=DATA / "payloads")]


READERS = (
    Reader("corpus", manifests, read_corpus, (CorpusError,)),
    Reader("whole-corpus", corpus_files, read_whole_corpus, (CorpusError,)),
    Reader("program", programs, read_program, (shipped.CorpusError,), is_text=False),
    # Whatever it is, it is a result.
    Reader("outputs", output_lists, read_outputs, ()),
)
