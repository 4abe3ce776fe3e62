"""Cost of exports against an older revision of this project, cell by cell and side by side."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.exporting.compat import installed_release
from executorch_goldens.running.selection import load_cells
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import EXPORT_TIMEOUT, default_interpreter
from executorch_goldens.zoo.targets import TARGETS
from lab import REPOSITORY
from lab.bench.exports import draw
from lab.bench.measurement import Goal

#: Before anything was made cheaper.
REVISION = "20268a8"
#: Cells of each target that are exported, drawn at random.
PER_TARGET = 6

#: Runs in both trees (the older one has the package `harness`): exports the cells that are named on standard input,
#: one at a time, and prints seconds of each.
EXPORTER = """
import json, sys
from pathlib import Path
tree, interpreter, limit, release, targets = json.loads(sys.argv[1])
sys.path.insert(0, tree)
if Path(tree, "harness", "sweep.py").exists():
    from harness import patches, releases
    from harness.artifact import Cell
    from harness.sweep import Settings, Sweep
    from harness.variations import variations
else:
    sys.path.insert(0, str(Path(tree, "harness")))
    from executorch_goldens import patches
    from executorch_goldens.settings import releases
    from executorch_goldens.artifact import Cell
    from executorch_goldens.settings.exports import Settings
    from executorch_goldens.zoo.variations import variations
    from executorch_goldens.sweep.sweep import Sweep
(variation,) = variations((0,))
names = patches.select("auto", releases.load().release(release).patches)
settings = Settings(Path(interpreter), ("models",), names, 1, limit)
warming = [Cell(target, case) for target, case in targets]
with Sweep(warming, (variation,), settings, lasting=True, targets=[each.target for each in warming]) as sweep:
    for cell in warming:
        sweep.outcomes(cell)
    print("ready", flush=True)
    for line in sys.stdin:
        target, case = json.loads(line)
        (outcome,) = sweep.again(Cell(target, case), (variation,))
        if type(outcome.result).__name__ != "Artifact":
            sys.exit(f"{tree}: {target}/{case}: {outcome.result}")
        print(outcome.seconds, flush=True)
"""


@contextmanager
def tree(revision: str) -> Iterator[Path]:
    """Give a folder with the files of `revision`; raise CalledProcessError where git has none."""
    archive = subprocess.run(["git", "archive", revision], cwd=REPOSITORY, check=True, capture_output=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files,
    ):
        files.extractall(folder, filter="data")
        yield Path(folder)


def recorded(release: str) -> set[Cell]:
    """Return the cells that `REVISION` has a golden of on `release`; end with an error where git has no such commit."""
    command = ["git", "ls-tree", "-r", "-d", "--name-only", REVISION, f"goldens/{release}"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode:
        sys.exit(
            f"bench: baseline needs {REVISION}, `git fetch --unshallow` may bring it: {listed.stderr.strip()}"
        )
    folders = [Path(line).parts for line in listed.stdout.splitlines()]
    return {Cell(parts[2], parts[3]) for parts in folders if len(parts) == 4}


def exporter(root: Path, warming: Sequence[Cell]) -> subprocess.Popen[str]:
    """Start `EXPORTER` on the harness and the zoo of `root`."""
    cells = [(cell.target, cell.case) for cell in warming]
    request = [str(root), str(default_interpreter()), EXPORT_TIMEOUT, installed_release(), cells]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", EXPORTER, json.dumps(request)],
        cwd=root,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def goals() -> tuple[Goal, ...]:
    """Return a goal for each target that every case is exported for, and for all of them."""
    names = [name for name, target in TARGETS.items() if not target.opt_in]
    limits = dict.fromkeys(names, None) | {"xnnpack-int8": 0.55, "all targets": 0.70}
    return tuple(Goal(_goal(name), limit, at_most=True) for name, limit in limits.items())


def measure() -> Mapping[str, float]:
    """Export the same cells in both trees at the same time; return seconds here over seconds there, by target."""
    release = releases.load().release(installed_release())
    both_have = [cell for cell in load_cells(("models",), release) if cell in recorded(release.version)]
    cells = draw(both_have, PER_TARGET, seed=0)
    first = {cell.target: cell for cell in reversed(cells)}
    seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    with tree(REVISION) as before:
        both = [exporter(root, list(first.values())) for root in (REPOSITORY, before)]
        try:
            for process in both:
                _answer(process)
            for cell in cells:
                for process in both:
                    assert process.stdin is not None
                    process.stdin.write(json.dumps((cell.target, cell.case)) + "\n")
                    process.stdin.flush()
                for side, process in enumerate(both):
                    took = float(_answer(process))
                    seconds[_goal(cell.target)][side] += took
                    seconds[_goal("all targets")][side] += took
        finally:
            for process in both:
                assert process.stdin is not None
                process.stdin.close()
                process.wait()
    return {name: here / there for name, (here, there) in seconds.items()}


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"bench: an exporter ended with status {process.wait()}; its error is above")
    return line.strip()


def _goal(target: str) -> str:
    return f"seconds of an export, {target}: now / {REVISION}"
