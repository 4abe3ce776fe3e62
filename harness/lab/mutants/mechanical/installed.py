"""Registers the drawn mutants in a process that exports: ``--models lab.mutants.mechanical.installed``."""

from __future__ import annotations

import os
from pathlib import Path

from executorch_goldens import patches
from lab.mutants.mechanical import DRAWN
from lab.mutants.mechanical.drawing import read

if os.environ.get(DRAWN):
    release, drawn = read(Path(os.environ[DRAWN]))
    for mutant in drawn:
        patches.register(mutant.patch(release))
