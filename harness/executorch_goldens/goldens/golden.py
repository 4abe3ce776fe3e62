"""The text of a golden: how an artifact becomes files for review, and how they are read and written.

A golden is a directory ``<root>/<target>/<case>/`` of text files. ``manifest.txt`` names the format, the release's
stack and ends with a digest over every file and every other line, so that a damaged or hand-edited golden is not taken
for a changed artifact. Directories are replaced whole: written aside, then renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from executorch_goldens import variations
from executorch_goldens.artifact import DELEGATE, STAGE, Artifact, Cell, Failure, Lowered, PassRun, Watched
from executorch_goldens.decode import Decoded, Schemas, decode
from executorch_goldens.decode.formats import layout_digest
from executorch_goldens.errors import FileError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens.goldens import accuracy, merging, parts, table
from executorch_goldens.goldens.table import TableError
from executorch_goldens.structure.outline import outline

#: Version of the layout and of the text forms; raise it when an old golden can no longer be compared.
FORMAT = 2

MANIFEST = "manifest.txt"
FAILURE = "failure.txt"
TRACE = "trace.txt"
GRAPH = "graph.txt"
#: The text of a program of several parts with a line for each (`executorch_goldens.goldens.parts`).
PARTS = "parts.txt"

#: The parameters and buffers of the modules that a build names, with a digest of each.
MODEL = "model.txt"

#: Manifest field of a compact golden that has its trace in short (`executorch_goldens.goldens.compact`).
PASSES = "passes"

#: Manifest fields that tell a reader how the golden came to be. They are not compared: a run with fewer seeds, or
#: without a patch that did not matter here, makes the same artifact, and a pass may reach it in a different way.
INFORMATIVE = ("patches", "shortcuts", "variations", "trace", PASSES, "kernels", "validated", accuracy.ERROR)

#: Manifest field with the digest of the payloads and the program that holds on every architecture
#: (`executorch_goldens.decode.layout`).
LAYOUT = "layout"

#: The text of a compact golden that has its quantities (`executorch_goldens.goldens.reading.quantities`).
COUNTED = "quantities.txt"

#: What fields of a manifest begin with that came after goldens without them were recorded, and lines of `COUNTED`;
#: `PARTS` and `MODEL` came later as well. What only one of two goldens says is not compared.
ADDED = (LAYOUT, accuracy.FIELD, accuracy.ERROR, PASSES, "kernels", "validated")
ADDED_COUNTS = ("duplicated ",)

#: Manifest field that names the architectures for which the digests of the payloads and the program hold; without it
#: they hold on `FIRST`. Where they are different on a further one, ``digests <architecture>`` has its own.
DIGESTS = "digests"
FIRST = "x86-64"

#: Ends the lines of the manifest that have a digest of bytes.
_DIGEST = re.compile(r" sha256 ([0-9a-f]{64})$", re.MULTILINE)
#: Begins these lines.
_OF_BYTES = re.compile(r"delegate \d+|pte|data .+")

#: What the manifest's field of a data file begins with.
DATA = "data "
#: Manifest field that says how a program was made that its case made by itself, and what is not known of it.
RECIPE = "recipe"

#: The stage of a trace that makes the program.
_PROGRAM = "pte"

#: Manifest field of a golden that is kept in a table (`executorch_goldens.goldens.table`), and what it says.
FORM, COMPACT = "form", "compact"

#: The manifest's last line holds the digest of everything else.
CONTENTS = "contents"

#: Manifest fields that every golden has.
NEEDED = ("variations", "shortcuts", CONTENTS)

#: Suffixes of directories that stand beside a golden only while it is being replaced or deleted.
ASIDE = durable.ASIDE
REPLACED = ".old~"
DELETED = ".gone~"

#: How often reading starts again because a different run replaced the golden, before that is an error.
ATTEMPTS = 100

Texts = Mapping[str, str]


@dataclass(frozen=True)
class MadeWith:
    """How an artifact was made: what a manifest says in addition to the artifact itself.

    Attributes
    ----------
    stack
        Distribution name to version: executorch, torch, torchao, tosa-tools.
    variations
        Names of the variations that agreed.
    numerics
        One line: what was checked, and to which bound.
    architecture
        Of the machine that exported.
    """

    stack: Mapping[str, str]
    variations: Sequence[str]
    numerics: str
    architecture: str = field(default_factory=lambda: here())


class GoldenError(FileError):
    """A golden, or a file of it, that cannot be used as it is."""


class ConflictError(GoldenError):
    """A golden that git could not merge, and left as it is on neither side."""


class UnwritableError(GoldenError):
    """A golden that cannot be written or deleted: that says nothing of what stands there."""


def render(artifact: Artifact, made_with: MadeWith) -> dict[str, str]:
    """Return the golden of an artifact: file name to text."""
    result = artifact.result
    texts = _render_failure(result) if isinstance(result, Failure) else _render_lowered(result)
    fields = [("format", str(FORMAT)), *made_with.stack.items()]
    fields.append(("patches", " ".join(artifact.patches) or "none"))
    fields.append(("shortcuts", " ".join(artifact.shortcuts) or "none"))
    fields.append(("variations", " ".join(made_with.variations)))
    if isinstance(result, Lowered):
        for index, delegate in enumerate(result.delegates):
            digest = hashlib.sha256(delegate.payload).hexdigest()
            size = len(delegate.payload)
            identity = f"{delegate.name} {delegate.backend_id}"
            fields.append((f"delegate {index}", f"{identity} {size} bytes sha256 {digest}"))
        fields.append(("pte", f"{len(result.pte)} bytes sha256 {result.pte_sha256}"))
        for name, content in result.data:
            digest = hashlib.sha256(content).hexdigest()
            fields.append((f"{DATA}{name}", f"{len(content)} bytes sha256 {digest}"))
        payloads = [delegate.payload for delegate in result.delegates]
        fields.append((LAYOUT, f"sha256 {layout(result.pte, payloads, Schemas.of(*result.schemas))}"))
        if made_with.architecture != FIRST:
            fields.append((DIGESTS, made_with.architecture))
    if isinstance(result, Lowered) and result.recipe:
        fields.append((RECIPE, result.recipe))
    fields.append(("numerics", made_with.numerics))
    if isinstance(result, Lowered):
        fields += [
            (f"{accuracy.FIELD}{at}", near.text) for at, near in enumerate(accuracy.nearnesses(result))
        ]
        if result.metric is not None:
            fields.append((f"{accuracy.FIELD}{result.metric.name}", accuracy.measure(result.metric)))
        if result.samples:
            fields.append((accuracy.ERROR, accuracy.error(accuracy.Accuracy.of(result).used)))
    if artifact.watched is not None:
        texts[TRACE] = trace_text(artifact.watched)
        fields.append(("trace", f"sha256 {hashlib.sha256(texts[TRACE].encode()).hexdigest()}"))
    if artifact.kernels:
        fields.append(("kernels", artifact.kernels))
    if isinstance(result, Lowered) and result.validation is not None:
        fields.append(("validated", result.validation.summary()))
    texts[MANIFEST] = "".join(f"{name}: {value}\n" for name, value in fields)
    return sealed(texts)


def _render_failure(failure: Failure) -> dict[str, str]:
    lines = []
    for name, value in failure.facts():
        # A message may hold half of a pair of UTF-16, which no file can.
        first, *rest = value.encode("utf-8", "backslashreplace").decode("utf-8").splitlines() or [""]
        lines += [f"{name}: {first}", *(f"  {line}" for line in rest)]
    return {FAILURE: "\n".join(lines) + "\n"}


def _render_lowered(lowered: Lowered) -> dict[str, str]:
    texts = {GRAPH: lowered.graph}
    outlines = {}
    for index, payload in enumerate(decode_delegates(lowered)):
        text = texts[f"delegate_{index}.{payload.kind}.txt"] = payload.text()
        if lowered.parts:
            outlines[lowered.delegates[index].name] = outline(text)
    if lines := list(parts.lines(lowered, outlines)):
        texts[PARTS] = "".join(f"{line}\n" for line in lines)
    texts["pte.txt"] = decode(lowered.pte, schemas=Schemas.of(*lowered.schemas)).text(delegates=False)
    if lowered.model:
        texts[MODEL] = "".join(f"{line}\n" for line in lowered.model)
    for name, content in lowered.data:
        texts[data_file(name)] = decode_data(content, lowered).text()
    return texts


def data_file(name: str) -> str:
    """Return the file of a golden that has a data file of the program as text.

    >>> data_file("_default_external_constant"), data_file("weights.ptd")
    ('data__default_external_constant.ptd.txt', 'data_weights.ptd.txt')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name.removesuffix(".ptd"))
    return f"data_{plain}.ptd.txt"


def decode_data(content: bytes, lowered: Lowered) -> Decoded:
    """Decode a data file of a program; raises as `decode_delegates`."""
    return decode(content, schemas=Schemas.of(*lowered.schemas))


def layout(pte: bytes, payloads: Iterable[bytes | memoryview], schemas: Schemas) -> str:
    """Return a digest of a program and its delegates' payloads, the same on every architecture.

    The bytes of a program are those of its payloads and the same bytes around them everywhere.

    Raises
    ------
    executorch_goldens.decode.DecodeError
        For a payload that is not what its identifier says.
    """
    digest = hashlib.sha256()
    around = pte
    for payload in payloads:
        of_payload = layout_digest(memoryview(payload), schemas)
        digest.update(of_payload)
        if payload:
            around = around.replace(payload, of_payload)
    digest.update(around)
    return digest.hexdigest()


def architecture(machine: str, system: str) -> str:
    """Return the name of an architecture as manifests have it: of a system too, where that is not Linux.

    Compilers differ as well, and a wheel is built by the compiler of its system.

    >>> architecture("x86_64", "Linux"), architecture("arm64", "Darwin"), architecture("aarch64", "Linux")
    ('x86-64', 'aarch64-darwin', 'aarch64')
    """
    names = {"x86_64": FIRST, "amd64": FIRST, "arm64": "aarch64"}
    name = names.get(machine.lower(), machine.lower())
    return name if system == "Linux" else f"{name}-{system.lower()}"


def here() -> str:
    """Return the name of the architecture that this process runs on; exports run on it as well."""
    return architecture(platform.machine(), platform.system())


def trace_text(watched: Watched) -> str:
    """Return a line for each pass that changed the graph and each stage: ``pipeline: name fingerprint``."""
    return "".join(f"{run.pipeline}: {run.name} {run.fingerprint}\n" for run in watched.passes if run.changed)


def read_trace(text: str) -> tuple[PassRun, ...]:
    r"""Read what `trace_text` wrote.

    >>> (run,) = read_trace("xnnpack: FuseBatchNormPass 0123456789ab\n")
    >>> run.pipeline, run.name, run.fingerprint, run.changed
    ('xnnpack', 'FuseBatchNormPass', '0123456789ab', True)
    """
    runs = []
    for line in text.splitlines():
        pipeline, _, run = line.partition(": ")
        name, _, fingerprint = run.partition(" ")
        runs.append(PassRun(pipeline, name, fingerprint, True))
    return tuple(runs)


def decode_delegates(lowered: Lowered) -> list[Decoded]:
    """Decode the payloads of all delegates, with the constants that the backend put into named data.

    Raises
    ------
    DecodeError, SchemaError
        If a payload is not what the schema of its release says, or if that is not found.
    """
    schemas = Schemas.of(*lowered.schemas)
    return [
        decode(delegate.payload, schemas=schemas, named_data=dict(delegate.named_data))
        for delegate in lowered.delegates
    ]


def compared(texts: Texts, other: Texts | None = None) -> dict[str, str]:
    """Return what is compared of `texts` with the golden `other`: what is the same wherever the same is made.

    That is every text but the trace, and of the manifest every line but the informative fields and the digest over
    everything. Bytes are compared by their digests where both goldens have digests of one architecture. Elsewhere the
    decoded texts, sizes and the layout have all that is the same on both. Of what is measured
    (`goldens.accuracy`), it is what is not the same in `other`. Without `other` it is what is compared with a
    golden of the same architecture that measured the same.
    """
    other = texts if other is None else other
    theirs = fields(other)
    shared = next((name for name in digests(texts) if name in digests(other)), None)
    of_bytes = iter(digests(texts)[shared] if shared is not None else ())
    lines = []
    for line in _lines(texts[MANIFEST]):
        name, _, value = line.rstrip("\n").partition(": ")
        if not _is_compared(name, value, theirs):
            continue
        if _OF_BYTES.fullmatch(name):
            digest = next(of_bytes, None)
            line = f"{name}: {_DIGEST.sub(f' sha256 {digest}' if digest else '', value)}\n"
        lines.append(line)
    kept = {name: text for name, text in texts.items() if name != TRACE}
    if COUNTED in kept and not _added_counts(other):
        kept[COUNTED] = "".join(line for line in _lines(kept[COUNTED]) if not line.startswith(ADDED_COUNTS))
    if PARTS in kept:
        its = other.get(PARTS)
        kept = _without(kept, PARTS) if its is None else {**kept, PARTS: parts.compared(kept[PARTS], its)}
    if MODEL in kept and MODEL not in other:
        kept = _without(kept, MODEL)
    return {**kept, MANIFEST: "".join(lines)}


def _without(texts: Texts, name: str) -> dict[str, str]:
    return {each: text for each, text in texts.items() if each != name}


def without_digests(texts: Texts) -> Texts:
    """Return texts without the digests of a manifest, for a person: what they are of is compared itself."""
    manifest = texts.get(MANIFEST)
    return texts if manifest is None else {**texts, MANIFEST: _DIGEST.sub("", manifest)}


def _is_compared(name: str, value: str, theirs: Mapping[str, str]) -> bool:
    """Whether a field of a manifest is compared with those of another one."""
    if name in (*INFORMATIVE, CONTENTS) or name.partition(" ")[0] == DIGESTS:
        return False
    if name.startswith(ADDED) and name not in theirs:
        return False
    return not (name.startswith(accuracy.FIELD) and accuracy.same(value, theirs[name]))


def equal(one: Texts, other: Texts) -> bool:
    """Whether two goldens are of one artifact."""
    return compared(one, other) == compared(other, one)


def digests(texts: Texts) -> dict[str, tuple[str, ...]]:
    """Return the digests of the payloads and the program, in the order of the manifest, by architecture."""
    said = fields(texts)
    own = tuple(
        found[1] if (found := _DIGEST.search(value)) else ""
        for name, value in said.items()
        if _OF_BYTES.fullmatch(name)
    )
    further = {
        name.removeprefix(f"{DIGESTS} "): tuple(value.split())
        for name, value in said.items()
        if name.startswith(f"{DIGESTS} ")
    }
    return {**dict.fromkeys(said.get(DIGESTS, FIRST).split(), own), **further}


def missing(reviewed: Texts, made: Texts) -> tuple[str, ...]:
    """Return what a golden lacks because it was recorded before there was such: fields, lines of `COUNTED`, texts."""
    known = fields(reviewed)
    lacking = [name for name in fields(made) if name.startswith(ADDED) and name not in known]
    lacking += [name for name in (PARTS, MODEL) if name in made and name not in reviewed]
    return (*lacking, *(() if _added_counts(reviewed) else _added_counts(made)))


def _added_counts(texts: Texts) -> tuple[str, ...]:
    return tuple(line for line in _lines(texts.get(COUNTED, "")) if line.startswith(ADDED_COUNTS))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def sealed(texts: Texts) -> dict[str, str]:
    """Return `texts`, whose manifest has no digest yet, with the line that holds it."""
    return {**texts, MANIFEST: f"{texts[MANIFEST]}{CONTENTS}: sha256 {contents_digest(texts)}\n"}


def unsealed(texts: Texts) -> dict[str, str]:
    """Return `texts` without the last line of the manifest."""
    *lines, _ = texts[MANIFEST].splitlines(keepends=True) or [""]
    return {**texts, MANIFEST: "".join(lines)}


def contents_digest(texts: Texts) -> str:
    """Return the SHA-256, in hexadecimal, of `texts` without their digest: each file's name, length and text, sorted.

    Everything that a golden says is covered, the trace and the informative fields of the manifest included.
    """
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        data = text.encode()
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def digest(texts: Texts) -> str:
    """Return the digest in the manifest's last line, by which a golden is the same as another."""
    return fields(texts)[CONTENTS].removeprefix("sha256 ")


def directory(root: Path, cell: Cell) -> Path:
    """Return where the golden of `cell` stands under `root`; raise GoldenError for what could lead elsewhere."""
    require_no_link(root)
    try:
        return untrusted.inside(root, cell.target, cell.case)
    except UntrustedError as error:
        raise GoldenError(root, str(error), "Move it away, or give the cell a name of its own.") from error


def require_no_link(root: Path) -> None:
    """Raise GoldenError where the folder of a release leads elsewhere."""
    if root.is_symlink():
        raise GoldenError(root, "is a link, which is not followed", "Put the folder itself there.")


def read(path: Path) -> dict[str, str] | None:
    """Read the golden in directory `path`; None if there is none.

    While a different run replaces it, the golden is the one before or the one after, whole.

    Raises
    ------
    GoldenError
        A format other than `FORMAT`, damage, or a hand edit.
    """
    for _ in range(ATTEMPTS):
        before = _standing(path)
        try:
            texts = _read(path)
        except GoldenError:
            if _standing(path) == before:
                raise
        else:
            if texts is not None or _standing(path) == before:
                return texts
    return _read(path)


def _standing(path: Path) -> tuple[int, ...]:
    """Return what changes when a golden is replaced: inode and time of its directory and of the one before.

    A file system gives a new directory the inode of one that was just deleted; only its time is another.
    """
    found = []
    for place in (path, path.with_name(path.name + REPLACED)):
        try:
            status = place.stat()
            found += [status.st_ino, status.st_ctime_ns]
        except OSError:
            found += [0, 0]
    return tuple(found)


def _read(path: Path) -> dict[str, str] | None:
    replaced = path.with_name(path.name + REPLACED)
    if not path.exists() and replaced.is_dir() and not replaced.is_symlink():
        # Between the two renames of `write`, or after it was interrupted there: the golden is the one before.
        path = replaced
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            raise GoldenError(path, "is a file where a golden's directory should be", "Move it away.")
        compact = _table(path).get(path.name)
        return None if compact is None else _checked(path, dict(compact))
    try:
        texts = {file.name: untrusted.text(file) for file in sorted(path.iterdir())}
    except (OSError, ValueError) as error:
        raise GoldenError(path, f"cannot be read ({error})", _again(path)) from error
    return _checked(path, texts)


def _again(path: Path) -> str:
    return f"Bring it back with 'git checkout -- {path}', or delete the directory and record it anew."


def _table(path: Path) -> table.Table:
    """Return the table that may have the golden of directory `path`; raise GoldenError."""
    file = table.table_of(path)
    try:
        return table.read(file)
    except (OSError, TableError) as error:
        if conflict := merging.conflict_in(file):
            way_out = f"T{merging.take_a_side(file)[1:]}."
            raise GoldenError(file, conflict, way_out) from error
        way_out = f"Bring it back with 'git checkout -- {file}', or delete it and record its cells anew."
        raise GoldenError(file, f"cannot be read ({error})", way_out) from error


def _checked(path: Path, texts: dict[str, str]) -> dict[str, str]:
    """Return the texts of a golden as they are; raise GoldenError for what is none."""
    try:
        return _whole(path, texts)
    except GoldenError as error:
        if conflict := merging.conflict(path, texts):
            raise ConflictError(path, conflict, merging.WAY_OUT) from error
        raise


def _whole(path: Path, texts: dict[str, str]) -> dict[str, str]:
    again = _again(path)
    try:
        untrusted.require_names(texts)
    except UntrustedError as error:
        raise GoldenError(path, str(error), again) from error
    if MANIFEST not in texts:
        raise GoldenError(path, f"has no {MANIFEST}", again)
    said = fields(texts)
    version = said.get("format", "")
    if not re.fullmatch("[0-9]{1,9}", version):
        raise GoldenError(path / MANIFEST, f"format {version[:20]!r} is not a number", again)
    if int(version) > FORMAT:
        way_out = "Use the harness that wrote it, or a later one; this one leaves it alone."
        raise GoldenError(
            path / MANIFEST, f"format {version} is newer than this harness knows ({FORMAT})", way_out
        )
    if int(version) < FORMAT:
        way_out = "Delete the directory and record it anew with --snapshot-update."
        raise GoldenError(path / MANIFEST, f"format {version} is older than {FORMAT}", way_out)
    if sealed(unsealed(texts)) != texts:
        raise GoldenError(path, "is damaged or was edited by hand: its digest does not fit", again)
    if missing := [name for name in NEEDED if name not in said]:
        raise GoldenError(path / MANIFEST, f"does not say {', '.join(missing)}", again)
    if FAILURE not in texts and said.get(FORM) != COMPACT and GRAPH not in texts:
        raise GoldenError(path, f"has neither {GRAPH} nor {FAILURE}", again)
    return texts


def fields(texts: Texts) -> dict[str, str]:
    """Return the fields of the manifest."""
    return dict(line.partition(": ")[::2] for line in texts[MANIFEST].splitlines())


def confirmed(reviewed: Texts, made: Texts) -> dict[str, str]:
    """Return `reviewed`, and that the variations which made an equal artifact agree as well.

    Their names join those of the manifest, as do the names of the shortcuts that they were made with, what the
    golden lacks (`missing`) and the digests of an architecture that it does not name. The trace of `made` is taken
    over where it differs: passes may come to the same artifact by another way, and a stale trace blames the wrong pass
    when the artifact changes. Without any of these, the golden stays as it is.
    """
    base = dict(reviewed)
    before, now = fields(reviewed), fields(made)
    said = {name: value for name, value in before.items() if name != CONTENTS}
    elsewhere = tuple(digests(made)) != tuple(digests(reviewed))
    if TRACE in made and _runs(made[TRACE], elsewhere) != _runs(reviewed.get(TRACE, ""), elsewhere):
        base[TRACE] = made[TRACE]
        said |= {"patches": now["patches"], "trace": now["trace"]}
    if not elsewhere and PASSES in said and PASSES in now:
        said[PASSES] = now[PASSES]
    agreed = _joined(before["variations"], now["variations"])
    if set(agreed) != set(before["variations"].split()):
        known = [variation.name for variation in variations.variations()]
        agreed.sort(key=lambda name: known.index(name) if name in known else len(known))
        spared = [name for name in _joined(before["shortcuts"], now["shortcuts"]) if name != "none"]
        said |= {"variations": " ".join(agreed), "shortcuts": " ".join(spared) or "none"}
    lacking = missing(reviewed, made)
    if counts := [line for line in lacking if line.startswith(ADDED_COUNTS)]:
        base[COUNTED] += "".join(counts)
    base |= {name: made[name] for name in (PARTS, MODEL) if name in lacking}
    said |= {name: now[name] for name in lacking if name in now} | _further_digests(reviewed, made)
    if base == reviewed and said == {name: value for name, value in before.items() if name != CONTENTS}:
        return base
    manifest = "".join(f"{name}: {said[name]}\n" for name in _ordered(said, list(now)))
    return sealed({**base, MANIFEST: manifest})


def _ordered(said: Mapping[str, str], order: Sequence[str]) -> list[str]:
    """Return the names of a manifest's fields, those that are new in the place that `order` gives them.

    >>> _ordered({"pte": "", "numerics": "", "layout": ""}, ["pte", "layout", "numerics"])
    ['pte', 'layout', 'numerics']
    """
    names: list[str] = []
    for name in said:
        kind = name if name in order else name.partition(" ")[0]
        before = order[: order.index(kind)] if kind in order else names
        new = kind.startswith((*ADDED, DIGESTS))
        names.insert(1 + max(map(names.index, {*before} & {*names}), default=-1) if new else len(names), name)
    return names


def makes_bytes(run: PassRun) -> bool:
    """Whether a run is a stage that makes a payload or the program: its fingerprint holds on one architecture."""
    return run.pipeline == STAGE and (run.name == _PROGRAM or run.name.startswith(DELEGATE))


def _runs(trace: str, elsewhere: bool) -> list[PassRun]:
    """Return the runs of a trace that are the same `elsewhere`, on another architecture, or all of them."""
    return [run for run in read_trace(trace) if not (elsewhere and makes_bytes(run))]


def _further_digests(reviewed: Texts, made: Texts) -> dict[str, str]:
    """Return the fields with the digests of an architecture that `reviewed` does not name; none if it does."""
    known, found = digests(reviewed), digests(made)
    said: dict[str, str] = {}
    for name in found:
        if name in known or not found[name]:
            continue
        first = fields(reviewed).get(DIGESTS, FIRST)
        if found[name] == known[first.split()[0]]:
            said[DIGESTS] = f"{said.get(DIGESTS, first)} {name}"
        else:
            said[f"{DIGESTS} {name}"] = " ".join(found[name])
    return said


def _joined(*names: str) -> list[str]:
    return list(dict.fromkeys(" ".join(names).split()))


def write(path: Path, texts: Texts) -> None:
    """Replace the golden of directory `path`, in its table or whole; raise GoldenError."""
    if is_compact(texts):
        _write_into_table(path, texts)
    else:
        write_folder(path, texts)


def write_folder(path: Path, texts: Texts) -> None:
    """Replace a directory of texts whole: written aside, then renamed; raise GoldenError."""
    aside = path.with_name(path.name + ASIDE)
    replaced = path.with_name(path.name + REPLACED)
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        shutil.rmtree(replaced, ignore_errors=True)
    try:
        durable.make_folder(path.parent)
        aside.mkdir()
        for name, text in texts.items():
            durable.write_new(aside / name, text)
        durable.sync_folder(aside)
        if path.exists():
            path.rename(replaced)
        aside.rename(path)
        durable.sync_folder(path.parent)
    except OSError as error:
        _take_back(path)
        raise _unwritable(path, error) from error
    shutil.rmtree(replaced, ignore_errors=True)


def _take_back(path: Path) -> None:
    """Leave the golden as it was before a `write` that failed, as far as the disk lets us."""
    replaced = path.with_name(path.name + REPLACED)
    with contextlib.suppress(OSError):
        if replaced.exists() and not path.exists():
            replaced.rename(path)
    shutil.rmtree(path.with_name(path.name + ASIDE), ignore_errors=True)


def _unwritable(path: Path, error: OSError) -> UnwritableError:
    return UnwritableError(path, f"cannot be written ({error})", "Make room for it, then record it again.")


def is_compact(texts: Texts) -> bool:
    """Whether a golden is kept in a table."""
    return fields(texts).get(FORM) == COMPACT


def _write_into_table(path: Path, texts: Texts | None) -> None:
    """Put the golden of directory `path` into its table, or take it out; raise GoldenError."""
    cells = {case: of_case for case, of_case in _table(path).items() if case != path.name}
    if texts is not None:
        cells[path.name] = texts
    try:
        table.write(table.table_of(path), cells)
    except OSError as error:
        raise _unwritable(table.table_of(path), error) from error


def rewrite_manifest(path: Path, texts: Texts) -> None:
    """Replace the manifest of the golden in directory `path`, whose other files are those of `texts`, in one step."""
    if is_compact(texts):
        _write_into_table(path, texts)
        return
    aside = path.with_name(path.name + ASIDE)
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir()
        durable.write_new(aside / MANIFEST, texts[MANIFEST])
        (aside / MANIFEST).replace(path / MANIFEST)
        durable.sync_folder(path)
        aside.rmdir()
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise _unwritable(path, error) from error


def recover(root: Path) -> None:
    """Finish what an interrupted write left under `root`: a replaced golden without its successor comes back.

    Only for runs that hold the lock of `root`: without it, a different run may be writing there.
    """
    for replaced in root.glob(f"*/*{REPLACED}"):
        path = replaced.with_name(replaced.name.removesuffix(REPLACED))
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)
    for suffix in (ASIDE, DELETED):
        for left_over in root.glob(f"*/*{suffix}"):
            shutil.rmtree(left_over)
    durable.delete_left_over(root)


def recorded(root: Path) -> Iterator[Cell]:
    """Yield the cells that have a directory under `root`, sorted, then those in tables; raise GoldenError.

    Other files, and hidden folders, are no goldens.
    """
    found = set()
    for path in root.glob("*/*"):
        # Between the two renames of `write`, the one that is replaced is the golden.
        name = path.name.removesuffix(REPLACED)
        hidden = name.startswith(".") or path.parent.name.startswith(".")
        if path.is_dir() and not hidden and not name.endswith((ASIDE, DELETED)):
            found.add((path.parent.name, name))
    yield from (Cell(target, case) for target, case in sorted(found))
    for target, _ in table.tables(root):
        yield from (Cell(target, case) for case in _table(root / target / "any"))


def prune(root: Path, cell: Cell) -> None:
    """Delete the golden of `cell`, and its target's directory when it was the last; raise GoldenError for no golden."""
    path = directory(root, cell)
    texts = read(path)
    if texts is not None and is_compact(texts):
        _write_into_table(path, None)
    elif texts is not None:
        # Whole, too: of one that is deleted file by file, a part would be left where that is interrupted.
        deleted = path.with_name(path.name + DELETED)
        shutil.rmtree(deleted, ignore_errors=True)
        try:
            path.rename(deleted)
            durable.sync_folder(path.parent)
            shutil.rmtree(deleted)
        except OSError as error:
            raise UnwritableError(
                path, f"cannot be deleted ({error})", "Make it writable, then prune again."
            ) from error
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()
