"""The grid: every cell of every release with its verdict and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from executorch_goldens.goldens.labels import OF_RUN
from executorch_goldens.goldens.quantities import QUANTITIES
from executorch_goldens.results.compared import BOTH, KINDS, SAME
from executorch_goldens.results.rows import ALLOWED, KNOWN
from executorch_goldens.review.decisions import ACCEPTED, REJECTED
from executorch_goldens.words.kinds import WORDS
from executorch_goldens_plugins.report.gathering import CellResult, Gathered

#: The sign of each verdict, which says in black and white what the colour says; those that matter most first.
SIGNS = {
    "corrupt": "✗",
    "unstable": "≁",
    "order-only": "≈",
    "failed": "!",
    "crashed": "†",
    "timed-out": "⧗",
    "out-of-memory": "∅",
    "undecodable": "?",
    "damaged-golden": "#",
    "imprecise": "±",
    "over-budget": "▲",
    "changed": "Δ",
    "renamed": "↦",
    "unexpected": "‽",
    "new": "+",
    REJECTED: "⊘",
    ACCEPTED: "✓",
    KNOWN: "◇",
    ALLOWED: "→",
    "stable": "·",
}
#: Signs of the kinds of difference.
SIGNS_OF_KINDS = dict(zip((*KINDS, BOTH, SAME), "✗≁≈!?‽▲▲▲±ΔΔΔ↦⇅✓=·", strict=True))


def grid(gathered: Gathered) -> dict[str, Any]:
    """Return the input of the page's script for the grid, as JSON values."""
    signs, words = legend(gathered)
    return {
        "releases": gathered.releases,
        "compares": gathered.compared is not None,
        "signs": signs,
        "words": words,
        "quantities": list(QUANTITIES.values()),
        "held": gathered.found[0].sides[0] if gathered.found else OF_RUN.old,
        "cells": [_cell(found, gathered) for found in gathered.found],
    }


def _cell(found: CellResult, gathered: Gathered) -> list[Any]:
    """Return a cell as the script reads it: a list, because there are thousands."""
    row = found.row
    accuracy = row.accuracy
    figures = (
        (accuracy.error, accuracy.tolerance, accuracy.used, accuracy.sqnr)
        if accuracy is not None
        else (None,) * 4
    )
    quantities = gathered.quantities(found) if row.verdict == "stable" else {}
    return [
        found.release,
        row.target,
        row.case,
        found.kind,
        int(row.accepted),
        row.reason if found.compared is None else found.compared.what or found.compared.cause or "",
        row.divergence.name if row.divergence is not None else "",
        [_rounded(each) for each in figures],
        [quantities.get(key) for key in QUANTITIES] if quantities else [],
    ]


def legend(gathered: Gathered) -> tuple[dict[str, str], Mapping[str, str]]:
    """Return signs of what a report counts, the worst first and last what needs no look, and words for some of it."""
    return (SIGNS, {}) if gathered.compared is None else (SIGNS_OF_KINDS, WORDS)


def counted(kinds: Iterable[str], order: Iterable[str]) -> dict[str, int]:
    """Return how many of some verdicts, or kinds of difference, there are of each, in an order.

    >>> counted(["changed", "corrupt", "changed"], SIGNS)
    {'corrupt': 1, 'changed': 2}
    """
    number = Counter(kinds)
    return {kind: number[kind] for kind in order if kind in number}


def _rounded(number: float | None) -> float | str | None:
    """Return a number short, and as text where JSON has none.

    >>> _rounded(3.7335334940159573e-06), _rounded(float("inf")), _rounded(None)
    (3.734e-06, 'inf', None)
    """
    if number is None:
        return None
    short = float(f"{number:.4g}")
    return short if short - short == 0.0 else str(short)
