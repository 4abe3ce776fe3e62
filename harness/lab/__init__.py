"""Instruments that prove the harness, one in each folder. `executorch_goldens` never imports them."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

#: The pages of the lab.
DOCS = Path(__file__).with_name("docs")

#: Defects of ExecuTorch, each a page and a script, with their table.
FINDINGS = REPOSITORY / "findings"

#: Root of this project's goldens: a directory per release.
GOLDENS = REPOSITORY / "goldens"
