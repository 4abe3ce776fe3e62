"""Faults of exporting processes, of templates and of the run itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from executorch_goldens.files import interrupts
from executorch_goldens.settings.exports import default_interpreter
from lab.faults.fault import Fault
from lab.faults.place import LostError, Place, demand, kill, until

#: One template, one export of each cell.
ONE = ("--variations", "1")
#: Seconds that an export which hangs is waited for, and bytes that one may have.
SECONDS, MEMORY = 10, "3GiB"

STABLE = {"sound": "stable", "sound-as-well": "stable"}


def of_exports(place: Place, expected: dict[str, str], fact: str = "") -> None:
    """Run over failing cases, and demand their verdicts; their neighbours must pass."""
    place.limit(SECONDS, MEMORY)
    ended = place.run(*ONE, cells=(*expected, *STABLE))
    demand(ended.code == 1, f"it ends with {ended.code}:\n{ended.output}")
    demand(ended.verdicts() == {**expected, **STABLE}, f"{ended.verdicts()}:\n{ended.output}")
    for case in expected:
        reason = ended.rows[case]["reason"]
        demand(fact in reason, f"{fact!r} is no reason of {case}: {reason}")


def dying(place: Place) -> None:
    numbers = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)
    of_exports(place, {f"dies-of-{number.name.lower()}": "crashed" for number in numbers}, "killed by SIG")


def hanging(place: Place) -> None:
    of_exports(
        place,
        dict.fromkeys(("hangs-in-python", "hangs-in-c", "ignores-sigterm"), "timed-out"),
        "10 s (export-timeout)",
    )


def leaving(place: Place) -> None:
    cases = {"leaves-a-process": "new", "leaves-a-session": "new", "dies-and-leaves-a-process": "crashed"}
    of_exports(place, cases)


def wanting_memory(place: Place) -> None:
    cases = ("much-in-torch", "much-in-python", "much-in-cpp", "much-behind-another-error")
    of_exports(place, dict.fromkeys(cases, "out-of-memory"), "(export-memory)")


# Templates


def while_exporting(place: Place, *words: str) -> subprocess.Popen[str]:
    """Start a run that exports, and return it when it is in the middle of an export."""
    process = place.start(place.run_command(*ONE, *words))
    place.await_export()
    return process


def template_dies(place: Place) -> None:
    process = while_exporting(place)
    (template,) = place.templates()
    kill(template)
    place.go_on()
    ended = place.finish(process)
    # A fresh one makes again what died with it.
    demand(ended.code == 0, f"it ends with {ended.code}:\n{ended.output}")
    verdicts = ended.verdicts()
    demand(set(verdicts.values()) == {"stable"} and len(verdicts) == len(STABLE) + 1, ended.output)


def template_hangs(place: Place) -> None:
    place.limit(SECONDS)
    process = while_exporting(place)
    (template,) = place.templates()
    os.kill(template, signal.SIGSTOP)
    # A fresh template makes the export again, which then ends.
    until(lambda: len(list(place.signals.glob("waiting-*"))) > 1, "the export is not made again")
    place.go_on()
    ended = place.finish(process)
    demand(ended.code == 0, f"it ends with {ended.code}:\n{ended.output}")


def template_talks(place: Place) -> None:
    """Let a module that the template imports write to the pipe of its answers."""
    modules = place.folder / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(
        "import json, os, sys\n"
        "if 'sweep.worker' in ' '.join(sys.orig_argv):\n"
        "    request = os.pread(int(sys.orig_argv[-1]), 1 << 20, 0)\n"
        "    os.write(json.loads(request)['answers'], b'hello\\n')\n"
    )
    place.variables["PYTHONPATH"] = f"{modules}{os.pathsep}{place.environment()['PYTHONPATH']}"
    place.run(*ONE, cells=("sound",)).is_one_error("'hello'", "is no answer")


# The run


def ended_by(place: Place, *numbers: int, codes: tuple[int, ...]) -> None:
    """End a run in the middle of an export by signals, one soon after the other."""
    process = while_exporting(place)
    for number in numbers:
        os.kill(process.pid, number)
        time.sleep(0.3)
    ended = place.finish(process)
    demand(ended.code in codes, f"it ends with {ended.code}, not one of {codes}:\n{ended.output}")
    demand("Traceback" not in ended.output and "INTERNALERROR" not in ended.output, ended.output)


def its_output_is_closed(place: Place, words: tuple[str, ...]) -> None:
    """Close a run's output, as ``head`` does when it has seen enough."""
    place.go_on()
    reader, writer = os.pipe()
    process = place.start(place.run_command(*words), stdout=writer, stderr=writer)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    ended = place.finish(process)
    demand(ended.code == interrupts.UNREAD, f"it ends with {ended.code}")


def removed_environment(place: Place) -> None:
    """Delete the exporting environment, a copy of this one made of links, in the middle of an export."""
    environment = place.folder / "environment"
    linked(environment)
    words = (f"--toolchain={environment / 'bin' / 'python'}", "--variations", "0,4", "--snapshot-update")
    process = place.start(place.run_command(*words, "--jobs", "1"))
    place.await_export()
    shutil.rmtree(environment)
    place.go_on()
    ended = place.finish(process)
    ended.is_one_error(str(environment))


def linked(environment: Path) -> None:
    """Make an environment whose packages and programs are links to this one's."""
    here = default_interpreter().parent.parent
    site = next(here.glob("lib/python3.*/site-packages"))
    packages = environment / site.relative_to(here)
    packages.mkdir(parents=True)
    for path in site.iterdir():
        (packages / path.name).symlink_to(path)
    (environment / "bin").mkdir()
    for path in (here / "bin").iterdir():
        target = path.resolve() if path.name.startswith("python") else path
        (environment / "bin" / path.name).symlink_to(target)
    shutil.copy(here / "pyvenv.cfg", environment)


# The machine


def few_descriptors(place: Place) -> None:
    """Run with ever more descriptors, until there are enough: until then it is one error."""
    place.go_on()
    for count in (4, 8, 12, 16, 24, 40):
        limited = ["prlimit", f"--nofile={count}:{count}"]
        place.results.unlink(missing_ok=True)
        ended = place.finish(place.start([*limited, *place.run_command(*ONE, cells=("sound",))]))
        if ended.code == 0:
            return
        clear = "Traceback" not in ended.output and "INTERNALERROR" not in ended.output
        demand(clear or "Too many open files" in ended.output, f"with {count}:\n{ended.output}")
        demand("stable" not in ended.verdicts().values(), f"with {count}: {ended.verdicts()}")
    raise LostError("40 descriptors are not enough")


#: Sets the clock of day back by a day, a second after the process has begun (man 2 clock_gettime).
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long long shift(void) {
    static int (*real)(clockid_t, struct timespec *);
    static long long begun;
    struct timespec now;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    if (!begun) begun = now.tv_sec;
    return now.tv_sec > begun ? 86400 : 0;
}
int clock_gettime(clockid_t which, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int found = real(which, time);
    if (which == CLOCK_REALTIME) time->tv_sec -= shift();
    return found;
}
time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
"""


def clock_set_back(place: Place) -> None:
    source, library = place.folder / "clock.c", place.folder / "clock.so"
    source.write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    code = "import time; a = time.time(); time.sleep(2.1); print(time.time() < a - 80000)"
    place.variables["LD_PRELOAD"] = str(library)
    said = subprocess.run(
        [sys.executable, "-c", code], env=place.environment(), capture_output=True, text=True, check=True
    )
    demand(said.stdout == "True\n", "the clock was not set back")
    place.go_on()
    place.limit(60)
    ended = place.run(*ONE, *place.reusing())
    demand(ended.code == 0, f"it ends with {ended.code}:\n{ended.output}")
    demand(set(ended.verdicts().values()) == {"stable"}, ended.output)
    demand(all(min(row["seconds"]) >= 0 for row in ended.rows.values()), f"negative seconds: {ended.rows}")


def faults() -> Iterator[Fault]:
    """Yield them."""
    kill_by = "`os.kill` in the exporting process"
    yield Fault(
        "export: SIGKILL, SIGSEGV, SIGABRT, SIGTERM",
        kill_by,
        "`crashed` with the signal; others `stable`; 1",
        dying,
    )
    yield Fault(
        "export: hangs in Python, in C, ignores SIGTERM",
        "`sleep`; `pause` with the interpreter's lock; `SIG_IGN`",
        "`timed-out`; others `stable`; 1",
        hanging,
    )
    yield Fault(
        "export: leaves processes",
        "in its group, in a session of its own; it ends or dies",
        "they are killed; the verdict is the export's; 1",
        leaving,
    )
    yield Fault(
        "export: memory",
        '`export-memory = "3GiB"`; torch, Python, C++ and inside a different exception',
        "`out-of-memory`; others `stable`; 1",
        wanting_memory,
    )
    yield Fault(
        "template: dies",
        "SIGKILL in the middle of an export",
        "another one makes its exports again, all `stable`; 0",
        template_dies,
        exports=True,
    )
    yield Fault(
        "template: hangs",
        "SIGSTOP in the middle of an export",
        "another one makes its exports again, all `stable`; 0",
        template_hangs,
    )
    yield Fault(
        "template: nonsense",
        "a module writes to the pipe of the answers",
        "one error that shows it; 4",
        template_talks,
    )
    yield Fault(
        "run: SIGKILL",
        "in the middle of an export",
        "its temporary folder is left until the next run; -9",
        lambda place: ended_by(place, signal.SIGKILL, codes=(-9,)),
        leaves=True,
        exports=True,
    )
    yield Fault(
        "run: SIGINT",
        "in the middle of an export",
        "ended in order; 2",
        lambda place: ended_by(place, signal.SIGINT, codes=(2,)),
    )
    yield Fault(
        "run: SIGINT twice",
        "the second 0.3 s after the first",
        "ended; 2 or 130",
        lambda place: ended_by(place, signal.SIGINT, signal.SIGINT, codes=(2, 130)),
        leaves=True,
    )
    yield Fault(
        "run: SIGTERM",
        "in the middle of an export",
        "ended in order, then dies of it; -15",
        lambda place: ended_by(place, signal.SIGTERM, codes=(-15,)),
    )
    yield Fault(
        "run: SIGHUP",
        "in the middle of an export",
        "ended in order, then dies of it; -1",
        lambda place: ended_by(place, signal.SIGHUP, codes=(-1,)),
    )
    yield Fault(
        "run: output closed",
        "its reader ends, as `head` does",
        "ended in order; 141",
        lambda place: its_output_is_closed(place, ONE),
    )
    yield Fault(
        "run: output closed, recording",
        "its reader ends, as `head` does",
        "ended in order; 141",
        lambda place: its_output_is_closed(
            place, (*place.reusing(), "--variations", "0,4", "--snapshot-update")
        ),
        updates=True,
    )
    yield Fault(
        "environment removed",
        "in the middle of an export, with `--snapshot-update`",
        "one error that names it; nothing is recorded",
        removed_environment,
    )
    yield Fault(
        "descriptors exhausted",
        "`prlimit --nofile` 4 to 40",
        "an error that says so, not 0; or `stable`",
        few_descriptors,
    )
    yield Fault(
        "clock set back", "by a day, a second after each process began", "all `stable`; 0", clock_set_back
    )
