"""The pytest plugin: options, collection of cells, the sweep during the tests, the report.

It is asked for by ``-p executorch_goldens.running.plugin``, as ``goldens run`` does, and does nothing until a test
asks for the fixtures `golden_cell` and `golden_run`: ``harness/executorch_goldens/running/cells.py`` does.
"""

from __future__ import annotations

import argparse
import os
import types
from collections.abc import Generator, Iterable, Sequence

import pytest

from executorch_goldens.artifact import Cell
from executorch_goldens.causes.groups import Group
from executorch_goldens.errors import HarnessError
from executorch_goldens.files import os_errors, untrusted
from executorch_goldens.files.waits import saying
from executorch_goldens.files.wording import count
from executorch_goldens.running import messages, options
from executorch_goldens.running.failing import CellFailure, name_type
from executorch_goldens.running.plan import plan
from executorch_goldens.running.progress import Progress, write_verdict
from executorch_goldens.running.run import Run

#: The verbosity of -q -q, which is no progress and no summary of the job.
OFF = -2

#: Cells whose message a red run prints, unless it is verbose: one of each of the worst causes.
MOST_MESSAGES = 4

#: Why the cells could not be collected.
REFUSED = pytest.StashKey[pytest.UsageError]()


def pytest_addoption(parser: pytest.Parser) -> None:
    try:
        options.add_to({title: parser.getgroup(f"goldens: {title}").addoption for title in options.GROUPS})
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


def cell_tests(config: pytest.Config) -> CellTests:
    """Return the plugin of the tests of cells, whose plan is settled when they are first asked for."""
    manager = config.pluginmanager
    if there := next((each for each in manager.get_plugins() if isinstance(each, CellTests)), None):
        return there
    if hasattr(config, "workerinput"):
        # xdist hides its options from its workers, and its controller does not collect.
        raise pytest.Collector.CollectError(
            "golden cells run in processes of their own: use --jobs N instead of -n N"
        )
    try:
        with saying("reading the zoo and its goldens", lambda line: _print(config, [line])):
            made = CellTests(Run(plan(options.read(config.option, config.invocation_params.args))))
    except HarnessError as error:
        raise pytest.UsageError(untrusted.escape_ci(str(error))) from error
    manager.register(made)
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Settle the plan here, where pytest captures nothing of what a wait says."""
    if options.CALLED_AS in os.environ and not hasattr(session.config, "workerinput"):
        cell_tests(session.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"golden_cell", "golden_run"} <= set(metafunc.fixturenames):
        try:
            cells = cell_tests(metafunc.config).run.plan.cells
        except pytest.UsageError as error:
            # Raised from here it would be a traceback of the collection; once that is over, it is one line.
            metafunc.config.stash[REFUSED] = error
            cells = []
        metafunc.parametrize("golden_cell", cells, ids=str)


@pytest.fixture(scope="session")
def golden_run(pytestconfig: pytest.Config) -> Run:
    """The run over the cells of one release."""
    return cell_tests(pytestconfig).run


def pytest_collection_finish(session: pytest.Session) -> None:
    if REFUSED in session.config.stash:
        raise session.config.stash[REFUSED]


class CellTests:
    """The hooks of a run's tests, one a cell.

    Attributes
    ----------
    places
        The place of each test in the zoo's order, which is not the one that they run in.
    cells
        The cell of each test that is about one.
    progress
        None where no progress is shown.
    causes
        The causes of the run's verdicts.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.places: dict[str, int] = {}
        self.cells: dict[str, Cell] = {}
        self.progress: Progress | None = None
        self.causes: Sequence[Group] = ()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Let cells be judged in the order in which they are exported."""
        self.run.deselected = _deselected(session, items)
        yield
        self.places = {item.nodeid: number for number, item in enumerate(items)}
        cells = {item: cell for item in items if (cell := _cell(item)) is not None}
        self.cells = {item.nodeid: cell for item, cell in cells.items()}
        place = {cell: number for number, cell in enumerate(self.run.seconds.in_order(cells.values()))}
        ordered = iter(sorted(cells, key=lambda item: place[cells[item]]))
        items[:] = [next(ordered) if item in cells else item for item in items]
        return None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.config.option.collectonly:
            return
        cells = [cell for item in session.items if (cell := _cell(item)) is not None]
        # A shard may be empty, and is merged with the others all the same.
        if cells or self.run.plan.options.shard is not None:
            try:
                with os_errors.as_user_error():
                    self.run.start(cells)
            except HarnessError as error:
                raise pytest.UsageError(untrusted.escape_ci(str(error))) from error
            self._show_progress(session.config, cells)

    def _show_progress(self, config: pytest.Config, cells: Sequence[Cell]) -> None:
        """Show how far the run is in the place of pytest's letters; beside its lines with -v, and not with -q -q."""
        reporter, verbosity = _reporter(config), config.get_verbosity()
        if reporter is None or verbosity <= OFF:
            return
        if verbosity <= 0:
            reporter.showfspath = False
        live = verbosity <= 0 and reporter.isatty()
        sweeps = [self.run.sweep] if self.run.sweep is not None else []
        jobs = self.run.plan.settings.jobs
        self.progress = Progress(cells, sweeps, self.run.seconds, jobs, reporter, live)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for the exports of a test's cell here, where pytest captures nothing."""
        cell, run = _cell(item), self.run
        if self.progress is None or cell is None or run.sweep is None:
            return (yield)
        self.progress.wait(run.sweep, cell)
        try:
            return (yield)
        finally:
            self.progress.judged(run.sweep, cell, run.verdicts.get(cell), run.edits.get(cell))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report of a failing cell have its fields."""
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, CellFailure):
            report.longrepr = call.excinfo.value.shown  # type: ignore[assignment]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Complete what pytest has noted of a failing cell, before it is written."""
        cell = _cell(item)
        if cell in self.run.verdicts and not self.run.verdicts[cell].accepted:
            name_type(item, self.run.verdicts[cell])

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport, config: pytest.Config
    ) -> tuple[str, str, str] | None:
        """Let a test of a cell be counted, and shown by the progress alone."""
        shown = self.progress is not None and config.get_verbosity() <= 0
        if shown and report.when == "call" and report.nodeid in self.cells and not report.skipped:
            return report.outcome, "", ""
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        try:
            with os_errors.as_user_error():
                self._finish(session)
        except HarnessError as error:
            _print(session.config, [f"ERROR: {error}"])
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _finish(self, session: pytest.Session) -> None:
        """End all processes, order the results, and show the causes; raise HarnessError, OSError."""
        run, reporter = self.run, _reporter(session.config)
        run.finish()
        if reporter is not None:
            reporter.stats.get("failed", []).sort(key=lambda report: self.places.get(report.nodeid, 0))
        # Only a full, passing run knows that a golden has no matching cell.
        whole = run.is_whole() and session.exitstatus == pytest.ExitCode.OK
        if run.sweep is not None:
            with saying("grouping by cause", lambda line: _print(session.config, [line])):
                self.causes = run.conclude()
            if not all(judged.accepted for judged in run.verdicts.values()):
                # Cells whose cause is wrong elsewhere were not recorded, after their test had passed.
                session.exitstatus = max(session.exitstatus, pytest.ExitCode.TESTS_FAILED)
        if run.missed():
            session.exitstatus = max(session.exitstatus, pytest.ExitCode.TESTS_FAILED)
        self._erase_progress()
        if run.sweep is not None and reporter is not None:
            self._show_causes(session.config, self._of_cells(reporter.stats.get("failed", [])))
        if whole and run.leftovers().stale:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        run.close()

    def _erase_progress(self) -> None:
        if self.progress is not None:
            self.progress.erase()

    def _of_cells(self, failed: Iterable[pytest.TestReport]) -> list[pytest.TestReport]:
        """Return the reports that are about cells."""
        return [report for report in failed if report.nodeid in self.cells]

    def _show_causes(self, config: pytest.Config, failed: Sequence[pytest.TestReport]) -> None:
        """Print the causes at once, with a few lines of some cells; then look into them, and print what that shows."""
        run, verbose = self.run, config.get_verbosity() > 0
        _print(config, messages.causes(run, self.causes, verbose))
        if not verbose and config.option.tbstyle != "no":
            if len(failed) == 1:
                self._print_messages(config, failed)
            else:
                self._print_briefly(config, failed)
        watch = self.progress.step if self.progress is not None else lambda *_: None
        for number, shown in run.diagnose(self.causes, watch):
            self._erase_progress()
            _print(config, filter(None, [messages.found(number + 1, shown)]))
        self._erase_progress()
        if left := run.explainer.left:
            over = f"as {left[0]}: {run.plan.options.budget:g} s are over, --explain all sets no limit"
            _print(config, [f"not looked into: {count(len(left), 'further export')}, {over}"])

    def _print_messages(self, config: pytest.Config, failed: Iterable[pytest.TestReport]) -> None:
        """Print the whole message of each cell."""
        for report in failed:
            judged = self.run.verdicts.get(self.cells[report.nodeid])
            text = report.longreprtext
            if judged is not None and not judged.accepted:
                # Further exports may have shown more since.
                text = messages.failure(self.run, judged)
            _print_verdict(config, text.splitlines())

    def _print_briefly(self, config: pytest.Config, failed: Sequence[pytest.TestReport]) -> None:
        """Print three lines at most of one cell of each of the worst causes, and all of cells that have none."""
        for group in self.causes[:MOST_MESSAGES]:
            _print_verdict(config, messages.brief(self.run, self.run.verdicts[group.specimen.proposal.cell]))
        caused = {member.proposal.cell for group in self.causes for member in group.members}
        alone = [report for report in failed if self.cells[report.nodeid] not in caused]
        for report in alone[:MOST_MESSAGES]:
            _print_verdict(config, report.longreprtext.splitlines())
        if self.progress is not None and (more := self.progress.unshown()):
            _print(config, [f"{count(more, 'more cell')} that no line names: -v prints all messages"])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> Generator[None, None, None]:
        """Print the end of the run after pytest's own output, which has nothing of cells."""
        if self.run.sweep is None:
            yield
            return _print(config, messages.missed(self.run))
        failed = terminalreporter.stats.get("failed", [])
        of_cells = self._of_cells(failed)
        terminalreporter.stats["failed"] = [report for report in failed if report not in of_cells]
        # All that syrupy says of these snapshots is said of cells.
        config._syrupy.report = types.SimpleNamespace(lines=())  # type: ignore[attr-defined]
        try:
            yield
        finally:
            terminalreporter.stats["failed"] = failed
        if not failed:
            del terminalreporter.stats["failed"]
        verbose = config.get_verbosity() > 0
        if verbose and config.option.tbstyle != "no":
            self._print_messages(config, of_cells)
        _print(config, messages.summary(self.run, verbose))


def _deselected(session: pytest.Session, items: list[pytest.Item]) -> frozenset[Cell]:
    """Take away the tests that the typed words take, and return their cells.

    Any other cell without a verdict is missed: addopts of the environment or of a file, and plugins, choose none.
    """
    config, parser = session.config, argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-k", dest="keyword", default="")
    parser.add_argument("-m", dest="markexpr", default="")
    parser.add_argument("--deselect", action="append")
    parser.add_argument("--collect-only", "--co", dest="collectonly", action="store_true")
    typed, _ = parser.parse_known_args([*config.invocation_params.args])
    before = {cell for item in items if (cell := _cell(item)) is not None}
    if typed.collectonly:
        return frozenset(before)
    if any(value != config.getoption(name) for name, value in vars(typed).items()):
        return frozenset()
    manager = config.pluginmanager
    others = manager.get_plugins() - {manager.get_plugin("mark"), manager.get_plugin("main")}
    choose = manager.subset_hook_caller("pytest_collection_modifyitems", others)
    choose(session=session, config=config, items=items)
    return frozenset(before - {cell for item in items if (cell := _cell(item)) is not None})


def _cell(item: pytest.Item) -> Cell | None:
    """Return the cell that a test is about."""
    callspec = getattr(item, "callspec", None)
    cell = callspec.params.get("golden_cell") if callspec is not None else None
    return cell if isinstance(cell, Cell) else None


def _reporter(config: pytest.Config) -> pytest.TerminalReporter | None:
    return config.pluginmanager.get_plugin("terminalreporter")


def _print_verdict(config: pytest.Config, lines: Sequence[str]) -> None:
    """Print a message that begins with a verdict, in its colour."""
    reporter = _reporter(config)
    assert reporter is not None
    first, *rest = lines or [""]
    verdict, _, what = first.partition(": ")
    reporter.ensure_newline()
    write_verdict(reporter, verdict, what)
    _print(config, rest)


def _print(config: pytest.Config, lines: Iterable[str]) -> None:
    reporter = _reporter(config)
    if reporter is None:
        return
    for line in lines:
        reporter.ensure_newline()
        reporter.write_line(untrusted.escape_ci(line))
