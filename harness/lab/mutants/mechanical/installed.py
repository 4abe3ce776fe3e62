"""Registers the drawn mutants in a process that exports: ``--models lab.mutants.mechanical.installed``."""

from __future__ import annotations

import os
from pathlib import Path

from executorch_goldens import patches
from executorch_goldens.settings import releases
from lab.mutants.mechanical import DRAWN
from lab.mutants.mechanical.drawing import read

if os.environ.get(DRAWN):
    for mutant in read(Path(os.environ[DRAWN])):
        patches.register(mutant.patch(releases.load().default))
