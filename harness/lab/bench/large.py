"""Cost of a model with 500 MB of weights, command by command, beside one a tenth as large."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens.results import provenance
from executorch_goldens.settings.exports import default_interpreter
from lab import REPOSITORY, markdown, tables

SECONDS = "processor seconds at 500 MB of weights / at 50 MB, all commands together"
WORST = "processor seconds at 500 MB of weights / at 50 MB, the command that grows most"
MEMORY = "peak memory at 500 MB of weights / at 50 MB, the command that grows most"
#: The ratio of the sizes.
TIMES = 10

#: Widths of ten linear layers that have 50 and 500 million bytes of float32 weights together.
WIDTHS = {50: 1118, 500: 3536}
#: Variable that gives the model another weight, so that the run is red.
CHANGED = "LARGE_CHANGED"
ZOO = f"""
    import os
    import torch
    from executorch_goldens import case, Example

    @case(guards="nothing")
    def large(data):
        layers = [layer for _ in range(10) for layer in (torch.nn.Linear({{width}}, {{width}}), torch.nn.ReLU())]
        model = data.fill(torch.nn.Sequential(*layers))
        if os.environ.get("{CHANGED}"):
            with torch.no_grad():
                model[4].weight[1, 2] += 0.25
        return Example(model, (data.tensor("x", 1, {{width}}),), fill=False)
"""
#: Commands in order, each with what it is called and the exit codes that it may have.
PAIR = ("--variations", "quick", "--cache=off", "--jobs=1")
COMMANDS = (
    ("record", ("run", "--snapshot-update", *PAIR), 0),
    ("run", ("run", *PAIR), 0),
    ("compare", ("compare", "{python}", "{python}", "--variations", "quick", "--cache=off", "--jobs=1"), 0),
    ("freeze", ("freeze", "corpus", *PAIR), 0),
    ("run, a weight changed", ("run", *PAIR), 1),
    ("review", ("review",), 0),
    ("report", ("report", "-o", "report.html"), 0),
)
#: Runs a command and prints its exit code, its processor seconds and its peak memory in KiB. A process begins with the
#: peak of the one that it is forked from, and the benchmark has imported torch: this one is small.
BETWEEN = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stderr=subprocess.STDOUT).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
#: Figures of the page, and the file in which `measure` leaves them until they are kept.
FIGURES = Path(__file__).with_name("large.tsv")
MEASURED = REPOSITORY / "build" / "large.tsv"
COLUMNS = ("command", "MB", "processor s", "wall s", "peak MiB")


@dataclass(frozen=True)
class Cost:
    """The cost of a command.

    Attributes
    ----------
    seconds
        Of the processor, of the command and all processes that it waited for.
    wall
        Seconds.
    peak
        Resident memory of its largest process, in MiB.
    """

    seconds: float
    wall: float
    peak: float


def cost(command: Sequence[str], folder: Path, expected: int, extra: Mapping[str, str]) -> Cost:
    """Run a command of the package; exit with its output if it ends otherwise than expected."""
    environment = os.environ | extra | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    words = [str(default_interpreter()), "-m", "executorch_goldens", *command]
    started = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-S", "-c", BETWEEN, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    wall = time.perf_counter() - started
    code, seconds, peak = map(float, finished.stdout.split()[-3:])
    if code != expected:
        sys.exit(f"bench: goldens {' '.join(command)} ended with {code:.0f}:\n{finished.stdout[-2000:]}")
    return Cost(seconds, wall, peak / 1024)


def costs(megabytes: int) -> tuple[dict[str, Cost], int]:
    """Return the cost of each command for a model of so many MB of weights, and the bytes of its golden."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "zoo.py").write_text(textwrap.dedent(ZOO.format(width=WIDTHS[megabytes])))
        (folder / "pyproject.toml").write_text(
            '[tool.goldens]\nmodels = ["zoo"]\ntargets = ["xnnpack-fp32"]\nexport-timeout = 1800\n'
        )
        for called, words, expected in COMMANDS:
            command = [word.format(python=default_interpreter()) for word in words]
            extra = {CHANGED: "1"} if "changed" in called else {}
            found[called] = cost(command, folder, expected, extra)
            print(f"{megabytes} MB: {called}: {found[called]}", flush=True)
        size = sum(path.stat().st_size for path in (folder / "goldens").rglob("*.txt"))
    return found, size


def measure() -> Mapping[str, float]:
    """Run every command with a model of 50 MB of weights and with one of 500 MB."""
    # Only now: it imports torch, which the page does without.
    from executorch_goldens.exporting.compat import installed_release

    measured = {megabytes: costs(megabytes) for megabytes in WIDTHS}
    small, large = (measured[megabytes][0] for megabytes in WIDTHS)
    rows = [
        {
            "command": called,
            "MB": str(megabytes),
            "processor s": f"{one.seconds:.0f}",
            "wall s": f"{one.wall:.0f}",
            "peak MiB": f"{one.peak:.0f}",
        }
        for called in small
        for megabytes, one in zip(WIDTHS, (small[called], large[called]), strict=True)
    ]
    sizes = ", ".join(f"{size:,} bytes at {megabytes} MB" for megabytes, (_, size) in measured.items())
    where = f"ExecuTorch {installed_release()}, {provenance.machine()}; the golden has {sizes}"
    MEASURED.parent.mkdir(parents=True, exist_ok=True)
    tables.write(MEASURED, COLUMNS, [*rows, dict.fromkeys(COLUMNS, "") | {"command": where}])
    return {
        SECONDS: sum(one.seconds for one in large.values()) / sum(one.seconds for one in small.values()),
        WORST: max(large[called].seconds / small[called].seconds for called in small),
        MEMORY: max(large[called].peak / small[called].peak for called in small),
    }


def keep() -> None:
    """Keep the last measurement for the page."""
    FIGURES.write_text(MEASURED.read_text())


def figures() -> Iterator[str]:
    """Yield the figures of harness/lab/docs/benchmarks.md."""
    *rows, where = tables.read(FIGURES, COLUMNS)
    yield from markdown.head(COLUMNS)
    yield from (markdown.row([*row.values()]) for row in rows)
    yield from ("", f"{where['command']}.")
