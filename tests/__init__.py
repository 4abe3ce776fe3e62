"""The harness's own tests. A package, so that exporting workers can import ``tests.support.zoo`` by this name."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

#: Root of this project's goldens: a directory per release.
GOLDENS = REPOSITORY / "goldens"

#: Files that tests read.
DATA = REPOSITORY / "tests" / "data"
