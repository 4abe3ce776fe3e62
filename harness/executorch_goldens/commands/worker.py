"""``goldens worker``: offer this machine's environments of releases to a Dask scheduler.

It becomes ``dask worker``, with one resource a release, so that the scheduler hands it the batches that it can export.
Start it in a checkout of the repository whose zoo is exported, at the same commit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from executorch_goldens import releases
from executorch_goldens.cluster import EXTRA, OFFER, RESOURCE
from executorch_goldens.errors import CommandError
from executorch_goldens.settings.arguments import share
from executorch_goldens.settings.exports import absolute, cores
from executorch_goldens.store.store import default_root
from executorch_goldens.toolchains import locking
from executorch_goldens.toolchains.installed import Environment

#: Seconds without a scheduler after which a worker ends.
DEATH_TIMEOUT = 60


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("worker", description=__doc__)
    parser.add_argument("address", metavar="tcp://HOST:PORT", help="of the Dask scheduler")
    share(
        parser.add_argument,
        "--interpreter",
        action="append",
        default=[],
        help="of an environment with a release to offer; repeatable",
    )
    parser.add_argument(
        "--make",
        action="append",
        default=[],
        metavar="VERSION",
        help="make an environment of this release, beside the cache, and offer it; repeatable",
    )
    share(parser.add_argument, "--jobs", default=cores())
    parser.add_argument(
        "--cache-dir", type=Path, default=default_root(), metavar="DIR", help="default: %(default)s"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Become a Dask worker; raises CommandError and what `find_release` raises."""
    if importlib.util.find_spec("distributed") is None:
        raise CommandError(f"this environment has no Dask: {EXTRA}")
    if not arguments.interpreter and not arguments.make:
        raise CommandError("nothing is offered: name an environment by --interpreter, or a release by --make")
    store = arguments.cache_dir.absolute()
    interpreters = {}
    for version in arguments.make:
        interpreters[version] = made(store / "environments" / version, version)
    for interpreter in arguments.interpreter:
        release = Environment.of(python=interpreter).release
        interpreters[release.version] = absolute(interpreter)
    offer = {
        "interpreters": {version: str(path) for version, path in interpreters.items()},
        "jobs": arguments.jobs,
        "store": str(store),
        "variables": sorted(os.environ),
    }
    resources = " ".join(f"{RESOURCE.format(version)}=1" for version in interpreters)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", arguments.address]
    # One batch at a time: the exporter spreads it over the cores.
    command += ["--nthreads", "1", "--nworkers", "1", "--resources", resources, "--no-dashboard"]
    command += ["--death-timeout", str(DEATH_TIMEOUT)]
    print(f"offering {', '.join(interpreters)} to {arguments.address}", flush=True)
    os.execve(sys.executable, command, {**os.environ, OFFER: json.dumps(offer)})


def made(folder: Path, version: str) -> Path:
    """Return the Python of an environment of `version` in `folder`, made where there is none; raise CommandError."""
    matrix = releases.load()
    release = matrix.release(version)
    python = folder / "bin" / "python"
    if python.exists():
        return python
    uv = shutil.which("uv")
    if uv is None:
        raise CommandError(
            "--make needs uv on the PATH (pip install uv), or make one and give its --interpreter"
        )
    aside = folder.with_name(folder.name + ".partial")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        subprocess.run([uv, "venv", "--quiet", "--relocatable", "--python", matrix.python, aside], check=True)
        install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", aside / "bin" / "python"]
        # Whoever sets it wants that build, whose hashes are others than PyPI's.
        elsewhere = () if "UV_TORCH_BACKEND" in os.environ else None
        for step in locking.steps(release, (), elsewhere):
            changed = {**os.environ, **step.environment}
            environment = {name: value for name, value in changed.items() if value is not None}
            subprocess.run([*install, *step.arguments], check=True, env=environment)
    except subprocess.CalledProcessError as error:
        raise CommandError(f"no environment of {version} could be made; uv says why above") from error
    aside.rename(folder)
    return python
