"""A case that a fix of upstream's is of, and that fix taken back in whatever release has the code.

It makes nothing wrong: ``--models tests.support.zoo_masks --patches masks-outside``.
"""

from __future__ import annotations

from executorch_goldens import Data, Example, case
from executorch_goldens.patches import Patch, register
from executorch_goldens.settings import releases
from lab.mutants.history import FIXES
from lab.mutants.mutant import UNGUARDED
from models.situations.float_types import mask_logic

(FIX,) = (fix for fix in FIXES if fix.number == 17734)

register(
    Patch(
        *("masks-outside", None, FIX.broke, {name: {} for name in releases.load().releases}, FIX.install),
        unguarded=UNGUARDED,
    )
)


@case(guards="booleans within a delegate need no planned memory", backends=("tosa-fp",))
def masks(data: Data) -> Example:
    return mask_logic(data)
