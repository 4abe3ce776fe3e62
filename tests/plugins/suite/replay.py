"""Lets `golden_export` take what `tests.support.replay` has, in place of its exports."""

import executorch_goldens_plugins.suite.session
from tests.support.replay import Replay


def pytest_configure() -> None:
    executorch_goldens_plugins.suite.session.Sweep = Replay  # type: ignore[assignment,misc]
