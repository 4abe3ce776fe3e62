"""The pytest plugin: options, collection of cells, the sweep during the tests, the report.

It is asked for by ``-p executorch_goldens.running.plugin``, as ``goldens run`` does, and does nothing until a test
asks for the fixtures `golden_cell` and `golden_run`: ``harness/executorch_goldens/running/cells.py`` does.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import os_errors, untrusted
from executorch_goldens.files.wording import count
from executorch_goldens.review.groups import Group, worst_first
from executorch_goldens.running import messages, options, reporting
from executorch_goldens.running.plan import plan
from executorch_goldens.running.progress import Progress, write_verdict
from executorch_goldens.running.run import Run

#: The verbosity of -q -q, which is no progress and no summary of the job.
OFF = -2

#: Number of causes with a whole message of one cell, and of cells without a cause.
MOST_MESSAGES = 5

RUN = pytest.StashKey[Run]()
REFUSED = pytest.StashKey[pytest.UsageError]()
#: The place of each test in the zoo's order, which is not the one that they run in.
PLACES = pytest.StashKey[Mapping[str, int]]()
#: The cell of each test that is about one.
TESTS = pytest.StashKey[Mapping[str, Cell]]()
PROGRESS = pytest.StashKey[Progress]()
PRUNED = pytest.StashKey[Sequence[Cell]]()
#: Key of the message about the report, where one was requested.
REPORT = pytest.StashKey[str]()
#: Key of the causes of the run's verdicts.
CAUSES = pytest.StashKey[Sequence[Group]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    # The command that a wrapper was called with, for messages.
    parser.getgroup("goldens").addoption("--called-as", default="", help=argparse.SUPPRESS)
    options.add_to({title: parser.getgroup(f"goldens: {title}").addoption for title in options.GROUPS})


def _run(config: pytest.Config) -> Run:
    if RUN not in config.stash:
        if hasattr(config, "workerinput"):
            # xdist hides its options from its workers, and its controller does not collect.
            raise pytest.Collector.CollectError(
                "golden cells run in processes of their own: use --jobs N instead of -n N"
            )
        try:
            config.stash[RUN] = Run(plan(options.read(config.option, config.invocation_params.args)))
        except HarnessError as error:
            raise pytest.UsageError(untrusted.escape_ci(str(error))) from error
    return config.stash[RUN]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"golden_cell", "golden_run"} <= set(metafunc.fixturenames):
        try:
            run = _run(metafunc.config)
            cells = run.plan.cells
        except pytest.UsageError as error:
            # Raised from here it would be a traceback of the collection; once that is over, it is one line.
            metafunc.config.stash[REFUSED] = error
            cells = []
        metafunc.parametrize("golden_cell", cells, ids=str)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let cells be judged in the order in which they are exported."""
    run = config.stash.get(RUN, None)
    if run is None:
        return
    config.stash[PLACES] = {item.nodeid: number for number, item in enumerate(items)}
    cells = {item: cell for item in items if (cell := _cell(item)) is not None}
    config.stash[TESTS] = {item.nodeid: cell for item, cell in cells.items()}
    place = {cell: number for number, cell in enumerate(run.in_order(cells.values()))}
    ordered = iter(sorted(cells, key=lambda item: place[cells[item]]))
    items[:] = [next(ordered) if item in cells else item for item in items]


def _cell(item: pytest.Item) -> Cell | None:
    """Return the cell that a test is about."""
    callspec = getattr(item, "callspec", None)
    cell = callspec.params.get("golden_cell") if callspec is not None else None
    return cell if isinstance(cell, Cell) else None


@pytest.fixture(scope="session")
def golden_run(pytestconfig: pytest.Config) -> Run:
    """The run over the cells of one release."""
    return _run(pytestconfig)


def pytest_collection_finish(session: pytest.Session) -> None:
    if REFUSED in session.config.stash:
        raise session.config.stash[REFUSED]
    if RUN not in session.config.stash or session.config.option.collectonly:
        return
    run = session.config.stash[RUN]
    if run.plan.changes is not None:
        _print(session.config, run.plan.changes.lines(run.release.version))
    cells = [cell for item in session.items if (cell := _cell(item)) is not None]
    # A shard may be empty, and is merged with the others all the same.
    if cells or run.plan.options.shard is not None:
        try:
            with os_errors.as_user_error():
                run.start(cells)
        except HarnessError as error:
            raise pytest.UsageError(untrusted.escape_ci(str(error))) from error
        _show_progress(session.config, run, cells)


def _show_progress(config: pytest.Config, run: Run, cells: Sequence[Cell]) -> None:
    """Show how far the run is in the place of pytest's letters; beside its lines with -v, and not with -q -q."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    verbosity = config.get_verbosity()
    if reporter is None or verbosity <= OFF:
        return
    if verbosity <= 0:
        reporter.showfspath = False
    config.stash[PROGRESS] = run.progress(cells, reporter, live=verbosity <= 0 and reporter.isatty())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait for the exports of a test's cell here, where pytest captures nothing."""
    progress, cell = item.config.stash.get(PROGRESS, None), _cell(item)
    run = item.config.stash.get(RUN, None)
    if progress is None or cell is None or run is None or run.sweep is None:
        return (yield)
    progress.wait(run.sweep, cell)
    try:
        return (yield)
    finally:
        progress.judged(run.sweep, cell, run.verdicts.get(cell), run.edits.get(cell))


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Let a test of a cell be counted, and shown by the progress alone."""
    shown = PROGRESS in config.stash and config.get_verbosity() <= 0
    if shown and report.when == "call" and report.nodeid in config.stash[TESTS] and not report.skipped:
        return report.outcome, "", ""
    return None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    run = session.config.stash.get(RUN, None)
    if run is None:
        return
    try:
        with os_errors.as_user_error():
            _finish(session, run)
    except HarnessError as error:
        _print(session.config, [f"ERROR: {error}"])
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def _finish(session: pytest.Session, run: Run) -> None:
    """End all processes, order the results, and write the requested reports; raise HarnessError, OSError."""
    run.finish()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        places = session.config.stash.get(PLACES, {})
        reporter.stats.get("failed", []).sort(key=lambda report: places.get(report.nodeid, 0))
    # Only a run that saw every cell, and found each as it should be, knows that a golden has no matching cell.
    whole = run.is_whole() and session.exitstatus == pytest.ExitCode.OK
    stale = run.leftovers().stale if whole else ()
    if run.sweep is not None and (xml := getattr(session.config.option, "xmlpath", None)):
        run.results.take_junit(Path(xml))
    if run.sweep is not None:
        session.config.stash[CAUSES] = run.conclude(lambda line: _say(session.config, line))
        if not all(judged.accepted for judged in run.verdicts.values()):
            # Cells whose cause is wrong elsewhere were not recorded, after their test had passed.
            session.exitstatus = max(session.exitstatus, pytest.ExitCode.TESTS_FAILED)
    if (progress := session.config.stash.get(PROGRESS, None)) is not None:
        progress.erase()
    if stale and run.plan.options.pruning:
        _print(session.config, messages.pruning(run, stale))
        run.prune(stale)
        session.config.stash[PRUNED] = stale
    elif stale:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    run.close()
    if run.plan.options.report is not None and run.sweep is not None:
        written, said = reporting.write(run.plan.options.report, run.results.root, run.plan.goldens)
        session.config.stash[REPORT] = said
        if not written and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Print one message a cause, and the end of the run, after pytest's own output."""
    run = config.stash.get(RUN, None)
    if run is None or run.sweep is None:
        return (yield)
    failed = terminalreporter.stats.get("failed", [])
    of_cells = [report for report in failed if report.nodeid in config.stash.get(TESTS, {})]
    terminalreporter.stats["failed"] = [report for report in failed if report not in of_cells]
    try:
        yield
    finally:
        terminalreporter.stats["failed"] = failed
    if not failed:
        del terminalreporter.stats["failed"]
    shown = _shown(config, of_cells)
    if shown:
        terminalreporter.write_sep("=", "FAILURES")
    for number, report in enumerate(shown):
        verdict, _, what = report.longreprtext.partition(": ")
        first, rest = messages.shortened(what, whole=len(shown) == 1 or config.get_verbosity() > 0)
        if number:
            terminalreporter.write_line("")
        write_verdict(terminalreporter, verdict, first)
        _print(config, rest)
    if PROGRESS not in config.stash:
        # No line has named them yet.
        lines = (report.longreprtext.partition("\n")[0] for report in of_cells if report not in shown)
        _print(config, lines)
    elif more := config.stash[PROGRESS].unshown():
        _print(config, [f"{count(more, 'more cell')} like these: -v names all"])
    _summarize(terminalreporter, config, run)


def _shown(config: pytest.Config, failed: Sequence[pytest.TestReport]) -> Sequence[pytest.TestReport]:
    """Return the reports whose messages are printed: of each bad cause one; with -v all, with --tb=no none."""
    if config.option.tbstyle == "no":
        return ()
    if config.get_verbosity() > 0:
        return failed
    of_cell = {config.stash.get(TESTS, {}).get(report.nodeid): report for report in failed}
    shown = []
    groups: Sequence[Group] = config.stash.get(CAUSES, ())
    for group in worst_first(groups)[:MOST_MESSAGES]:
        # The worst says most; a cause's members come by how much there is to read of them.
        for member in (group.specimen, *group.wrong, *group.members):
            if member.proposal.cell in of_cell:
                shown.append(of_cell[member.proposal.cell])
                break
    proposed = {member.proposal.cell for group in config.stash.get(CAUSES, ()) for member in group.members}
    alone = [report for cell, report in of_cell.items() if cell not in proposed]
    return [*shown, *alone[:MOST_MESSAGES]]


def _summarize(terminalreporter: pytest.TerminalReporter, config: pytest.Config, run: Run) -> None:
    title = f"goldens of ExecuTorch {run.release.version}"
    terminalreporter.write_sep("-", title)
    groups = config.stash.get(CAUSES, ())
    # Beside causes that wait for a person, how near all others are to eager only fills the screen.
    measures = not groups or config.get_verbosity() > 0
    _print(config, messages.summary(run, config.stash.get(PRUNED, ()), measures))
    if REPORT in config.stash:
        _print(config, [config.stash[REPORT]])
    _print(config, messages.causes(run, groups))
    if config.get_verbosity() > OFF:
        messages.step_summary(title, *messages.labels(run.verdicts.values(), run.release.known))


def _say(config: pytest.Config, line: str) -> None:
    """Show the work of a run after its last cell."""
    if (progress := config.stash.get(PROGRESS, None)) is not None:
        progress.say(line)


def _print(config: pytest.Config, lines: Iterable[str]) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    for line in lines:
        reporter.ensure_newline()
        reporter.write_line(untrusted.escape_ci(line))
