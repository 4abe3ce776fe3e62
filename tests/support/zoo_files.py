"""Cases that use files that they did not open."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import torch

from executorch_goldens import Data, Example, case


def linear(data: Data) -> Example:
    return Example(torch.nn.Linear(4, 3), (data.tensor("x", 2, 4),))


@case(guards="an export that writes into what others leave, and into each file that is open")
def overwrite(data: Data) -> Example:
    around = Path.cwd().parent.parent
    for _ in range(40):
        for file in around.glob("export-*/*"):
            with contextlib.suppress(OSError):
                file.write_bytes(b"broken")
        for descriptor in range(3, 1024):
            with contextlib.suppress(OSError):
                os.write(descriptor, b"broken")
        time.sleep(0.05)
    return linear(data)


@case(guards="an export that closes each file that is open")
def close(data: Data) -> Example:
    os.closerange(3, 1024)
    return linear(data)


@case(guards="an export beside these")
def beside(data: Data) -> Example:
    time.sleep(1.0)
    return linear(data)
