"""The pytest plugin: options, collection of cells, the sweep beside the tests, the report.

It is asked for by ``-p harness.plugin``, as ``python -m harness run`` does, and does nothing until a test asks for the
fixtures `golden_cell` and `golden_run`: ``harness/cells.py`` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from harness import messages, options
from harness.artifact import Cell
from harness.errors import HarnessError
from harness.run import Run

RUN = pytest.StashKey[Run]()
REFUSED = pytest.StashKey[pytest.UsageError]()
PRUNED = pytest.StashKey[Sequence[Cell]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_to(parser.getgroup("goldens", "golden artifacts of ExecuTorch exports").addoption)


def _run(config: pytest.Config) -> Run:
    if RUN not in config.stash:
        if hasattr(config, "workerinput"):
            # xdist hides its options from its workers, and its controller does not collect.
            raise pytest.Collector.CollectError(
                "golden cells run in processes of their own: use --jobs N instead of -n N"
            )
        try:
            config.stash[RUN] = Run(options.read(config.option, config.invocation_params.args))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from error
    return config.stash[RUN]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"golden_cell", "golden_run"} <= set(metafunc.fixturenames):
        try:
            run = _run(metafunc.config)
            cells = [cell for cell in run.known if cell in run.selected]
        except pytest.UsageError as error:
            # Raised from here it would be a traceback of the collection; once that is over, it is one line.
            metafunc.config.stash[REFUSED] = error
            cells = []
        metafunc.parametrize("golden_cell", cells, ids=str)


@pytest.fixture(scope="session")
def golden_run(pytestconfig: pytest.Config) -> Run:
    """The run over the cells of one release."""
    return _run(pytestconfig)


def pytest_collection_finish(session: pytest.Session) -> None:
    if REFUSED in session.config.stash:
        raise session.config.stash[REFUSED]
    if RUN not in session.config.stash or session.config.option.collectonly:
        return
    parameters: list[dict[str, Any]] = [
        item.callspec.params for item in session.items if hasattr(item, "callspec")
    ]
    asked = [params.get("golden_cell") for params in parameters]
    cells = [cell for cell in asked if isinstance(cell, Cell)]
    if cells:
        try:
            session.config.stash[RUN].start(cells)
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    run = session.config.stash.get(RUN, None)
    if run is None:
        return
    run.finish()
    # Only a run that saw every cell, and found each as it should be, knows that a golden has no matching cell.
    whole = run.is_whole() and session.exitstatus == pytest.ExitCode.OK
    stale = run.leftovers().stale if whole else ()
    if stale and run.options.pruning:
        _print(session.config, messages.pruning(run, stale))
        run.prune(stale)
        session.config.stash[PRUNED] = stale
    elif stale:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    run.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is None or run.sweep is None:
        return
    terminalreporter.write_sep("-", f"goldens of ExecuTorch {run.release.version}")
    _print(config, messages.summary(run, config.stash.get(PRUNED, ())))


def _print(config: pytest.Config, lines: Iterable[str]) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    for line in lines:
        reporter.ensure_newline()
        reporter.write_line(line)
