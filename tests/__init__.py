"""The harness's own tests. A package, so that exporting workers can import ``tests.support.zoo`` by this name.

``unit`` has one file per module, in folders named as the rooms of `executorch_goldens`. ``runs`` has whole runs over
replayed exports (`support.replay`), ``exports`` those that are real, ``commands`` the other subcommands, ``plugins``
those of plugins, which are run only when they are asked for.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

#: Root of this project's goldens: a directory per release.
GOLDENS = REPOSITORY / "goldens"

#: Files that tests read.
DATA = REPOSITORY / "tests" / "data"
