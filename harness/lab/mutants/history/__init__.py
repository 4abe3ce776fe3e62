"""Real upstream fixes, reverted: does the zoo see the old defects?

Each is a small edit of the installed release that has the fix, written for this project, that brings the behaviour
before the fix back. Importing this package registers all of them, so that one can be looked at as any run:
``--models models --models lab.mutants.history --patches NAME --release RELEASE``.
"""

from __future__ import annotations

from executorch_goldens import patches
from lab.mutants.history import arm_passes, arm_quantizer, arm_support, exir, xnnpack
from lab.mutants.history.fix import KINDS, SINCE, Fix

__all__ = ["AREAS", "FIXES", "KINDS", "SINCE", "Fix"]

#: Fixes by what they are of.
AREAS: dict[str, tuple[Fix, ...]] = {
    "Arm passes": arm_passes.FIXES,
    "Arm quantizer": arm_quantizer.FIXES,
    "Arm partitioning": arm_support.FIXES,
    "XNNPACK lowering": xnnpack.FIXES,
    "exir and transforms": exir.FIXES,
}

FIXES: tuple[Fix, ...] = tuple(fix for fixes in AREAS.values() for fix in fixes)

for fix in FIXES:
    patches.register(fix.patch())
