"""`case` for situations: on the releases that their goldens were recorded on."""

import functools

from executorch_goldens import case as of_every_release

#: The releases that the fixes were taken back in, and the one between them.
RELEASES = ("1.3.1", "1.4.1", "1.5.1")
case = functools.partial(of_every_release, releases=RELEASES)
