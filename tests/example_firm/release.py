"""Writes a program as the firm ships it: ``python release.py wake_word wake_word.pte``.

With ``--pinned`` after it, and ``ATEN_CPU_CAPABILITY=default`` in the environment, it fixes what goldens fix.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import zoo

from executorch_goldens import Build

name, file, *options = sys.argv[1:]
if "--pinned" in options:
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
program = getattr(zoo, name)(Build(name.replace("_", "-")))
Path(file).write_bytes(bytes(program.buffer))
