"""Replayed runs as forks of one process that has imported what they import, as templates make exports.

An interpreter of its own takes a second of a processor for such a run, most of it for imports.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import runpy
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


@functools.cache
def _server(python_path: str) -> subprocess.Popen[str]:
    """Start the process of which runs are forks; it ends with this one, when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        env={**os.environ, "PYTHONPATH": python_path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float) -> tuple[int, str]:
    """Do what ``python -m`` does with words, in a process of its own; return its exit status and its output."""
    server = _server(os.pathsep.join(sys.path))
    with tempfile.NamedTemporaryFile("r") as output:
        asked = {
            "words": words,
            "folder": str(folder),
            "environment": dict(environment),
            "output": output.name,
        }
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps(asked), file=server.stdin, flush=True)
        if not select.select([server.stdout], [], [], limit)[0]:
            server.kill()
            raise subprocess.TimeoutExpired(words, limit, output.read())
        return int(server.stdout.readline()), output.read()


def _serve() -> None:
    """Answer each line with the status of a fork that does what it asks; return in the fork alone."""
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            _become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
    sys.exit()


def _become(asked: Mapping[str, Any]) -> None:
    """Run a module in this process, with all that an interpreter takes from its command line and its environment."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    paths = asked["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = dict.fromkeys([asked["folder"], *filter(None, paths), *sys.path])
    module, *sys.argv[1:] = asked["words"]
    for name, flags, descriptors in ((os.devnull, os.O_RDONLY, (0,)), (asked["output"], os.O_WRONLY, (1, 2))):
        opened = os.open(name, flags)
        for descriptor in descriptors:
            os.dup2(opened, descriptor)
        os.close(opened)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    # What runs import and ask of this environment; a collection of garbage need not look at it in each.
    import pytest  # noqa: F401
    import syrupy  # noqa: F401

    import tests.support.replay  # noqa: F401
    from executorch_goldens.settings.exports import default_interpreter
    from executorch_goldens.toolchains.installed import Installed

    Installed.probe(default_interpreter())
    gc.freeze()
    _serve()
