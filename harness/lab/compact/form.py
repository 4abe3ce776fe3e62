"""The compact form of a golden: digests and quantities in the place of the graph, the payloads and the program.

The manifest has the trace in short: two words of `DIGITS` characters for each run, digests of the pass and of
what it left. With the passes of the run at hand they say which pass made a difference.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence

from executorch_goldens.artifact import PassRun
from executorch_goldens.goldens import equality, golden, rendering
from executorch_goldens.goldens.golden import Texts
from executorch_goldens.goldens.reading import reading
from lab.compact import parts
from lab.compact.table import ENDING

#: The text of a sheet's golden with a line for each sample (`lab.compact.parts`).
PARTS = "parts"
#: The text with the quantities.
COUNTED = "quantities"
#: Manifest field with the trace in short.
PASSES = "passes"
#: The facts that every compact golden begins with.
FORMAT, FORM = "format: 2", "form: compact"
#: Facts of older goldens that none needs.
RETIRED = ("kernels:", "shortcuts:")
#: Texts that are kept as they are.
WHOLE = (golden.MANIFEST, golden.FAILURE)
#: Lines of `COUNTED` that goldens came to have later: what only one of two says is not compared. So are `PARTS`.
ADDED_COUNTS = "duplicated "
#: Characters of a digest in `PASSES`: 24 bits, in which few hundred names do not collide.
DIGITS = 4
#: Names for a run that the current runs lack, and for a result that none of these had.
GONE, OTHER = "a pass that is there no more", "another"


def compact(texts: Texts, of_parts: str = "") -> dict[str, str]:
    """Return the compact form of a golden; it differs where the golden does.

    Parameters
    ----------
    of_parts
        Its `PARTS`; empty for none.
    """
    *lines, _ = texts[golden.MANIFEST].splitlines()
    manifest = [FORMAT, FORM, *lines]
    kept = {name: texts[name] for name in WHOLE if name in texts}
    for name, text in sorted(texts.items()):
        if name not in (*WHOLE, golden.TRACE):
            digest = hashlib.sha256(text.encode()).hexdigest()
            manifest.append(f"{name}{ENDING}: {len(text.splitlines())} lines sha256 {digest}")
    if golden.TRACE in texts:
        manifest.append(f"{PASSES}: {' '.join(map(_word, rendering.read_trace(texts[golden.TRACE])))}")
    if golden.FAILURE not in texts:
        kept[COUNTED] = "".join(f"{line}\n" for line in _quantities(texts))
    if of_parts:
        kept[PARTS] = of_parts
    return sealed({**kept, golden.MANIFEST: "".join(f"{line}\n" for line in manifest)})


def sealed(texts: Texts) -> dict[str, str]:
    """Return `texts`, whose facts have no digest yet, with the line that holds it: over each name, length and text."""
    digest = hashlib.sha256()
    for name, text in sorted((f"{name}{ENDING}", text) for name, text in texts.items()):
        data = text.encode()
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return {
        **texts,
        golden.MANIFEST: f"{texts[golden.MANIFEST]}{golden.CONTENTS}: sha256 {digest.hexdigest()}\n",
    }


def unsealed(texts: Texts) -> dict[str, str]:
    """Return `texts` without the last line of the facts."""
    *lines, _ = texts[golden.MANIFEST].splitlines(keepends=True) or [""]
    return {**texts, golden.MANIFEST: "".join(lines)}


def _quantities(texts: Texts) -> Iterator[str]:
    """Yield counts of delegates and operators of each kind, and of bytes."""
    found = reading(texts)
    for what, counts in (
        ("delegate", found.delegates),
        ("operator", found.operators),
        ("outside", found.outside),
    ):
        yield from (f"{what} {name}: {count}" for name, count in sorted(counts.items()))
    yield from (f"memory {arena}: {number}" for arena, number in enumerate(found.memory, 1))
    yield f"constants bytes: {found.constant_bytes}"
    yield f"duplicated bytes: {found.duplicated}"


def compared(texts: Texts, other: Texts) -> dict[str, str]:
    """Return the comparable part of a compact golden, with the golden `other`: equal wherever the artifact is."""
    kept = equality.compared(texts, other)
    facts = sorted(kept[golden.MANIFEST].splitlines(keepends=True))
    kept[golden.MANIFEST] = "".join(line for line in facts if not line.startswith((f"{PASSES}:", *RETIRED)))
    if COUNTED in kept and ADDED_COUNTS not in other.get(COUNTED, ""):
        lines = kept[COUNTED].splitlines(keepends=True)
        kept[COUNTED] = "".join(line for line in lines if not line.startswith(ADDED_COUNTS))
    if PARTS in kept:
        its = other.get(PARTS)
        if its is None:
            del kept[PARTS]
        else:
            kept[PARTS] = parts.compared(kept[PARTS], its)
    return kept


def equal(one: Texts, other: Texts) -> bool:
    """Return whether two compact goldens are of the same artifact."""
    return compared(one, other) == compared(other, one)


def differences(before: Texts, after: Texts) -> Iterator[str]:
    """Yield how two compact goldens differ: the names of texts, then the lines."""
    old, new = compared(before, after), compared(after, before)
    if PARTS in old and PARTS in new:
        names = parts.differing(old[PARTS], new[PARTS])
        yield f"parts that differ, of {len(new[PARTS].splitlines())}: {', '.join(names) or 'none'}"
    for name in sorted({*old, *new}):
        before_it, after_it = (each.get(name, "").splitlines() for each in (old, new))
        found = difflib.unified_diff(before_it, after_it, f"golden/{name}", f"now/{name}", lineterm="", n=0)
        yield from (line for line in found if not line.startswith("@@"))


def recorded_runs(texts: Texts, runs: Sequence[PassRun]) -> list[PassRun] | None:
    """Return the runs that changed the graph when a golden was recorded; None where it does not say.

    Parameters
    ----------
    runs
        All runs of the export at hand: a compact golden holds digests of their names.
    """
    words = golden.fields(texts).get(PASSES)
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
