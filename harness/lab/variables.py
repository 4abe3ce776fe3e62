"""Variables of whoever starts a session that would change what its runs do."""

from __future__ import annotations

from executorch_goldens.running import options
from executorch_goldens_plugins.merge import command as merge

#: The person's, or an outer pytest's.
DROPPED = (
    *("CI", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "EXECUTORCH_GOLDENS_SCHEMAS"),
    *(options.CALLED_AS, merge.STEP_SUMMARY),
)
