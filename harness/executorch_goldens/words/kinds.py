"""Kinds of difference of a cell between two toolchains, in words."""

from __future__ import annotations

from collections.abc import Mapping

#: Of `executorch_goldens.results.compared.KINDS`, then of cells that are the same on both sides.
WORDS: Mapping[str, str] = {
    "wrong": "newly wrong",
    "unstable": "newly unstable",
    "at-times": "unstable, and at times the same as the base",
    "fails": "newly failing",
    "unjudged": "no longer judged",
    "differently": "wrong, unstable or failing in a different way",
    "outside": "more operators outside delegates",
    "memory": "more memory",
    "bytes": "more bytes",
    "inexact": "less exact",
    "as-wrong": "as wrong as before, with a different program",
    "unknown": "different, and not judged",
    "different": "different, but correct within the tolerance",
    "renamed": "renamed only",
    "order": "reordered only",
    "better": "better",
    "both": "wrong, unstable or failing, alike on both sides",
    "identical": "identical",
}
