"""Deliberate defects of the kinds that passes really get, and the proof that the harness tells each.

A mutant is an edit of the installed ExecuTorch, made in exporting processes only, by the way that patches go.
Importing this package registers all of them, so that one can be looked at as any run:
``--models models --models lab.mutants --patches NAME --cell TARGET/CASE``.
"""

from __future__ import annotations

from executorch_goldens import patches
from executorch_goldens.settings import releases
from lab.mutants import folds, layouts, orders, outputs, partitioning, quantizers, requantization
from lab.mutants.mutant import KINDS, Edit, EditError, Mutant

__all__ = ["KINDS", "MUTANTS", "Edit", "EditError", "Mutant"]

MUTANTS: tuple[Mutant, ...] = (
    *orders.MUTANTS,
    *folds.MUTANTS,
    *layouts.MUTANTS,
    *requantization.MUTANTS,
    *outputs.MUTANTS,
    *partitioning.MUTANTS,
    *quantizers.MUTANTS,
)

for mutant in MUTANTS:
    patches.register(mutant.patch(releases.load().default))
