"""Equality of two goldens, and what an equal artifact adds to one."""

from __future__ import annotations

import re
from dataclasses import replace

from executorch_goldens.artifact import DELEGATE, STAGE, PassRun
from executorch_goldens.goldens import accuracy, unchecked
from executorch_goldens.goldens.causes import comparable
from executorch_goldens.goldens.golden import DIGESTS, FIRST, LAYOUT
from executorch_goldens.goldens.record import FAILURE, MODEL, TRACE, Record
from executorch_goldens.zoo import variations

#: Facts that tell a reader how the golden came to be. They are not compared: a run with fewer seeds, or without a patch
#: that did not matter here, makes the same artifact.
INFORMATIVE = ("patches", "variations", "validated", accuracy.ERROR)

#: Beginnings of facts that came after goldens without them were recorded; `MODEL` came later as well.
#: What only one of two goldens says is not compared.
ADDED = (LAYOUT, accuracy.FIELD, accuracy.ERROR, "validated", unchecked.FIELD)

#: Ends the facts that have a digest of bytes.
_DIGEST = re.compile(r"(?:^| )sha256 ([0-9a-f]{16,64})$")
#: Names of these facts.
_OF_BYTES = re.compile(r"delegate \d+|pte|data .+")

#: The method that a line of `MODEL` names where a program has one.
FORWARD = "forward"

#: The stage of a trace that makes the program.
_PROGRAM = "pte"


def compared(record: Record, other: Record | None = None) -> Record:
    """Return the comparable part of a golden, with the golden `other`: equal wherever the artifact is.

    That is every section but the trace, and every fact but the informative ones. Bytes are compared by their digests
    where both goldens have digests of one architecture. Elsewhere the decoded sections, sizes and the layout have all
    that is the same on both. Of what is measured (`goldens.accuracy`), it is what is not the same in `other`; of a
    failure, see `causes.comparable`. Without `other` it is what is compared with a golden of the same architecture that
    measured the same.
    """
    other = record if other is None else other
    shared = next((name for name in digests(record) if name in digests(other)), None)
    of_bytes = iter(digests(record)[shared] if shared is not None else ())
    facts = {}
    for name, value in record.facts.items():
        if not _is_compared(name, record, other):
            continue
        if _OF_BYTES.fullmatch(name):
            digest = next(of_bytes, None)
            value = _DIGEST.sub(f" sha256 {digest}" if digest else "", value)
        facts[name] = value
    lacking = () if MODEL in other.sections else (MODEL,)
    sections = {name: text for name, text in record.sections.items() if name not in (TRACE, *lacking)}
    if record.fails:
        sections[FAILURE] = comparable(sections[FAILURE], other.sections.get(FAILURE, sections[FAILURE]))
    return replace(record, facts=facts, sections=sections)


def without_digests(record: Record) -> Record:
    """Return a golden for display, without digests among its facts: their content is compared itself."""
    facts = {name: _DIGEST.sub("", value) for name, value in record.facts.items()}
    return replace(record, facts=facts)


def _is_compared(name: str, record: Record, other: Record) -> bool:
    """Return whether a fact is compared with those of another golden."""
    if name in INFORMATIVE or name.partition(" ")[0] == DIGESTS:
        return False
    if name.startswith(ADDED) and name not in other.facts:
        return False
    return name not in record.accuracies or not accuracy.same(record.accuracies[name], other.accuracies[name])


def equal(one: Record, other: Record) -> bool:
    """Return whether two goldens are of the same artifact."""
    return compared(one, other) == compared(other, one)


def digests(record: Record) -> dict[str, tuple[str, ...]]:
    """Return the digests of the payloads and the program, in the order of the facts, by architecture."""
    own = tuple(
        found[1] if (found := _DIGEST.search(value)) else ""
        for name, value in record.facts.items()
        if _OF_BYTES.fullmatch(name)
    )
    further = {
        name.removeprefix(f"{DIGESTS} "): tuple(value.split())
        for name, value in record.facts.items()
        if name.startswith(f"{DIGESTS} ")
    }
    return {**dict.fromkeys(record.facts.get(DIGESTS, FIRST).split(), own), **further}


def missing(reviewed: Record, made: Record) -> tuple[str, ...]:
    """Return what an older golden lacks: facts, sections."""
    lacking = [name for name in made.facts if name.startswith(ADDED) and name not in reviewed.facts]
    return (*lacking, *((MODEL,) if MODEL in made.sections and MODEL not in reviewed.sections else ()))


def confirmed(reviewed: Record, made: Record) -> Record:
    """Return `reviewed`, and that the variations which made an equal artifact agree as well.

    Their names join those that it has, as do what the golden lacks (`missing`) and the digests of an architecture
    that it does not name. The trace of `made` is taken over where it differs: passes may come to the same artifact by
    another way, and a stale trace blames the wrong pass when the artifact changes. Without any of these, the golden
    stays as it is.
    """
    facts, sections = dict(reviewed.facts), dict(reviewed.sections)
    elsewhere = tuple(digests(made)) != tuple(digests(reviewed))
    if TRACE in made.sections and _runs(made, elsewhere) != _runs(reviewed, elsewhere):
        sections[TRACE] = made.sections[TRACE]
        facts["patches"] = made.facts["patches"]
    agreed = list(dict.fromkeys([*reviewed.variations, *made.variations]))
    if set(agreed) != set(reviewed.variations):
        known = [variation.name for variation in variations.variations()]
        agreed.sort(key=lambda name: known.index(name) if name in known else len(known))
        facts["variations"] = " ".join(agreed)
    lacking = missing(reviewed, made)
    if MODEL in lacking:
        sections[MODEL] = made.sections[MODEL]
    facts |= {name: made.facts[name] for name in lacking if name in made.facts}
    return Record.in_order({**facts, **_further_digests(reviewed, made)}.items(), sections)


def makes_bytes(run: PassRun) -> bool:
    """Return whether a run makes a payload or the program: its fingerprint holds on one architecture."""
    return run.pipeline == STAGE and (run.name == _PROGRAM or run.name.startswith(DELEGATE))


def _runs(record: Record, elsewhere: bool) -> list[PassRun]:
    """Return the runs of a trace that are the same `elsewhere`, on another architecture, or all of them."""
    return [run for run in record.trace if not (elsewhere and makes_bytes(run))]


def _further_digests(reviewed: Record, made: Record) -> dict[str, str]:
    """Return the facts with the digests of an architecture that `reviewed` does not name; none if it does."""
    known, found = digests(reviewed), digests(made)
    added: dict[str, str] = {}
    for name in found:
        if name in known or not found[name]:
            continue
        first = reviewed.facts.get(DIGESTS, FIRST)
        if found[name] == known[first.split()[0]]:
            added[DIGESTS] = f"{added.get(DIGESTS, first)} {name}"
        else:
            added[f"{DIGESTS} {name}"] = " ".join(found[name])
    return added


# Weights


def changed_weights(before: str, after: str) -> list[str]:
    r"""Return the paths of parameters and buffers that differ, are new or gone; none where a golden has no list.

    >>> line = "forward layers.2.weight float32[32, 32] sha256 {}\n".format
    >>> changed_weights(line("d7a5"), line("8aeb"))
    ['layers.2.weight']
    """
    if not before or not after:
        return []
    old, new = before.splitlines(), after.splitlines()
    common = {*old} & {*new}
    words = (line.split(" ") for line in (*new, *old) if line not in common)
    names = (path if method == FORWARD else f"{path} of {method}" for method, path, *_ in words)
    return list(dict.fromkeys(names))
