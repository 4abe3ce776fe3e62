"""The compact form of a golden: digests and quantities in the place of the graph, the payloads and the program.

Guest zoos have thousands of cells. What a compact golden leaves out is made again where a cell differs: a run keeps the
whole texts of such a cell among its results, and those of its golden where an export of it is still kept.

The manifest has the trace in short: two words of `DIGITS` characters for each run, digests of the pass and of
what it left. With the passes of the run at hand they say which pass made a difference.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from executorch_goldens.artifact import PassRun
from executorch_goldens.goldens import golden, rendering
from executorch_goldens.goldens.reading import quantities, reading

#: Texts that are kept as they are.
WHOLE = (golden.MANIFEST, golden.FAILURE, golden.PARTS)
#: Characters of a digest in `golden.PASSES`: 24 bits, in which few hundred names do not collide.
DIGITS = 4
#: Names for a run that the current runs lack, and for a result that none of these had.
GONE, OTHER = "a pass that is there no more", "another"


def compact(texts: golden.Texts) -> dict[str, str]:
    """Return the compact form of a golden; it differs where the golden does."""
    manifest = [
        line for line in golden.unsealed(texts)[golden.MANIFEST].splitlines() if not line.startswith("trace:")
    ]
    manifest.insert(1, f"{golden.FORM}: {golden.COMPACT}")
    kept = {name: texts[name] for name in WHOLE if name in texts}
    for name, text in sorted(texts.items()):
        if name not in (*WHOLE, golden.TRACE):
            digest = hashlib.sha256(text.encode()).hexdigest()
            manifest.append(f"{name}: {len(text.splitlines())} lines sha256 {digest}")
    if golden.TRACE in texts:
        manifest.append(f"{golden.PASSES}: {' '.join(map(_word, rendering.read_trace(texts[golden.TRACE])))}")
    if golden.FAILURE not in texts:
        kept[golden.COUNTED] = quantities(reading(texts))
    return golden.sealed({**kept, golden.MANIFEST: "".join(f"{line}\n" for line in manifest)})


def recorded_runs(texts: golden.Texts, runs: Sequence[PassRun]) -> list[PassRun] | None:
    """Return the runs that changed the graph when a golden was recorded; None where it does not say.

    Parameters
    ----------
    runs
        All runs of the export at hand: a compact golden holds digests of their names.
    """
    if golden.TRACE in texts:
        return list(rendering.read_trace(texts[golden.TRACE]))
    words = golden.fields(texts).get(golden.PASSES)
    if words is None:
        return None
    same = {_word(run): run for run in runs if run.changed}
    passes = {_of_pass(run): run for run in runs}
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
