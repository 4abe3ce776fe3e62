"""Compares goldens, and keeps fields of a manifest that an equal artifact may add."""

from __future__ import annotations

import re
from collections.abc import Mapping

from executorch_goldens.artifact import DELEGATE, STAGE, PassRun
from executorch_goldens.goldens import accuracy, unchecked
from executorch_goldens.goldens.causes import comparable
from executorch_goldens.goldens.golden import (
    CONTENTS,
    DIGESTS,
    FAILURE,
    FIRST,
    LAYOUT,
    MANIFEST,
    MODEL,
    TRACE,
    Texts,
    fields,
    sealed,
)
from executorch_goldens.goldens.rendering import read_trace
from executorch_goldens.zoo import variations

#: Facts that tell a reader how the golden came to be. They are not compared: a run with fewer seeds, or without a patch
#: that did not matter here, makes the same artifact.
INFORMATIVE = ("patches", "variations", "validated", accuracy.ERROR)

#: What fields of a manifest begin with that came after goldens without them were recorded; `MODEL` came later as well.
#: What only one of two goldens says is not compared.
ADDED = (LAYOUT, accuracy.FIELD, accuracy.ERROR, "validated", unchecked.FIELD)

#: Ends the lines of the manifest that have a digest of bytes.
_DIGEST = re.compile(r" sha256 ([0-9a-f]{16,64})$", re.MULTILINE)
#: Begins these lines.
_OF_BYTES = re.compile(r"delegate \d+|pte|data .+")

#: The stage of a trace that makes the program.
_PROGRAM = "pte"


def compared(texts: Texts, other: Texts | None = None) -> dict[str, str]:
    """Return the comparable part of `texts`, with the golden `other`: equal wherever the artifact is.

    That is every text but the trace, and of the manifest every line but the informative fields and the digest over
    everything. Bytes are compared by their digests where both goldens have digests of one architecture. Elsewhere the
    decoded texts, sizes and the layout have all that is the same on both. Of what is measured (`goldens.accuracy`),
    it is what is not the same in `other`; of a failure, see `causes.comparable`. Without `other` it is what is
    compared with a golden of the same architecture that measured the same.
    """
    other = texts if other is None else other
    theirs = fields(other)
    shared = next((name for name in digests(texts) if name in digests(other)), None)
    of_bytes = iter(digests(texts)[shared] if shared is not None else ())
    lines = []
    for line in texts[MANIFEST].splitlines(keepends=True):
        name, _, value = line.rstrip("\n").partition(": ")
        if not _is_compared(name, value, theirs):
            continue
        if _OF_BYTES.fullmatch(name):
            digest = next(of_bytes, None)
            line = f"{name}: {_DIGEST.sub(f' sha256 {digest}' if digest else '', value)}\n"
        lines.append(line)
    kept = {name: text for name, text in texts.items() if name != TRACE}
    if FAILURE in kept:
        kept[FAILURE] = comparable(kept[FAILURE], other.get(FAILURE, kept[FAILURE]))
    if MODEL in kept and MODEL not in other:
        del kept[MODEL]
    return {**kept, MANIFEST: "".join(lines)}


def without_digests(texts: Texts) -> Texts:
    """Return texts for display, without a manifest's digests: their content is compared itself."""
    manifest = texts.get(MANIFEST)
    return texts if manifest is None else {**texts, MANIFEST: _DIGEST.sub("", manifest)}


def _is_compared(name: str, value: str, theirs: Mapping[str, str]) -> bool:
    """Return whether a field of a manifest is compared with those of another one."""
    if name in (*INFORMATIVE, CONTENTS) or name.partition(" ")[0] == DIGESTS:
        return False
    if name.startswith(ADDED) and name not in theirs:
        return False
    return not (name.startswith(accuracy.FIELD) and accuracy.same(value, theirs[name]))


def equal(one: Texts, other: Texts) -> bool:
    """Return whether two goldens are of the same artifact."""
    return compared(one, other) == compared(other, one)


def digests(texts: Texts) -> dict[str, tuple[str, ...]]:
    """Return the digests of the payloads and the program, in the order of the manifest, by architecture."""
    own_fields = fields(texts)
    own = tuple(
        found[1] if (found := _DIGEST.search(value)) else ""
        for name, value in own_fields.items()
        if _OF_BYTES.fullmatch(name)
    )
    further = {
        name.removeprefix(f"{DIGESTS} "): tuple(value.split())
        for name, value in own_fields.items()
        if name.startswith(f"{DIGESTS} ")
    }
    return {**dict.fromkeys(own_fields.get(DIGESTS, FIRST).split(), own), **further}


def missing(reviewed: Texts, made: Texts) -> tuple[str, ...]:
    """Return what an older golden lacks: fields, texts."""
    known = fields(reviewed)
    lacking = [name for name in fields(made) if name.startswith(ADDED) and name not in known]
    return (*lacking, *((MODEL,) if MODEL in made and MODEL not in reviewed else ()))


def confirmed(reviewed: Texts, made: Texts) -> dict[str, str]:
    """Return `reviewed`, and that the variations which made an equal artifact agree as well.

    Their names join those of the manifest, as do what the golden lacks (`missing`) and the digests of an architecture
    that it does not name. The trace of `made` is taken over where it differs: passes may come to the same artifact by
    another way, and a stale trace blames the wrong pass when the artifact changes. Without any of these, the golden
    stays as it is.
    """
    base = dict(reviewed)
    now, before = fields(made), fields(reviewed)
    merged = dict(before)
    elsewhere = tuple(digests(made)) != tuple(digests(reviewed))
    if TRACE in made and _runs(made[TRACE], elsewhere) != _runs(reviewed.get(TRACE, ""), elsewhere):
        base[TRACE] = made[TRACE]
        merged["patches"] = now["patches"]
    agreed = _joined(before["variations"], now["variations"])
    if set(agreed) != set(before["variations"].split()):
        known = [variation.name for variation in variations.variations()]
        agreed.sort(key=lambda name: known.index(name) if name in known else len(known))
        merged["variations"] = " ".join(agreed)
    lacking = missing(reviewed, made)
    if MODEL in lacking:
        base[MODEL] = made[MODEL]
    merged |= {name: now[name] for name in lacking if name in now} | _further_digests(reviewed, made)
    if base == reviewed and merged == before:
        return base
    return sealed({**base, MANIFEST: "".join(f"{name}: {value}\n" for name, value in merged.items())})


def makes_bytes(run: PassRun) -> bool:
    """Return whether a run makes a payload or the program: its fingerprint holds on one architecture."""
    return run.pipeline == STAGE and (run.name == _PROGRAM or run.name.startswith(DELEGATE))


def _runs(trace: str, elsewhere: bool) -> list[PassRun]:
    """Return the runs of a trace that are the same `elsewhere`, on another architecture, or all of them."""
    return [run for run in read_trace(trace) if not (elsewhere and makes_bytes(run))]


def _further_digests(reviewed: Texts, made: Texts) -> dict[str, str]:
    """Return the fields with the digests of an architecture that `reviewed` does not name; none if it does."""
    known, found = digests(reviewed), digests(made)
    added: dict[str, str] = {}
    for name in found:
        if name in known or not found[name]:
            continue
        first = fields(reviewed).get(DIGESTS, FIRST)
        if found[name] == known[first.split()[0]]:
            added[DIGESTS] = f"{added.get(DIGESTS, first)} {name}"
        else:
            added[f"{DIGESTS} {name}"] = " ".join(found[name])
    return added


def _joined(*names: str) -> list[str]:
    return list(dict.fromkeys(" ".join(names).split()))
