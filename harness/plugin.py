"""The pytest plugin: options, collection of cells, the sweep beside the tests, the report.

It does nothing until a test asks for the fixtures `cell` and `run`: ``harness/cells.py`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import config as configuration
from harness.artifact import Cell
from harness.errors import HarnessError
from harness.judging import golden
from harness.releases import MATRIX
from harness.run import Options, Run
from harness.selection import EXPORT_TIMEOUT


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("goldens", "golden artifacts of ExecuTorch exports")
    add = group.addoption
    add("--release", metavar="VERSION", help="stop unless the environment holds this ExecuTorch release")
    add(
        "--matrix",
        type=Path,
        default=MATRIX,
        metavar="FILE",
        help="another releases.toml (default: the harness's)",
    )
    add("--cell", action="append", metavar="TARGET/CASE", help="only these cells; wildcards; repeatable")
    add("--family", action="append", metavar="NAME", help="only cases of these families; repeatable")
    add(
        "--variations",
        metavar="quick|full|N",
        help="how many variations of what must not matter (default: full)",
    )
    add("--hash-seeds", metavar="N,...", help="these variations instead: one for each hash seed, e.g. 0,3,7")
    add("--jobs", type=_positive_int, metavar="N", help="exports at a time (default: all cores)")
    add(
        "--export-timeout",
        type=_positive_float,
        metavar="SECONDS",
        help=f"limit per export (default: {EXPORT_TIMEOUT:g})",
    )
    add(
        "--patches",
        default="auto",
        metavar="auto|none|NAME,...",
        help="patches to apply (default: %(default)s)",
    )
    add(
        "--shortcuts",
        default="all",
        metavar="all|none|NAME,...",
        help="what exports are spared, with the same bytes (default: %(default)s)",
    )
    add("--models", action="append", metavar="MODULE", help="zoo: a module that registers cases")
    add("--goldens", type=Path, metavar="DIR", help="root of the goldens (default: goldens)")
    add("--sweeps", type=Path, metavar="DIR", help="where results go (default: build/sweeps)")
    add(
        "--interpreter",
        type=Path,
        metavar="PYTHON",
        help="Python of the environment that exports (default: this)",
    )
    add("--isolation", choices=("fork", "fresh"), default="fork", help="fork a warm template, or start fresh")


def _positive_int(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise pytest.UsageError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _positive_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise pytest.UsageError(f"{text!r} is not a number of seconds above 0")
    return value


RUN = pytest.StashKey[Run]()
REFUSED = pytest.StashKey[pytest.UsageError]()
PRUNED = pytest.StashKey[Sequence[Cell]]()


def _run(config: pytest.Config) -> Run:
    if RUN not in config.stash:
        option = config.option
        if hasattr(config, "workerinput"):
            # xdist hides its options from its workers, and its controller does not collect.
            raise pytest.Collector.CollectError(
                "golden cells run in processes of their own: use --jobs N instead of -n N"
            )
        try:
            repository = configuration.load()
            config.stash[RUN] = Run(
                Options(
                    release=option.release,
                    matrix=option.matrix,
                    cells=tuple(option.cell or ()),
                    families=tuple(option.family or ()),
                    variations=option.variations or repository.variations or "full",
                    hash_seeds=option.hash_seeds,
                    jobs=option.jobs or repository.jobs,
                    export_timeout=option.export_timeout or repository.export_timeout or EXPORT_TIMEOUT,
                    patches=option.patches,
                    shortcuts=option.shortcuts,
                    models=repository.zoos(option.models),
                    goldens=option.goldens or repository.goldens,
                    sweeps=option.sweeps or repository.sweeps,
                    interpreter=option.interpreter,
                    isolation=option.isolation,
                    updating=option.update_snapshots or option.update_new_snapshots_only,
                    targets=repository.targets,
                    releases=repository.releases,
                    tolerances=repository.tolerances,
                )
            )
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from error
    return config.stash[RUN]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"cell", "run"} <= set(metafunc.fixturenames):
        try:
            run = _run(metafunc.config)
            cells = [cell for cell in run.known if cell in run.selected]
        except pytest.UsageError as error:
            # Raised from here it would be a traceback of the collection; once that is over, it is one line.
            metafunc.config.stash[REFUSED] = error
            cells = []
        metafunc.parametrize("cell", cells, ids=str)


@pytest.fixture(scope="session")
def run(pytestconfig: pytest.Config) -> Run:
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
    cells = [params["cell"] for params in parameters if isinstance(params.get("cell"), Cell)]
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
    # Only a run that saw every cell, and found each as it should be, knows that a golden stands for nothing.
    stale = run.stale() if run.is_whole() and session.exitstatus == pytest.ExitCode.OK else []
    if stale and run.updating:
        for cell in stale:
            golden.prune(run.root, cell)
        session.config.stash[PRUNED] = stale
    elif stale:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is None or run.sweep is None:
        return
    terminalreporter.write_sep("-", f"goldens of ExecuTorch {run.release.version}")
    for line in _summary(run, config.stash.get(PRUNED, [])):
        terminalreporter.write_line(line)


def _summary(run: Run, pruned: Sequence[Cell]) -> list[str]:
    names = [judged.name for judged in run.verdicts.values()]
    counts = [f"{names.count(name)} {name}" for name in dict.fromkeys(names)]
    lines = [
        ", ".join(counts) or "no cell was checked",
        f"{len(run.variations)} variations: {', '.join(variation.name for variation in run.variations)}",
        f"patches: {', '.join(run.patches) or 'none'}; results: {run.sweeps / 'results.jsonl'}",
    ]
    lines += [
        f"known: {judged.cell} is {judged.name}: {run.release.known[str(judged.cell)].reason}"
        for judged in run.verdicts.values()
        if judged.known
    ]
    for target in dict.fromkeys(cell.target for cell in run.differences):
        of_target = {cell: part for cell, part in run.differences.items() if cell.target == target}
        worst = max(of_target, key=lambda cell: of_target[cell])
        lines.append(
            f"numerics: {target}: {len(of_target)} cells run; at worst {of_target[worst]:.2g} of the largest value off "
            f"({worst.case})"
        )
    lines += [f"pruned: {golden.directory(run.root, cell)}" for cell in pruned]
    stale = run.stale()
    lines += [f"stale: {golden.directory(run.root, cell)} stands for no cell" for cell in stale]
    if stale:
        whole = f'nox -s "goldens({run.release.version})" -- --snapshot-update'
        lines.append(f"a green run of every cell prunes them: {whole}")
    return lines
