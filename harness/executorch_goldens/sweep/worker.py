"""The template interpreter: imports once, warms up, forks a child per export.

`sweep.sweep` runs it, never a person, with a `TemplateRequest` in a file without a name. Requests arrive on standard
input, an `ExportRequest` a line; answers leave on a socket of their own, so that whatever a release prints cannot
disturb them. An answer is `Ready` once, then for each request `Started` when its child has, with the file that its
artifact goes into (`artifact.encoded`), `Alive` from time to time, and `Ended`: see `sweep.messages`.

The template imports what every export needs. For each group of targets that it serves it forks a template of the
group's own, which imports and warms up what these need: see `executorch_goldens.exporting.recording`.

With the isolation ``fresh``, by which the lab and tests prove the forks, each request runs in a fresh interpreter
instead: the same `run_request`, slower, same results.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import pickle
import resource
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import msgspec

from executorch_goldens import artifact, extensions
from executorch_goldens.errors import HarnessError, placed
from executorch_goldens.exporting import system_calls
from executorch_goldens.exporting.alone import load_all, load_alone
from executorch_goldens.exporting.blame import OwnError
from executorch_goldens.exporting.observing import NOBODY, NOTHING, Instrument
from executorch_goldens.exporting.recording import Recorder
from executorch_goldens.files import shortage
from executorch_goldens.patches.guard import GuardError, resolve
from executorch_goldens.settings.exports import ROOT
from executorch_goldens.sweep.messages import ExportRequest, Ready, TemplateRequest, decoded, encoded
from executorch_goldens.sweep.serving import READY, WHERE, Groups, Template
from executorch_goldens.sweep.spool import whole
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.targets import Target, find
from executorch_goldens.zoo.variations import exported_before, perturb_heap, shuffle_listings, take_on

#: Exit status of a child whose request could not be carried out for a reason of the harness's own: the last line of
#: its log says which.
HARNESS_ERROR = 70

#: Exit status of a child in which the harness itself failed: the cell is lost and not the run.
OWN_ERROR = 72

#: Exit status of a child that leaves the failure of a case that raised before anything was lowered.
CASE_RAISED = 73

#: Exit status of a child whose allocation failed: at its limit, or because the machine had no more memory.
OUT_OF_MEMORY = 71


class LostResultError(Exception):
    """The file for the artifact of this process is no more: what closes it is the case's, and only its cell is lost."""


def with_harness(interpreter: Path, code: str, root: Path = ROOT) -> list[str]:
    """Return the command that runs `code` in `interpreter` with the harness of `root`; arguments may follow.

    Nothing else of `root` can be imported there: it may be the packages of an environment other than the interpreter's,
    or a checkout whose ``models`` would be found in the place of the user's own. Plugins that the environment of the
    process names (`extensions.handed_on`) can.
    """
    alone = "import sys; sys.path.insert(0, sys.argv.pop(1)); import executorch_goldens; del sys.path[0]; "
    alone += "from executorch_goldens import extensions; extensions.receive(); "
    return [str(interpreter), "-P", "-c", alone + code, str(root)]


#: Recorder of what this process's exports depend on, and where the template of this process has left its record; None
#: where nothing is recorded.
RECORDER: Recorder | None = None
BEFORE: str | None = None

#: What sees the sources that this process's exports run.
INSTRUMENT: Instrument = NOTHING

#: The lowest descriptor that an export's artifact may have: beyond what programs close in a loop.
RESULT = 512

#: Objects between the holes that `perturb` left.
HELD: list[object] = []

#: Code that a template or a fresh child runs.
MAIN = "from executorch_goldens.sweep.worker import main; main()"


def set_kernels(threads: int, onednn: bool) -> None:
    """Say how many threads torch computes with, and whether oneDNN's kernels may: neither may follow the machine.

    The CPU capability and OpenMP's threads are fixed by the environment that `sweep.sweep` starts templates
    with.
    """
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.backends.mkldnn.enabled = onednn  # type: ignore[assignment]


def load_kernels(paths: Sequence[str] = ()) -> None:
    """Load the runtime's kernels once for all exports; from now on, modules come from `paths` before anywhere else.

    Not before: a file there may have the name of a module that torch and ExecuTorch import.
    """
    from executorch_goldens.exporting import kernels

    kernels.load()
    sys.path[:0] = paths


def install_shortcuts(hooks: Sequence[str], target: Target | None = None) -> None:
    """Install shortcuts in this process; raises as `executorch_goldens.patches.shorten`."""
    from executorch_goldens import patches
    from executorch_goldens.exporting import compat

    patches.shorten(hooks, compat.installed_release(), target)


def group_of(target: str) -> str:
    """Return which targets share a template with this one: those whose exports load the same backend."""
    found = target_or_none(target)
    return found.backend if found is not None and found.is_data else target


def target_or_none(name: str) -> Target | None:
    """Return a target; None where its exports say what is wrong with it."""
    with contextlib.suppress(HarnessError):
        return find(name)
    return None


def warm_up(targets: Sequence[str]) -> None:
    """Export one small model for each of `targets`: children find every lazy import done and every cache filled.

    The runtime is not run: it would start threads, and threads do not survive a fork.
    """
    import gc

    import torch

    from executorch_goldens.exporting.data import Data, Example
    from executorch_goldens.exporting.program import Request
    from executorch_goldens.exporting.recipe import stages
    from executorch_goldens.exporting.targets import Lowering

    def build(data: Data) -> Example:
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3), torch.nn.ReLU())
        return Example(model, (data.tensor("x", 1, 2, 6, 6),))

    case = Case(name="warm-up", family="worker", guards="warms the template", build=build)
    # Existing objects stay: with them out of the way, collecting after an export costs little.
    gc.freeze()
    for target in targets:
        # Where the release cannot lower even this, the cells say so.
        with contextlib.suppress(Exception):
            lowered = (each.edge for each in stages(Request(case, Lowering.named(target))))
            next(filter(None, lowered)).to_executorch()
        gc.collect()
    # Children share these pages with the template as long as the collector does not touch them.
    gc.freeze()


def run_twins(request: ExportRequest, result: int) -> None:
    """Carry out a request in some processes, one after the other, whose memory is the same when they begin.

    What one of them does and another does not follows neither an order by address nor anything else in memory.
    """
    settings = request.settings
    alone = msgspec.structs.replace(request, settings=replace(settings, twins=0))
    files = [tempfile.TemporaryFile(dir=request.scratch) for _ in range(settings.twins)]  # noqa: SIM115
    # `os.fork` runs hooks that leave objects in the parent. The C library's does not: each copy is like the one before.
    fork = ctypes.PyDLL(None).fork
    for file in files:
        copy = fork()
        if copy == 0:
            process = os.fork()
            if process == 0:
                run_request(alone, file.fileno())
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
            end_as(process)
            os._exit(0)
        end_as(copy)
    first, *twins = (artifact.decoded(whole(file.fileno())) for file in files)
    write_result(result, artifact.encoded(replace(first, twins=tuple(twins))))


def end_as(process: int) -> None:
    """Wait for a child; where it fails or is killed, this process comes to the same end."""
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    if code != 0:
        os._exit(code)


def run_request(request: ExportRequest, result: int) -> int:
    """Carry out one request in this process; writes the artifact to `result`, returns an exit status, or raises."""
    from executorch_goldens import patches
    from executorch_goldens.exporting import compat
    from executorch_goldens.exporting.entry import export

    settings = request.settings
    if settings.twins:
        run_twins(request, result)
        return 0
    INSTRUMENT.begin()
    recorder = RECORDER
    if recorder is not None and request.record is not None:
        # This run has made everything in these folders.
        recorder.begin(Path(request.record), (request.cwd, request.scratch), BEFORE)
    os.chdir(request.cwd)
    tempfile.tempdir = os.environ["TMPDIR"] = request.cwd
    case = requested_case(request)
    named = {*patches.PATCHES, *(point.name for point in extensions.points(extensions.PATCHES))}
    if settings.models and not {*settings.patches} <= named:
        # A module with cases that are not this one registers it.
        load_all(settings.models)
    patches.apply(settings.patches, compat.installed_release(), target_or_none(request.target))
    made = export(
        case,
        request.target,
        settings.patches,
        settings.capture,
        settings.execute,
        settings.tolerances.get(request.target),
        settings.omission,
        resolve(settings.observer)() if settings.observer is not None else NOBODY,
    )
    write_result(result, artifact.encoded(replace(made, **INSTRUMENT.taken())))
    if recorder is not None and request.record is not None:
        recorder.end()
    return CASE_RAISED if made.case_failure is not None else 0


def write_result(result: int, made: bytes) -> None:
    """Write an artifact, or why there is none; raise LostResultError where the case has closed the file."""
    content = memoryview(made)
    try:
        while content:
            content = content[os.write(result, content) :]
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        raise LostResultError(
            "the case, or a library that it uses, closed a file that it did not open"
        ) from None


def requested_case(request: ExportRequest) -> Case:
    """Return the case that `request` names."""
    if (pickled := request.settings.pickled) is not None:
        return pickled_case(request.case, pickled / request.case)
    case = load_alone(request.settings.models, request.case, request.module, request.others)
    if request.settings.changing is None or not request.changes:
        return case
    changed: Case = resolve(request.settings.changing)(case, request.changes)
    return changed


def pickled_case(name: str, file: Path) -> Case:
    """Return the case whose module and inputs a test has pickled into a file."""
    from executorch_goldens.exporting.data import Data, Example

    try:
        module, inputs = pickle.loads(file.read_bytes())
    except Exception as error:
        raise RuntimeError(
            f"golden_export: a fresh interpreter cannot load the module ({type(error).__name__}: {error}): its class "
            "must be importable with the path that the test has"
        ) from error

    def build(data: Data) -> Example:
        return Example(module, inputs, fill=False)

    return Case(name=name, family="tests", guards="what a test exports", build=build)


def fork_child(answers: socket.socket, threads: int) -> Callable[[ExportRequest, int], int]:
    """Return a starter that forks: the child carries out the request with its output in the log, and exits."""
    import torch

    def start(request: ExportRequest, result: int) -> int:
        process = os.fork()
        if process == 0:
            # Only the template answers: when it dies, the sweep must see the socket's end.
            answers.close()
            torch.set_num_threads(threads)
            finish_in_child(request, result)
        return process

    return start


def finish_in_child(
    request: ExportRequest, result: int, prepare: Callable[[], None] = lambda: None
) -> NoReturn:
    """Prepare, carry out `request` and leave this process without running the template's clean-up."""
    status = HARNESS_ERROR
    try:
        # Out of the way of a case that closes what it did not open, and not handed on to programs.
        result = fcntl.fcntl(result, fcntl.F_DUPFD_CLOEXEC, RESULT)
        os.setpgid(0, 0)
        redirect(request.log)
        say_where()
        limit_memory(request.settings.memory)
        prepare()
        status = run_request(request, result)
    except BaseException as error:
        if isinstance(error, OwnError):
            status = OWN_ERROR
        if isinstance(error, LostResultError):
            status = 1
        if shortage.of_memory(error):
            status = OUT_OF_MEMORY
        tell(error)
        if isinstance(error, OwnError):
            with contextlib.suppress(OSError, LostResultError):
                write_result(result, msgspec.msgpack.encode(error.casualty))
    finally:
        # On a full disk the words are lost, and the status is not.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def tell(error: BaseException) -> None:
    """Write the exception to the log, the message in its last line, if memory and disk allow it."""
    with contextlib.suppress(MemoryError, OSError):
        import traceback

        traceback.print_exception(error)
        print(placed(error), file=sys.stderr)


def say_where() -> None:
    """Let this process leave in its log where it is when the template asks, before it is ended at its limit."""
    import faulthandler

    # A handler of C's writes it, whatever Python does meanwhile.
    faulthandler.register(WHERE, file=2, all_threads=False)


def limit_memory(most: int | None) -> None:
    """Let this process, and each that it starts, have at most so many bytes of data (man 2 getrlimit, RLIMIT_DATA).

    That is what it can write and shares with no other process: the heap, private maps, the stacks of threads. The
    kernel gives no more, whoever asks. What a fork has from its template counts; the code of libraries does not.
    """
    if most is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = min(most, sys.maxsize if hard == resource.RLIM_INFINITY else hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def redirect(log: str) -> None:
    """Send output to `log`, and take away the template's requests."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def fresh_child(options: int) -> Callable[[ExportRequest, int], int]:
    """Return a starter that runs each request in a fresh interpreter; `options` has its `TemplateRequest`."""

    def start(request: ExportRequest, result: int) -> int:
        os.set_inheritable(result, True)
        further = (str(options), encoded(request).decode(), str(result))
        command = [*with_harness(Path(sys.executable), MAIN), *further]
        return os.posix_spawn(sys.executable, command, os.environ, setpgroup=0)

    return start


def prepare(options: TemplateRequest, target: str) -> None:
    """Make a fresh interpreter ready, as a template is for its forks."""
    settings = options.settings
    set_kernels(settings.machine.threads, settings.machine.onednn)
    load_kernels(options.paths)
    install_shortcuts(tuple(settings.shortcuts.values()), target_or_none(target))
    perturb(options.variation.heap_seed)


def perturb(seed: int) -> None:
    """Leave holes in the heap for what exports allocate; they last as long as this process and its forks."""
    HELD.extend(perturb_heap(seed))


def serve_group(
    options: TemplateRequest,
    answers: socket.socket,
    targets: Sequence[str],
    requests: int,
    telling: socket.socket,
) -> NoReturn:
    """Serve exports for targets of one group in this process."""
    global BEFORE
    if RECORDER is not None:
        RECORDER.pause(False)
        RECORDER.watched = watched(telling)
    try:
        install_shortcuts(
            tuple(options.settings.shortcuts.values()), target_or_none(targets[0]) if targets else None
        )
    except GuardError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    INSTRUMENT.imported()
    warm_up(exported_before(targets, options.variation.history))
    # Children find the entry points read.
    for group in (*extensions.GROUPS, extensions.PLUGINS):
        extensions.points(group)
    perturb(options.variation.heap_seed)
    if RECORDER is not None and options.records is not None:
        BEFORE = str(Path(options.records) / f"{os.getpid()}.json")
        RECORDER.begin(Path(BEFORE))
        RECORDER.end()
    start = fork_child(answers, options.settings.machine.threads)
    template = Template(requests, answers, start, options.beat)
    telling.send(READY)
    telling.close()
    template.serve()
    # Without the seconds that an orderly end of torch takes: a template has nothing to save.
    os._exit(0)


def watched(telling: socket.socket) -> bool | str:
    """Let files be seen that this process and its exports use from now on; return why that cannot be, if it cannot."""
    try:
        system_calls.watch(telling)
    except OSError as error:
        return f"this system does not show which files it opens (seccomp: {error.strerror})"
    return True


def serve(options: TemplateRequest, answers: socket.socket) -> NoReturn:
    """Serve by forking: a process for each group of targets, and this one, which watches them."""
    # One thread: OpenMP's others do not survive a fork, and the child would wait for them forever.
    set_kernels(1, options.settings.machine.onednn)
    load_kernels(options.paths)
    groups: dict[str, list[str]] = {}
    for target in options.targets:
        groups.setdefault(group_of(target), []).append(target)
    # Imports that all of them need.
    from executorch_goldens.exporting import compat  # noqa: F401

    if RECORDER is not None:
        RECORDER.pause(True)
    router = Groups(0, lambda request: group_of(request.target), options.records)
    for group, targets in (groups or {"": []}).items():
        router.start(group, functools.partial(serve_group, options, answers, targets))
    say_ready(answers)
    router.serve()
    os._exit(0)


def say_ready(answers: socket.socket) -> None:
    answers.send(encoded(Ready()))


def main() -> None:
    """Entry point of templates, and of fresh children.

    Arguments are the descriptor of a file with a `TemplateRequest`; of a fresh child, its request and the descriptor of
    its artifact besides.
    """
    descriptor, *once = sys.argv[1:]
    options: TemplateRequest = decoded(whole(int(descriptor)), TemplateRequest)
    settings, variation = options.settings, options.variation
    if options.records is not None:
        global RECORDER
        RECORDER = Recorder()
        RECORDER.install([options.records])
    # The hash seed is the interpreter's, the directory that of each request.
    if settings.instrument is not None:
        global INSTRUMENT
        INSTRUMENT = resolve(settings.instrument.by)(settings.instrument)
    take_on(variation.changed_surroundings)
    # Effects of listings on imports stay as well. Children inherit the shuffle, or are given the same seed.
    shuffle_listings(variation.listings)
    # Objects that torch and ExecuTorch allocate at import, operators for instance, never move again.
    _held = perturb_heap(variation.heap_seed)
    if once:
        request = decoded(once[0].encode(), ExportRequest)
        finish_in_child(request, int(once[1]), functools.partial(prepare, options, request.target))
    answers = socket.socket(fileno=options.answers)
    answers.set_inheritable(False)
    if settings.isolation == "fork":
        serve(options, answers)
    say_ready(answers)
    Template(0, answers, fresh_child(int(descriptor)), options.beat).serve()
    # Without the seconds that an orderly end of torch takes: a template has nothing to save.
    os._exit(0)


if __name__ == "__main__":
    main()
