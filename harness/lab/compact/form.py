"""The compact form of a golden: digests and quantities in the place of the graph, the payloads and the program.

The manifest has the trace in short: two words of `DIGITS` characters for each run, digests of the pass and of
what it left. With the passes of the run at hand they say which pass made a difference.
"""

from __future__ import annotations

import base64
import difflib
import functools
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from executorch_goldens.artifact import PassRun
from executorch_goldens.diff import equality
from executorch_goldens.goldens.inventory import Inventory, InventoryError
from executorch_goldens.goldens.record import CONTENTS, FAILURE, MANIFEST, PROGRAM, TRACE, Record
from lab.compact.table import ENDING

#: The text with the quantities.
COUNTED = "quantities"
#: Manifest field with the trace in short.
PASSES = "passes"
#: The facts that every compact golden begins with.
FORM = {"format": "2", "form": "compact"}
#: Facts of older goldens that none needs.
RETIRED = ("kernels", "shortcuts")
#: Lines of `COUNTED` that goldens came to have later: what only one of two says is not compared.
ADDED_COUNTS = "duplicated "
#: Characters of a digest in `PASSES`: 24 bits, in which few hundred names do not collide.
DIGITS = 4
#: Names for a run that the current runs lack, and for a result that none of these had.
GONE, OTHER = "a pass that is there no more", "another"


class CompactRecord(Record):
    """The content of a compact golden, whose quantities stand in a text of their own."""

    @functools.cached_property
    def inventory(self) -> Inventory:
        """What the whole golden has, as far as its quantities tell; raises InventoryError."""
        if self.fails:
            return super().inventory
        try:
            return _counted(self)
        except (ValueError, LookupError) as error:
            raise InventoryError(f"a golden fits its digest and cannot be read ({error})") from error


def compact(record: Record) -> CompactRecord:
    """Return the compact form of a golden; it differs where the golden does."""
    facts = {**FORM, **record.facts}
    # Its digest is of the whole text, as it was before goldens had the program in short.
    whole = {PROGRAM: record.whole} if record.whole is not None else {}
    for name, text in sorted({**record.sections, **whole}.items()):
        if name not in (FAILURE, TRACE):
            digest = hashlib.sha256(text.encode()).hexdigest()
            facts[f"{name}{ENDING}"] = f"{len(text.splitlines())} lines sha256 {digest}"
    if TRACE in record.sections:
        facts[PASSES] = " ".join(map(_word, record.trace))
    sections = {name: text for name, text in record.sections.items() if name == FAILURE}
    if not record.fails:
        sections[COUNTED] = "".join(f"{line}\n" for line in _quantities(record))
    return CompactRecord(facts, sections)


def texts_of(record: Record) -> dict[str, str]:
    """Return the texts of a compact golden as a table has them: the facts end with a digest over each name and text."""
    texts = {MANIFEST: "", **record.texts()}
    return {**texts, MANIFEST: f"{texts[MANIFEST]}{CONTENTS}: sha256 {_sealing(texts)}\n"}


def digest(record: Record) -> str:
    """Return the digest over the facts and sections of a compact golden, 64 hexadecimal digits."""
    return _sealing(record.texts())


def _sealing(texts: Mapping[str, str]) -> str:
    made = hashlib.sha256()
    for name, text in sorted((f"{name}{ENDING}", text) for name, text in texts.items()):
        data = text.encode()
        made.update(f"{name} {len(data)}\n".encode() + data)
    return made.hexdigest()


def unsealed(texts: Mapping[str, str]) -> CompactRecord:
    """Return the compact golden with the texts of a table, whatever their digest."""
    facts = dict(line.partition(": ")[::2] for line in texts.get(MANIFEST, "").splitlines())
    facts.pop(CONTENTS, None)
    return CompactRecord(facts, {name: text for name, text in texts.items() if name != MANIFEST})


def _quantities(record: Record) -> Iterator[str]:
    """Yield counts of delegates and operators of each kind, and of bytes."""
    found = record.inventory
    for what, counts in (
        ("delegate", found.delegates),
        ("operator", found.operators),
        ("outside", found.outside),
    ):
        yield from (f"{what} {name}: {count}" for name, count in sorted(counts.items()))
    yield from (f"memory {arena}: {number}" for arena, number in enumerate(found.memory, 1))
    yield f"constants bytes: {found.constant_bytes}"
    yield f"duplicated bytes: {found.duplicated}"


def _counted(record: Record) -> Inventory:
    kinds = ("delegate", "operator", "outside", "memory", "constants", "duplicated")
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for line in record.sections[COUNTED].splitlines():
        counted, _, number = line.rpartition(": ")
        what, _, name = counted.partition(" ")
        counts[what][name] = int(number)
    return Inventory(
        None,
        delegates=counts["delegate"],
        operators=counts["operator"],
        outside=counts["outside"],
        size=int(record.facts.get("pte", "0").split()[0]),
        constant_bytes=counts["constants"].total(),
        duplicated=counts["duplicated"].get("bytes"),
        accuracies=record.accuracies,
        memory=tuple(counts["memory"].values()),
    )


def compared(record: Record, other: Record) -> Record:
    """Return the comparable part of a compact golden, with the golden `other`: equal wherever the artifact is."""
    kept = equality.compared(record, other)
    facts = {name: value for name, value in sorted(kept.facts.items()) if name not in (PASSES, *RETIRED)}
    sections = dict(kept.sections)
    if COUNTED in sections and ADDED_COUNTS not in other.sections.get(COUNTED, ""):
        lines = sections[COUNTED].splitlines(keepends=True)
        sections[COUNTED] = "".join(line for line in lines if not line.startswith(ADDED_COUNTS))
    return Record(facts, sections)


def equal(one: Record, other: Record) -> bool:
    """Return whether two compact goldens are of the same artifact."""
    return compared(one, other) == compared(other, one)


def differences(before: Record, after: Record) -> Iterator[str]:
    """Yield how two compact goldens differ: the names of texts, then the lines."""
    old, new = compared(before, after).texts(), compared(after, before).texts()
    for name in sorted({*old, *new}):
        before_it, after_it = (each.get(name, "").splitlines() for each in (old, new))
        found = difflib.unified_diff(before_it, after_it, f"golden/{name}", f"now/{name}", lineterm="", n=0)
        yield from (line for line in found if not line.startswith("@@"))


def recorded_runs(record: Record, runs: Sequence[PassRun]) -> list[PassRun] | None:
    """Return the runs that changed the graph when a golden was recorded; None where it does not say.

    Parameters
    ----------
    runs
        All runs of the export at hand: a compact golden holds digests of their names.
    """
    words = record.facts.get(PASSES)
    if words is None:
        return None
    same = {_word(run): run for run in runs if run.changed}
    passes: Mapping[str, PassRun] = {_of_pass(run): run for run in runs}
    return [same.get(word) or _other(passes.get(word[:DIGITS])) for word in words.split()]


def _other(run: PassRun | None) -> PassRun:
    """Return a run of the same pass that left another graph; of None, that of a pass whose name is not known."""
    return PassRun(run.pipeline, run.name, OTHER, True) if run is not None else PassRun("", GONE, OTHER, True)


def _word(run: PassRun) -> str:
    return _of_pass(run) + _short(run.fingerprint)


def _of_pass(run: PassRun) -> str:
    return _short(f"{run.pipeline}: {run.name}")


def _short(text: str) -> str:
    """Return a digest of a text in `DIGITS` characters that are no blanks.

    >>> _short("xnnpack: FuseBatchNormPass")
    'BX3y'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:DIGITS].decode()
