"""Exports in processes of their own: one that dies or hangs is a verdict, and leaves nothing."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from filelock import FileLock

from executorch_goldens.artifact import ENDED, HUNG, Cell, Exited, Killed, Outcome, Overwritten, TimedOut
from executorch_goldens.exporting.limits import Idleness
from executorch_goldens.settings.exports import (
    Machine,
    Settings,
    absolute,
    default_interpreter,
    worker_environment,
)
from executorch_goldens.sweep import messages
from executorch_goldens.sweep.folder import Folder
from executorch_goldens.sweep.messages import Ended, ExportRequest, Started
from executorch_goldens.sweep.schedule import Job
from executorch_goldens.sweep.serving import Template
from executorch_goldens.sweep.sweep import Sweep, SweepError, worth_warming
from executorch_goldens.sweep.template import TemplateProcess
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.zoo.variations import variations
from tests import REPOSITORY
from tests.conftest import ZOO_LIMIT, Sweeper, ZooRun
from tests.support.making import lowered_by

HANG = Cell("xnnpack-fp32", "hang")
STEADY = Cell("xnnpack-fp32", "steady")

#: Seconds after which something that should have happened has not.
PATIENCE = 120.0


def wait_until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def members(session: int) -> set[int]:
    """Return the living processes of a session (man 5 proc, /proc/PID/stat: fields 3 and 6)."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found


def open_files() -> int:
    """Return how many descriptors this process has open (man 5 proc, /proc/PID/fd)."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


# Exports that come to no end


@pytest.mark.slow
def test_a_crash_is_a_verdict_with_the_signal_and_the_last_words(zoo_run: ZooRun) -> None:
    row = zoo_run.finished.rows["xnnpack-fp32/crash"]
    assert row["verdict"] == "crashed"
    assert "SIGSEGV" in zoo_run.finished.reason("xnnpack-fp32/crash")
    assert "last words before the signal" in zoo_run.finished.output


@pytest.mark.slow
def test_an_exit_without_an_artifact_is_a_crash(zoo_run: ZooRun) -> None:
    row = zoo_run.finished.rows["xnnpack-fp32/quit"]
    assert row["verdict"] == "crashed"
    assert "exit status 0" in zoo_run.finished.reason("xnnpack-fp32/quit")


@pytest.mark.slow
def test_a_hang_is_ended_at_the_limit_with_the_last_words(zoo_run: ZooRun) -> None:
    row = zoo_run.finished.rows["xnnpack-fp32/hang"]
    assert row["verdict"] == "timed-out"
    reason = zoo_run.finished.reason("xnnpack-fp32/hang")
    assert f"the limit is {ZOO_LIMIT:g} s of either (export-timeout)" in reason
    assert re.search(
        r"no end after 2\d s of processor time and \d+ s of wall time, the last 0 s of it idle", reason
    )
    # The innermost call, and only its own thread's.
    printed, innermost, *_ = row["findings"][0]["ended"]["tail"]
    assert printed == "waiting for nothing"
    assert re.fullmatch(r' +File ".*", line \d+ in hang', innermost)
    for seconds in row["core_seconds"]:
        assert ZOO_LIMIT <= seconds < ZOO_LIMIT + 15


@pytest.mark.slow
def test_the_run_goes_on_after_a_crash_and_a_hang(zoo_run: ZooRun) -> None:
    cells = list(zoo_run.finished.rows)
    assert cells.index("xnnpack-fp32/crash") < cells.index("xnnpack-fp32/hang") < len(cells) - 1
    assert zoo_run.finished.rows[cells[-1]]["verdict"] == "failed"


# Processes


@pytest.mark.slow
def test_what_a_killed_template_was_exporting_is_exported_again_and_no_process_is_left(
    sweeper: Sweeper,
) -> None:
    sweep = sweeper(["steady"], jobs=1)
    wait_until(lambda: any(has_started(template) for template in list(sweep.templates.values())))
    (template,) = (template.process.pid for template in sweep.templates.values())
    os.kill(template, signal.SIGKILL)
    lowered_by(*sweep.outcomes(STEADY))
    wait_until(lambda: not members(template))


def test_an_export_whose_templates_are_killed_twice_is_named_and_costs_no_other(tmp_path: Path) -> None:
    with fresh_sweep(["hang", "no-such-case"]) as sweep:
        killed = {template_of(sweep)}
        next(iter(killed)).kill()
        wait_until(
            lambda: any(
                has_started(template) and template.process not in killed
                for template in list(sweep.templates.values())
            )
        )
        # It is alone in the second, and the other one waits.
        (template,) = sweep.templates.values()
        (again,) = template.jobs()
        template.process.kill()
        (outcome,) = sweep.outcomes(again.cell)
        assert isinstance(outcome.result, Killed)
        assert (outcome.result.signal, outcome.result.template) == ("SIGKILL", ENDED)
        other = next(cell for cell in sweep.results if cell != again.cell)
        wait_until(lambda: any(job.cell == other for job in sweep.running()))


def test_a_template_that_is_killed_before_it_is_ready_is_started_again_once() -> None:
    with fresh_sweep(["hang"]) as sweep:
        wait_until(lambda: sweep.templates)
        first = next(iter(sweep.templates.values())).process
        first.kill()
        assert template_of(sweep) is not first


# Limits


def serve_one(limit: float, run: Callable[[], object], scratch: Path) -> Ended:
    """Let a template run one request in a child; return its answer at the end."""
    requests = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def start(request: ExportRequest, result: int) -> int:
        process = os.fork()
        if process == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGXCPU, signal.SIG_IGN)
            run()
            os._exit(0)
        return process

    template = os.fork()
    if template == 0:
        os.close(requests[1])
        ours.close()
        Template(requests[0], theirs, start, PATIENCE).serve()
        os._exit(0)
    os.close(requests[0])
    theirs.close()
    settings = Settings(default_interpreter(), (), (), 1, limit)
    asked = ExportRequest(
        id=1, target="", case="", settings=settings, scratch=str(scratch), log="", cwd=str(scratch)
    )
    os.write(requests[1], messages.encoded(asked) + b"\n")
    with ours:
        _, ended = (messages.decoded(ours.recv(1 << 16), Started | Ended) for _ in range(2))
    os.close(requests[1])
    os.waitpid(template, 0)
    assert isinstance(ended, Ended)
    return ended


def spin(seconds: float = 60.0) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def spin_in_a_child() -> None:
    child = os.fork()
    if child == 0:
        spin()
        os._exit(0)
    os.waitpid(child, 0)


def wait_and_compute() -> None:
    for _ in range(4):
        time.sleep(0.5)
        spin(0.2)


def test_an_export_that_computes_now_and_then_is_not_idle(tmp_path: Path) -> None:
    ended = serve_one(1.2, wait_and_compute, tmp_path)
    assert (ended.timed_out, ended.status) == (False, 0)
    assert ended.seconds > 2.5


@pytest.mark.parametrize("run", [spin, spin_in_a_child])
def test_an_export_is_ended_at_its_limit_of_processor_time_and_what_it_started_counts(
    tmp_path: Path, run: Callable[[], object]
) -> None:
    ended = serve_one(0.5, run, tmp_path)
    assert ended.timed_out
    assert 0.5 <= ended.core_seconds < 10.0


def doze() -> None:
    while True:
        time.sleep(0.05)


def wait_for_a_child() -> None:
    if (child := os.fork()) == 0:
        doze()
    os.waitpid(child, 0)


@pytest.mark.parametrize("run", [lambda: time.sleep(60.0), doze, wait_for_a_child])
def test_an_export_that_does_nothing_is_ended_when_it_was_idle_for_its_limit(
    tmp_path: Path, run: Callable[[], object]
) -> None:
    ended = serve_one(0.5, run, tmp_path)
    assert ended.timed_out
    assert ended.idle > 0.5
    assert ended.core_seconds < 0.5


def test_a_process_that_waits_for_a_processor_is_not_idle() -> None:
    """Three share a core, and one of them hardly gets any of it."""

    def share_a_core(nice: int) -> int:
        if process := os.fork():
            return process
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.nice(nice)
        spin()
        os._exit(0)

    processes = [share_a_core(nice) for nice in (19, 0, 0)]
    try:
        idleness = Idleness(processes[0])
        for _ in range(10):
            time.sleep(0.1)
            idleness.look(1.0)
            assert idleness.idle == 0.0
    finally:
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["fork", "fresh"])
def test_stopping_leaves_no_process_and_no_file(sweeper: Sweeper, isolation: str) -> None:
    sweep = sweeper(["hang"], isolation=isolation)
    wait_until(lambda: any(template.running for template in sweep.templates.values()))
    (template,) = (template.process.pid for template in sweep.templates.values())
    log = sweep.directory / "export-0" / "log"
    wait_until(lambda: log.exists() and "waiting for nothing" in log.read_text())
    # Forks are made by a process of the group, which the first one watches.
    assert len(members(template)) == (3 if isolation == "fork" else 2)
    sweep.stop()
    assert members(template) == set()
    assert not sweep.directory.exists()


def refusal(settings: Settings) -> str:
    """Return why a sweep ends that makes one export."""
    sweep = Sweep([STEADY], variations((0,)), settings)
    sweep.start()
    try:
        with pytest.raises(SweepError) as raised:
            sweep.outcomes(STEADY)
    finally:
        sweep.stop()
    return str(raised.value)


@pytest.mark.slow
def test_a_template_that_does_not_start_is_an_error_with_its_last_lines() -> None:
    shortcuts = {"no-such": "json:no_such_shortcut"}
    settings = Settings(default_interpreter(), ("tests.support.zoo",), (), 1, 60.0, shortcuts=shortcuts)
    said = refusal(settings)
    assert said.startswith(f"{settings.interpreter} could not start exporting (")
    assert "no_such_shortcut" in said


@pytest.mark.slow
def test_a_zoo_that_cannot_be_imported_is_an_error_and_no_casualty() -> None:
    """A template imports none: each export imports the one of its case."""
    said = refusal(Settings(default_interpreter(), ("tests.no_such_zoo",), (), 1, 60.0))
    assert said.startswith(f"{STEADY} [seed0-heap0]: ZooError: ")
    assert "tests.no_such_zoo" in said


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["fork", "fresh"])
def test_files_beside_the_zoo_with_names_of_pythons_own_modules_are_not_taken_for_them(
    tmp_path: Path, isolation: str
) -> None:
    for name in ("keyword", "token", "types", "queue", "random", "asyncio", "timeit"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported in place of a module of Python')")
    machine = Machine(paths=(tmp_path, REPOSITORY))
    settings = Settings(
        default_interpreter(), ("tests.support.zoo",), (), 1, 60.0, isolation=isolation, machine=machine
    )
    with Sweep([STEADY], variations((0,)), settings) as sweep:
        (outcome,) = sweep.outcomes(STEADY)
    lowered_by(outcome)


@pytest.mark.slow
def test_fresh_interpreters_make_the_same_artifact_as_forks(
    sweeper: Sweeper, exports: Mapping[str, tuple[Outcome, ...]]
) -> None:
    (fresh,) = sweeper(["steady"], isolation="fresh").outcomes(STEADY)
    assert lowered_by(fresh) == lowered_by(exports["steady"][0])


def test_outcomes_come_in_the_order_of_the_variations_with_their_cost(
    exports: Mapping[str, tuple[Outcome, ...]],
) -> None:
    for outcomes in exports.values():
        assert [outcome.variation for outcome in outcomes] == ["seed0-heap0", "seed4-heap1"]
        for outcome in outcomes:
            assert outcome.seconds > 0.0
            assert outcome.peak_mb > 50.0


@pytest.mark.slow
def test_a_case_that_writes_into_others_files_or_closes_its_own_costs_no_other() -> None:
    ends = {"overwrite": Overwritten, "close": Exited}
    settings = Settings(default_interpreter(), ("tests.support.zoo_files",), (), jobs=2, limit=120.0)
    for case, kind in ends.items():
        cells = [Cell("xnnpack-fp32", name) for name in (case, "beside")]
        with Sweep(cells, variations((0,)), settings) as sweep:
            (lost,), beside = map(sweep.outcomes, cells)
            lowered_by(*beside)
            assert isinstance(lost.result, kind)
            assert case != "close" or "closed a file that it did not open" in "\n".join(lost.result.tail)


# Templates that nothing is wanted of, results that nobody has asked for


@pytest.mark.slow
def test_a_template_ends_when_its_last_export_has_and_what_waits_to_be_judged_is_on_disk() -> None:
    settings = Settings(
        default_interpreter(), ("tests.support.zoo",), (), jobs=1, limit=5.0, isolation="fresh", execute=False
    )
    first, second = variations((0, 4))
    with Sweep([HANG], (first, second), settings) as sweep:
        wait_until(lambda: [job.variation for job in sweep.running()] == [second])
        wait_until(lambda: list(sweep.templates) == [second])
        assert not sweep.ready(HANG, 0.0)
        wait_until(lambda: sweep.ready(HANG, 1.0))
        assert sorted(path.name for path in sweep.directory.glob("export-*")) == ["export-0", "export-1"]
        outcomes = sweep.outcomes(HANG)
        assert [outcome.variation for outcome in outcomes] == [first.name, second.name]
        assert not list(sweep.directory.glob("export-*"))


# Templates that misbehave


def fresh_sweep(
    cases: Sequence[str] = ("hang",), interpreter: Path | None = None, limit: float = 120.0
) -> Sweep:
    """A sweep whose templates are ready at once: each export imports torch for itself."""
    settings = Settings(
        interpreter or default_interpreter(),
        ("tests.support.zoo",),
        (),
        jobs=2,
        limit=limit,
        isolation="fresh",
    )
    return Sweep([Cell("xnnpack-fp32", case) for case in cases], variations((0,)), settings)


def has_started(template: TemplateProcess) -> bool:
    """Return whether the process of an export of a template has started."""
    return any(each.process is not None for each in list(template.running.values()))


def template_of(sweep: Sweep) -> subprocess.Popen[bytes]:
    """Wait until the sweep's one template has an export running, and return its process."""
    wait_until(lambda: any(has_started(template) for template in list(sweep.templates.values())))
    (template,) = sweep.templates.values()
    return template.process


@pytest.mark.parametrize("end", ["stopped", "killed", "not started", "no interpreter"])
def test_a_sweep_leaves_no_open_file_behind(end: str, tmp_path: Path) -> None:
    def once() -> None:
        interpreter = tmp_path / "missing" if end == "no interpreter" else None
        with fresh_sweep(interpreter=interpreter) as sweep:
            if end in ("stopped", "killed"):
                process = template_of(sweep)
            if end == "killed":
                process.kill()
                wait_until(lambda: process not in (each.process for each in list(sweep.templates.values())))
                template_of(sweep).kill()
                sweep.outcomes(HANG)
            if end == "no interpreter":
                with pytest.raises(SweepError, match=str(interpreter)):
                    sweep.outcomes(HANG)

    once()
    before = open_files()
    for _ in range(3):
        once()
    assert open_files() == before


def stop_before_requests(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the next templates hang before they take a request, as a stopped process does."""
    request, stopped = Sweep._request, itertools.count()

    def stop_and_request(self: Sweep, template: TemplateProcess, job: Job) -> None:
        if next(stopped) < times:
            template.process.send_signal(signal.SIGSTOP)
        request(self, template, job)

    monkeypatch.setattr("executorch_goldens.sweep.template.ANSWER_LIMIT", 1.0)
    monkeypatch.setattr(Sweep, "_request", stop_and_request)


@pytest.mark.slow
def test_what_a_hanging_template_did_not_export_is_exported_by_a_fresh_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop_before_requests(monkeypatch, 1)
    with fresh_sweep(["steady"]) as sweep:
        lowered_by(*sweep.outcomes(STEADY))


def test_a_cell_whose_templates_hang_twice_is_one_red_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_before_requests(monkeypatch, 2)
    settings = Settings(
        default_interpreter(), ("tests.support.zoo",), (), jobs=1, limit=1.0, isolation="fresh"
    )
    with Sweep([HANG], variations((0,)), settings, lasting=True) as sweep:
        (outcome,) = sweep.outcomes(HANG)
        assert outcome.result == Killed("SIGKILL", template=HUNG, silent=1.0)
        # Others are exported all the same.
        monkeypatch.setattr("executorch_goldens.sweep.template.ANSWER_LIMIT", PATIENCE)
        (outcome,) = sweep.again(HANG, variations((0,)))
        assert isinstance(outcome.result, TimedOut)


def test_a_template_that_hangs_while_it_exports_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executorch_goldens.sweep.template.ANSWER_LIMIT", 1.0)
    with fresh_sweep(limit=0.3) as sweep:
        hung = template_of(sweep)
        hung.send_signal(signal.SIGSTOP)
        (outcome,) = sweep.outcomes(HANG)
        assert isinstance(outcome.result, TimedOut)
        assert hung.returncode == -signal.SIGKILL
        wait_until(lambda: not members(hung.pid))


@pytest.mark.parametrize(
    "words",
    [
        *("hello", '"ready"', "\\xff", '{"type": "Started", "id": 0, "process": 1}'),
        '{"type": "Started", "id": 77, "process": 1, "template": 1}',
        '{"type": "Started", "id": [0], "process": 1, "template": 1}',
    ],
)
def test_an_answer_that_is_none_is_one_error_that_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import json, os, sys\n"
        "if 'sweep.worker' in ' '.join(sys.orig_argv):\n"
        "    request = os.pread(int(sys.orig_argv[-1]), 1 << 20, 0)\n"
        f"    os.write(json.loads(request)['answers'], b'{words}')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with fresh_sweep() as sweep, pytest.raises(SweepError) as raised:
        sweep.outcomes(HANG)
    assert words in str(raised.value)
    assert "--models tests.support.zoo" in str(raised.value)
    assert "\n" not in str(raised.value)


# The folder of a sweep


def test_a_folder_that_another_process_deletes_is_not_made_again_open_to_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    make, made = tempfile.mkdtemp, itertools.count()

    def make_and_lose(prefix: str) -> str:
        path = make(prefix=prefix)
        if next(made) < 2:
            # The system's cleaner, for one that nobody holds yet.
            monkeypatch.setattr(FileLock, "acquire", deleting(path))
        return path

    def deleting(path: str) -> Callable[..., object]:
        def acquire(self: FileLock, *given: Any, **others: Any) -> object:
            if Path(self.lock_file).parent == Path(path):
                shutil.rmtree(path, ignore_errors=True)
            return real(self, *given, **others)

        return acquire

    real = FileLock.acquire
    monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose)
    with Folder.make() as folder:
        monkeypatch.setattr(FileLock, "acquire", real)
        assert S_IMODE(folder.path.stat().st_mode) == 0o700
        assert [path for path in tmp_path.iterdir() if path != folder.path] == []


def test_a_folder_that_is_deleted_while_exports_run_is_one_error_and_is_not_made_again() -> None:
    with fresh_sweep(["hang", "steady"]) as sweep:
        wait_until(lambda: sweep.templates)
        shutil.rmtree(sweep.directory)
        with pytest.raises(SweepError) as raised:
            sweep.outcomes(HANG)
        assert f"{sweep.directory} was deleted while exports ran" in str(raised.value)
        assert not sweep.directory.exists()


# The environment of a worker


def test_the_environments_own_flatc_is_the_one_that_lowering_finds(
    exports: Mapping[str, tuple[Outcome, ...]], other_flatc: Path
) -> None:
    lowered_by(exports["steady"][0])
    assert not (other_flatc.parent / "called").exists()


@pytest.mark.slow
def test_an_interpreter_given_by_a_relative_path_finds_its_flatc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "env").symlink_to(default_interpreter().parent.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    # The zoo of the tests is not below the folder that the sweep starts in.
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    with fresh_sweep(["steady"], Path("env/bin") / default_interpreter().name) as sweep:
        lowered_by(*sweep.outcomes(STEADY))


@pytest.mark.slow
def test_a_zoo_that_a_fresh_interpreter_cannot_import_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with (
        fresh_sweep(["steady"], default_interpreter()) as sweep,
        pytest.raises(SweepError, match=r"ZooError: .*tests.support.zoo"),
    ):
        sweep.outcomes(STEADY)


@pytest.mark.parametrize("given", ["env/bin/python", "./env/bin/python", "python-of-env"])
def test_the_interpreter_of_a_worker_is_absolute_and_no_link_is_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    interpreter = tmp_path / "env" / "bin" / ("python-of-env" if "/" not in given else "python")
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(interpreter.parent))
    assert absolute(Path(given)) == interpreter
    assert worker_environment(Path(given), 0)["PATH"].split(os.pathsep)[0] == str(interpreter.parent)


def test_paths_of_a_worker_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("src", "/elsewhere")))
    paths = worker_environment(Path(sys.executable), 0)["PYTHONPATH"].split(os.pathsep)
    assert paths == [str(tmp_path / "src"), "/elsewhere"]


def test_the_environments_bin_stands_first_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"/elsewhere/bin{os.pathsep}/usr/bin")
    environment = worker_environment(Path("/some/env/bin/python"), 7)
    assert environment["PATH"].split(os.pathsep) == ["/some/env/bin", "/elsewhere/bin", "/usr/bin"]
    assert environment["PYTHONHASHSEED"] == "7"


@pytest.mark.parametrize("name", ["PYTHONDONTWRITEBYTECODE", "FLATC_EXECUTABLE", "PYTHONSTARTUP"])
def test_what_would_change_a_worker_is_not_inherited(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert name not in worker_environment(Path(sys.executable), 0)


def test_the_kernels_are_pinned_whatever_the_person_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx512")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    environment = worker_environment(Path(sys.executable), 0)
    assert environment["ATEN_CPU_CAPABILITY"] == "default"
    assert environment["OMP_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "1"


def test_another_machine_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx512")
    machine = Machine("avx2", 2, onednn=True, environment={"TZ": "Pacific/Chatham"}, root=Path("/other"))
    environment = worker_environment(Path(sys.executable), 0, machine)
    assert environment["ATEN_CPU_CAPABILITY"] == "avx2"
    assert environment["MKL_NUM_THREADS"] == "2"
    assert environment["TZ"] == "Pacific/Chatham"
    # The harness of that root comes in by the command line: on the path it would bring its neighbours.
    assert "/other" in with_harness(Path(sys.executable), "pass", machine.root)
    assert "/other" not in environment.get("PYTHONPATH", "").split(os.pathsep)
    native = worker_environment(Path(sys.executable), 0, Machine(""))
    assert "ATEN_CPU_CAPABILITY" not in native


def test_templates_warm_up_for_targets_of_several_cells_and_for_one_of_each_group() -> None:
    counts = {"tosa-fp": 4, "tosa-int": 3, "tosa-bf16": 2, "xnnpack-fp32": 1, "xnnpack-int8": 2}
    cells = [Cell(target, f"case-{number}") for target, count in counts.items() for number in range(count)]
    assert worth_warming(cells) == {"tosa-fp", "tosa-int", "xnnpack-int8"}
    assert worth_warming(cells[:1]) == {"tosa-fp"}
    assert worth_warming([]) == set()
