"""The compact form of a golden: digests and quantities in the place of the graph, the payloads and the program.

Guest zoos have thousands of cells. What a compact golden leaves out is made again where a cell differs: a run keeps the
whole texts of such a cell among its results.
"""

from __future__ import annotations

import hashlib

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.reading import quantities, reading

#: Texts that are kept as they are.
WHOLE = (golden.MANIFEST, golden.FAILURE)


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
    if golden.FAILURE not in texts:
        kept[golden.COUNTED] = quantities(reading(texts))
    return golden.sealed({**kept, golden.MANIFEST: "".join(f"{line}\n" for line in manifest)})
