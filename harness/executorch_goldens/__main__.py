"""``python -m executorch_goldens``, which is ``goldens``."""

import sys

from executorch_goldens.cli import main

if __name__ == "__main__":
    sys.exit(main())
