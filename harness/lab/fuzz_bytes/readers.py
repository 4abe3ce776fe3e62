"""Everything that reads files of strangers, each with the real files that its mutations are made of."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered
from executorch_goldens.decode import DecodeError, SchemaError, decode
from executorch_goldens.decode.schema import load
from executorch_goldens.decode.schemas import PLACES, Schemas
from executorch_goldens.diff.payloads import compare
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import decisions, equality, golden, roots
from executorch_goldens.goldens.decisions import DecisionError, Decisions
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.inventory import InventoryError
from executorch_goldens.goldens.outline import outline
from executorch_goldens.goldens.record import MANIFEST, TRACE, Record
from executorch_goldens.results import merging
from executorch_goldens.results import rows as results
from executorch_goldens.results.merging import MergeError
from executorch_goldens.results.proposals import CellFile, ProposalError
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.running import core
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.releases import MatrixError
from executorch_goldens.sweep import seconds
from executorch_goldens.sweep.seconds import Remembered, SecondsError
from executorch_goldens.sweep.store import Store, StoreError, signed
from executorch_goldens_plugins.downstream import golden as compiled
from executorch_goldens_plugins.downstream.golden import CONTENTS, CompiledGoldenError
from executorch_goldens_plugins.downstream.verdicts import judge as judge_compiled
from executorch_goldens_plugins.explorer import origins
from executorch_goldens_plugins.explorer.origins import OriginsError
from executorch_goldens_plugins.merge.summary import ReviewSummary
from lab import REPOSITORY
from lab.fielded import goldens as fielded
from lab.fielded import page
from lab.fielded.goldens import Pair
from lab.fuzz_bytes import corpora
from lab.fuzz_bytes.reader import DATA, HERE, Reader, files, written
from lab.seconds.command import measured

RESULTS = DATA / "report_results"
RELEASE = REPOSITORY / "goldens" / "1.4.1"

#: Goldens that mutations are made of: of both backends, quantized and not, of a failure, with several delegates.
GOLDENS = ("tosa-fp/linear", "tosa-int/cat-h-v", "xnnpack-int8/linear", "tosa-fp/two-delegates")


def read_payload(data: bytes, folder: Path) -> None:
    decoded = decode(data, schemas=Schemas.installed())
    decoded.constants()
    text = decoded.text()
    read = outline(text)
    # Its original, and the allowed differences.
    compare(read, outline(decoded))


def schema_files() -> list[bytes]:
    places = Schemas.installed().places
    return [
        (place / relative).read_bytes()
        for place in places
        for names in PLACES.values()
        for relative in names
        if (place / relative).is_file()
    ]


def read_schema(data: bytes, folder: Path) -> None:
    load.__wrapped__(written(folder / "schema.fbs", data))


@functools.cache
def golden_of(cell: str) -> Record:
    record = golden.read(golden.file_of(RELEASE, Cell(*cell.split("/"))))
    assert record is not None
    return record


def golden_files(*names: str) -> list[bytes]:
    """Return texts of goldens; each begins with a line that says which it is."""
    found = []
    for cell in GOLDENS:
        for name, text in golden_of(cell).texts().items():
            if not names or name in names:
                found.append(f"{cell}/{name}\n{text}".encode())
    return found


def read_golden(data: bytes, folder: Path) -> None:
    """Read a golden with one mutated text and a matching digest, as a person can write one."""
    head, _, content = data.partition(b"\n")
    cell, _, name = head.decode(errors="replace").rpartition("/")
    if cell not in GOLDENS or name not in golden_of(cell).texts():
        cell, name = GOLDENS[0], MANIFEST
    reviewed, text = golden_of(cell), content.decode(errors="replace")
    facts, sections = dict(reviewed.facts), dict(reviewed.sections)
    if name == MANIFEST:
        facts = dict(line.partition(": ")[::2] for line in text.splitlines())
    else:
        sections[name] = text
    read_record(Record.in_order(facts.items(), sections).text().encode(), folder)
    read = golden.read(folder / "golden.txt")
    assert read is not None
    use_golden(read, reviewed)


def read_record(data: bytes, folder: Path) -> None:
    """Read a golden with a mutated file."""
    golden.read(written(folder / "golden.txt", data))


def records() -> list[bytes]:
    return [golden_of(cell).text().encode() for cell in GOLDENS]


def use_golden(read: Record, reviewed: Record) -> None:
    """Use a golden as runs, reviews and reports do."""
    equality.equal(read, reviewed)
    equality.confirmed(read, reviewed)
    equality.confirmed(reviewed, read)
    assert read.digest
    assert read.trace is not None
    assert read.inventory is not None


def configurations() -> list[bytes]:
    tables = (REPOSITORY / "pyproject.toml").read_text().partition("[tool.goldens]")[2]
    own = "[tool.goldens]" + tables.partition("[tool.ruff]")[0]
    every = """[tool.goldens]
models = ["models", "tests.support.zoo"]
goldens = "goldens"
targets = ["tosa-fp", "xnnpack-int8"]
releases = ["1.4.1", "1.5.1"]
variations = "quick"
jobs = 2
export-timeout = 60.5
sweeps = "build/sweeps"
store = "build/store"

[tool.goldens.tolerances]
tosa-fp = 1e-5

"""
    example = (DATA / "example_project" / "pyproject.toml").read_bytes()
    return [own.encode(), every.encode(), example]


def read_configuration(data: bytes, folder: Path) -> None:
    written(folder / config.FILE, data)
    found = config.load(folder)
    found.zoos(None)
    found.import_paths()


def read_matrix(data: bytes, folder: Path) -> None:
    matrix = releases.load.__wrapped__(written(folder / "releases.toml", data))
    for release in matrix.releases.values():
        release.requirements()
        release.stack()


def matrices() -> list[bytes]:
    """Return the whole, and the first release."""
    text = releases.MATRIX.read_text()
    return [text.encode(), "\n[releases.".join(text.split("\n[releases.")[:2]).encode()]


def result_lines() -> list[bytes]:
    return files("*/*/results.jsonl", under=RESULTS)


def read_results(data: bytes, folder: Path) -> None:
    rows = results.read(written(folder / results.FILE, data))
    "\n".join(ReviewSummary(rows, (), rows).markdown())
    measured(rows)


def read_provenance(data: bytes, folder: Path) -> None:
    (folder / "results").mkdir(exist_ok=True)
    written(folder / "results" / "run.json", data)
    came = Provenance.load(folder / "results")
    came.selection()
    came.write(folder / "results")


#: Of a cell that may be recorded: its golden-to-be is beside the proposal.
PROPOSED = "xnnpack-fp32/permute-reshape-sum"


def proposals() -> list[bytes]:
    return files(f"stock/1.2.0/{PROPOSED}/cell.json", under=RESULTS)


def read_proposal(data: bytes, folder: Path) -> None:
    place = folder / PROPOSED
    if not place.is_dir():
        shutil.copytree(RESULTS / "stock" / "1.2.0" / PROPOSED, place)
    proposal = CellFile.load(written(place / "cell.json", data).parent).proposal
    if proposal is None:
        return
    if proposal.content is not None:
        proposal.proposed()
    proposal.made()


def read_evidence(data: bytes, folder: Path) -> None:
    (folder / "evidence").mkdir(exist_ok=True)
    name, _, content = data.partition(b"\n")
    for each, path in evidence_files().items():
        (folder / "evidence" / each).write_bytes(path)
    written(folder / "evidence" / ("cell.npz" if b"npz" in name else "cell.json"), content)
    found = CellFile.load(folder / "evidence", arrays=True).evidence
    for tensor in found.tensors:
        (tensor.actual.sum(), tensor.name + tensor.where)
    " ".join(
        [
            *itertools.chain(*found.message),
            *itertools.chain(*found.agreeing),
            *found.commands.values(),
            *found.after,
        ]
    )


@functools.cache
def evidence_files() -> Mapping[str, bytes]:
    folder = RESULTS / "stock" / "1.2.0" / "tosa-fp" / "equal-buffers"
    return {name: (folder / name).read_bytes() for name in ("cell.json", "cell.npz")}


def evidences() -> list[bytes]:
    return [b"cell.json\n" + evidence_files()["cell.json"]]


def read_origins(data: bytes, folder: Path) -> None:
    written(folder / origins.FILE, data)
    found = origins.read(folder)
    if found is not None:
        " ".join(found.text(number, value) for number, each in enumerate(found.delegates) for value in each)


def origin_files() -> list[bytes]:
    return [(RESULTS / "stock" / "1.2.0" / "tosa-int" / "cat-h-v" / "plugins" / origins.FILE).read_bytes()]


def tensor_files() -> list[bytes]:
    """Return the real archive, and the same without compression, so that mutations reach the arrays."""
    whole = evidence_files()["cell.npz"]
    plain = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(plain, "w") as target:
        for member in source.infolist():
            target.writestr(member.filename, source.read(member))
    return [b"cell.npz\n" + whole, b"cell.npz\n" + plain.getvalue()]


#: A key of the store.
KEY = f"exports/{'0' * 64}/{'0' * 64}"


def store_entries() -> list[bytes]:
    """Return the content of entries, decompressed."""
    return files("entry-*", under=HERE / "seeds")


def read_entry(data: bytes, folder: Path) -> None:
    """Read an entry with a digest that fits."""
    read_whole_entry(signed(KEY, zlib.compress(data, 1)), folder)


def read_whole_entry(data: bytes, folder: Path) -> None:
    store = Store(folder / "store")
    store.add(KEY, data)
    outcome = store.get(KEY, Cell("tosa-fp", "a"), "seed0-heap0")
    if outcome is not None and isinstance(outcome.result, Artifact):
        use_artifact(outcome.result.result)


def use_artifact(result: Lowered | Failure) -> None:
    """Use an artifact as judging does before it decodes it."""
    if isinstance(result, Failure):
        result.facts()
        return
    for sample in result.samples:
        for tensor in (*sample.expected, *sample.outputs, *sample.spreads):
            tensor.wide()


def whole_entries() -> list[bytes]:
    return [signed(KEY, zlib.compress(data)) for data in store_entries()]


def shard_files() -> list[bytes]:
    folder = RESULTS / "stock" / "1.3.1"
    found = [f"{name}\n".encode() + (folder / name).read_bytes() for name in ("run.json", "results.jsonl")]
    return found


def read_shard(data: bytes, folder: Path) -> None:
    """Merge a shard with one mutated file."""
    part, target = folder / "part", folder / "merged"
    for each in (part, target):
        shutil.rmtree(each, ignore_errors=True)
    for whole in shard_files():
        name, _, content = whole.partition(b"\n")
        written(part / name.decode(), content)
    head, _, mutated = data.partition(b"\n")
    named = head.decode(errors="replace")
    written(part / (named if named in ("run.json", "results.jsonl") else "run.json"), mutated)
    for parts in merging.find([part]).values():
        merged = merging.merge(parts, target)
        merged.core_seconds()
        merged.exports()


def read_seconds(data: bytes, folder: Path) -> None:
    written(folder / seconds.TABLE, data)
    seconds.committed(folder)
    written(folder / seconds.LOCAL, data)
    Remembered(folder).over(seconds.Seconds({}))


def second_tables() -> list[bytes]:
    local = b'{"tosa-fp/linear": [1.5, 2], "tosa-int/linear": [0.75]}\n'
    whole = (REPOSITORY / "goldens" / "1.5.1" / seconds.TABLE).read_bytes()
    return [b"".join(whole.splitlines(keepends=True)[:30]), local]


def read_core(data: bytes, folder: Path) -> None:
    core.read(written(folder / core.FILE, data))


def read_zoo(data: bytes, folder: Path) -> None:
    written(folder / roots.ZOO, data)
    roots.check(folder, ("models",), updating=True)


def read_decisions(data: bytes, folder: Path) -> None:
    """Read decisions, and use them as a run and ``goldens review --expect`` do."""
    written(folder / decisions.FILE, data)
    stated = decisions.read(folder)
    for release in {version for each in stated for version in each.releases}:
        found = Decisions(folder, release, stated)
        for cell in GOLDENS:
            found.missing(Cell(*cell.split("/")), golden_of(cell))
    decisions.write(folder, stated)
    assert decisions.joined(decisions.read(folder)) == decisions.joined(stated)


def decision_files() -> list[bytes]:
    """Return the beginning of the zoo's own, and a small one of other kinds."""
    whole = (REPOSITORY / "goldens" / decisions.FILE).read_bytes()
    end = whole.index(b"[[decision]]", 2000)
    return [
        whole[:end],
        b'[[decision]]\nwhat = "undelegated"\nwhy = "runs all of it itself"\nreleases = ["1.4.1", "1.10.0"]\n'
        b'cells = ["tosa-int/sum"]\n[[decision]]\nwhat = "known"\nverdict = "corrupt"\ncause = "output \xe2\x80\xa6"\n'
        b'releases = ["1.4.1"]\ncells = ["tosa-int/a", "tosa-int/b"]\n[[decision]]\nwhat = "rejected"\ncause = "0"\n'
        b'why = "no"\n[[decision]]\nwhat = "budget"\nlimits = { memory = 8000, sqnr = 20.5 }\ncells = ["*/a"]\n',
    ]


def cores() -> list[bytes]:
    return [b"".join((RELEASE / core.FILE).read_bytes().splitlines(keepends=True)[:40])]


def zoos() -> list[bytes]:
    return [(REPOSITORY / "goldens" / roots.ZOO).read_bytes()]


#: A pair that has lines of several kinds.
PAIR = Pair("1.2.0", "1.1.0")


def read_fielded(data: bytes, folder: Path) -> None:
    written(PAIR.file(folder), data)
    lines = fielded.read(PAIR, folder)
    assert lines is not None
    list(page.table({PAIR: lines}, (PAIR.run, PAIR.made)))
    list(page.broken({PAIR: lines}, (PAIR.run, PAIR.made)))


def read_compiled(data: bytes, folder: Path) -> None:
    """Read a compiled golden, with a digest that fits, and compare the real one with it."""
    body = data.rpartition(f"{CONTENTS}: sha256 ".encode())[0]
    seal = f"{CONTENTS}: sha256 {hashlib.sha256(body).hexdigest()}\n".encode()
    found = compiled.read(written(folder / "x.txt", body + seal))
    assert found is not None
    found.text()
    before = compiled.read(COMPILED)
    assert before is not None
    judge_compiled(Cell("ethos-u55-128", "linear"), {"seed0": before.delegates}, found, before.head)


#: It is compared with what is made now.
COMPILED = REPOSITORY / "goldens" / "compiled" / "1.4.1" / "ethos-u55-128" / "linear.txt"


def compiled_goldens() -> list[bytes]:
    return [COMPILED.read_bytes()]


DECODED = (DecodeError,)

READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        Reader("tosa", lambda: files("**/*.tosa"), read_payload, DECODED, is_text=False),
        Reader("xnnpack", lambda: files("**/*.xnnpack"), read_payload, DECODED, is_text=False),
        Reader("pte", lambda: files("**/*.pte"), read_payload, DECODED, is_text=False),
        Reader("schema", schema_files, read_schema, (SchemaError,)),
        Reader("golden", golden_files, read_golden, (GoldenError, InventoryError)),
        Reader("record", records, read_record, (GoldenError,)),
        Reader("manifest", lambda: golden_files(MANIFEST), read_golden, (GoldenError, InventoryError)),
        Reader("trace", lambda: golden_files(TRACE), read_golden, (GoldenError, InventoryError)),
        Reader("tool.goldens", configurations, read_configuration, (config.ConfigError,)),
        Reader("releases.toml", matrices, read_matrix, (MatrixError,)),
        Reader("results", result_lines, read_results, (UsageError,)),
        Reader("run", lambda: files("*/*/run.json", under=RESULTS), read_provenance, (UsageError,)),
        Reader("proposal", proposals, read_proposal, (ProposalError,)),
        Reader("evidence", evidences, read_evidence, (ProposalError,)),
        Reader("origins", origin_files, read_origins, (OriginsError,)),
        Reader("tensors", tensor_files, read_evidence, (ProposalError,), is_text=False),
        Reader("entry", store_entries, read_entry, (StoreError,), is_text=False),
        Reader("whole-entry", whole_entries, read_whole_entry, (StoreError,), is_text=False),
        Reader("shard", shard_files, read_shard, (UsageError, MergeError)),
        Reader("seconds", second_tables, read_seconds, (SecondsError,)),
        Reader("core", cores, read_core, (core.CoreError,)),
        Reader("zoo", zoos, read_zoo, (GoldenError,)),
        Reader(
            "fielded", lambda: [PAIR.file(REPOSITORY / "goldens").read_bytes()], read_fielded, (GoldenError,)
        ),
        Reader("compiled", compiled_goldens, read_compiled, (CompiledGoldenError,)),
        Reader("decisions.toml", decision_files, read_decisions, (DecisionError,)),
        *corpora.READERS,
    )
}
