"""The pytest plugin for the test suites of other repositories: the fixture `golden_export`, and nothing else.

Every pytest of an environment with the harness loads it: it does nothing, and imports neither torch nor the rest of the
harness, before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from executorch_goldens_plugins.suite.session import Suite

SUITE: pytest.StashKey[Suite] = pytest.StashKey()


@pytest.fixture
def golden_export(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Export a module under several variations and compare with its golden: ``golden_export(module, inputs)``.

    ``targets`` are those of ``[tool.goldens]`` unless named; ``name``, of the golden, is the test's unless given.
    """
    from executorch_goldens.errors import HarnessError
    from executorch_goldens_plugins.suite import session

    stash = request.config.stash
    if SUITE not in stash:
        try:
            stash[SUITE] = session.Suite.from_options(request.config.option)
        except HarnessError as error:
            # One line, without the error that it comes from.
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        request.config.add_cleanup(stash[SUITE].stop)
    return session.SuiteExports(stash[SUITE], request.node.nodeid, request.getfixturevalue("snapshot"))
