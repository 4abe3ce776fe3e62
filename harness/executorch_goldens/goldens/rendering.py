"""Renders an artifact as a golden."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from executorch_goldens.artifact import Artifact, Failure, Lowered, Watched
from executorch_goldens.decode import Decoded, Schemas, decode
from executorch_goldens.decode.decoded import DIGITS
from executorch_goldens.decode.formats import NamedData, decode_delegate, layout_digest
from executorch_goldens.decode.pte import decode_pte
from executorch_goldens.goldens import accuracy, program, unchecked
from executorch_goldens.goldens.golden import DATA, DIGESTS, FIRST, LAYOUT, RECIPE
from executorch_goldens.goldens.numerics import Numerics
from executorch_goldens.goldens.record import DELEGATE, FAILURE, GRAPH, MODEL, PROGRAM, TRACE, Record


@dataclass(frozen=True)
class MadeWith:
    """How an artifact was made: the part of a manifest that the artifact does not hold.

    Attributes
    ----------
    stack
        Distribution name to version: executorch, torch, torchao, tosa-tools.
    numerics
        What was checked, and to which bound.
    """

    stack: Mapping[str, str]
    variations: Sequence[str]
    numerics: Numerics
    architecture: str = field(default_factory=lambda: here())


def render(artifact: Artifact, made_with: MadeWith) -> Record:
    """Return the golden of an artifact."""
    result = artifact.result
    sections = _render_failure(result) if isinstance(result, Failure) else _render_lowered(result)
    if (whole := sections.get(PROGRAM)) is not None:
        sections[PROGRAM] = program.section(whole)
    facts = [*made_with.stack.items()]
    facts.append(("patches", " ".join(artifact.patches) or "none"))
    facts.append(("variations", " ".join(made_with.variations)))
    facts.append(("numerics", made_with.numerics.text()))
    if isinstance(result, Lowered):
        facts += _measured(result)
        facts += _of_bytes(result)
        if made_with.architecture != FIRST:
            facts.append((DIGESTS, made_with.architecture))
    if artifact.watched is not None:
        sections[TRACE] = trace_text(artifact.watched)
    return Record.in_order(facts, sections, whole=whole)


def _measured(lowered: Lowered) -> Iterator[tuple[str, str]]:
    """Yield the facts on how exact a program is, and how it was made."""
    if left := unchecked.listed(lowered):
        yield unchecked.FIELD, "; ".join(left)
    for at, near in enumerate(accuracy.nearnesses(lowered)):
        yield f"{accuracy.FIELD}{at}", accuracy.text(near)
    if lowered.metric is not None:
        yield f"{accuracy.FIELD}{lowered.metric.name}", accuracy.text(lowered.metric)
    if (measured := accuracy.Accuracy.measure(lowered)) is not None:
        yield accuracy.ERROR, accuracy.error(measured.used)
    if lowered.validation is not None:
        yield "validated", lowered.validation.summary()
    if lowered.recipe:
        yield RECIPE, lowered.recipe


def _of_bytes(lowered: Lowered) -> Iterator[tuple[str, str]]:
    """Yield the facts with the digests of payloads, program and data files."""
    for index, delegate in enumerate(lowered.delegates):
        digest = hashlib.sha256(delegate.payload).hexdigest()[:DIGITS]
        size = len(delegate.payload)
        yield f"delegate {index}", f"{delegate.name} {delegate.backend_id} {size} bytes sha256 {digest}"
    yield "pte", f"{len(lowered.pte)} bytes sha256 {lowered.pte_sha256[:DIGITS]}"
    for name, content in lowered.data:
        digest = hashlib.sha256(content).hexdigest()[:DIGITS]
        yield f"{DATA}{name}", f"{len(content)} bytes sha256 {digest}"
    payloads = [delegate.payload for delegate in lowered.delegates]
    yield LAYOUT, f"sha256 {layout(lowered.pte, payloads, Schemas.under(*lowered.schemas))[:DIGITS]}"


def _render_failure(failure: Failure) -> dict[str, str]:
    lines = []
    for name, value in failure.facts():
        # A message may hold half of a pair of UTF-16, which no file can.
        first, *rest = value.encode("utf-8", "backslashreplace").decode("utf-8").splitlines() or [""]
        lines += [f"{name}: {first}", *(f"  {line}" for line in rest)]
    return {FAILURE: "\n".join(lines) + "\n"}


def _render_lowered(lowered: Lowered) -> dict[str, str]:
    texts = {GRAPH: lowered.graph}
    for index, payload in enumerate(decode_delegates(lowered)):
        texts[f"{DELEGATE}{index}.{payload.kind}"] = payload.text()
    texts[PROGRAM] = decode_program(lowered).text(delegates=False)
    if lowered.model:
        texts[MODEL] = model_of(lowered)
    for name, content in lowered.data:
        texts[data_file(name)] = decode_data(content, lowered).text()
    return texts


def model_of(lowered: Lowered) -> str:
    """Return the list of the parameters of the modules that a build names; empty for other cases."""
    return "".join(f"{line}\n" for line in lowered.model)


def data_file(name: str) -> str:
    """Return the section of a golden that has a data file of the program as text.

    >>> data_file("_default_external_constant"), data_file("weights.ptd")
    ('data__default_external_constant.ptd', 'data_weights.ptd')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name.removesuffix(".ptd"))
    return f"data_{plain}.ptd"


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


# Decoded payloads

#: What is decoded while `decoding_once` lasts, by bytes, named data and schemas.
_DECODED: ContextVar[dict[tuple[object, ...], Decoded]] = ContextVar("decoded payloads")


@contextmanager
def decoding_once() -> Iterator[None]:
    """Decode equal payloads once while it lasts, such as those of a cell's variations; nothing is kept after it."""
    token = _DECODED.set(_DECODED.get({}))
    try:
        yield
    finally:
        _DECODED.reset(token)


def decode_delegates(lowered: Lowered) -> list[Decoded]:
    """Decode the payloads of all delegates, with the constants that the backend put into named data.

    Raises
    ------
    DecodeError, SchemaError
        If a payload is not what the schema of its release says, or if that is not found.
    """
    return [decode_data(each.payload, lowered, each.named_data) for each in lowered.delegates]


def decode_data(content: bytes, lowered: Lowered, named_data: tuple[tuple[str, bytes], ...] = ()) -> Decoded:
    """Decode a payload of a program, or a data file; raises as `decode_delegates`."""
    schemas = Schemas.under(*lowered.schemas)
    key = (content, lowered.schemas, named_data)
    return _once(key, lambda: decode(content, schemas=schemas, named_data=dict(named_data)))


def decode_program(lowered: Lowered) -> Decoded:
    """Decode a program, its delegates as `decode_delegates` does; raises as that."""
    schemas = Schemas.under(*lowered.schemas)
    delegates = zip(lowered.delegates, decode_delegates(lowered), strict=True)
    known: dict[bytes | memoryview, Decoded] = {each.payload: decoded for each, decoded in delegates}

    def delegate(payload: memoryview, named: NamedData) -> Decoded | None:
        return known.get(payload) or decode_delegate(schemas, payload, named)

    program = schemas.load("program")
    return _once(
        (lowered.pte, lowered.schemas), lambda: decode_pte(memoryview(lowered.pte), program, delegate)
    )


def _once(key: tuple[object, ...], make: Callable[[], Decoded]) -> Decoded:
    known = _DECODED.get({})
    if key not in known:
        known[key] = make()
    return known[key]
