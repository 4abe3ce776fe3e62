"""``goldens worker``: offer this machine's environments of releases to a Dask scheduler.

It becomes ``dask worker``, with one resource a release, by which runs find the workers that can export for them.
Start it in a checkout of the repository whose zoo is exported, at the same commit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

from executorch_goldens.errors import CommandError
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.settings.exports import absolute, cores
from executorch_goldens.sweep.store import default_root
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens_plugins.cluster import EXTRA, OFFER, RESOURCE

#: Seconds without a scheduler after which a worker ends.
DEATH_TIMEOUT = 60

#: How often Dask looks at its own processes, for its dashboard and its memory: a hundred, fifty and ten times a second
#: by default, which is 5% of a core for each worker. The exports' memory has a limit of its own.
SELDOM = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
}


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("worker", description=__doc__)
    parser.add_argument("address", metavar="tcp://HOST:PORT", help="of the Dask scheduler")
    share(
        with_short(parser.add_argument),
        "--toolchain",
        action="append",
        default=[],
        help="release to offer, or the Python of an environment that has one; repeatable",
    )
    share(parser.add_argument, "--jobs", default=cores())
    parser.add_argument(
        "--cache-dir", type=Path, default=default_root(), metavar="DIR", help="default: %(default)s"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Become a Dask worker; raises CommandError and errors of `find_release`."""
    if importlib.util.find_spec("distributed") is None:
        raise CommandError(f"this environment has no Dask: {EXTRA}")
    if not arguments.toolchain:
        raise CommandError("nothing is offered: name a toolchain, e.g. --toolchain 1.4.1")
    store = arguments.cache_dir.absolute()
    offered = [Toolchain.from_name(word, config.load()) for word in arguments.toolchain]
    interpreters = {each.release.version: absolute(each.python) for each in offered}
    offer = {
        "interpreters": {version: str(path) for version, path in interpreters.items()},
        "jobs": arguments.jobs,
        "store": str(store),
        "variables": sorted(os.environ),
    }
    resources = " ".join(f"{RESOURCE.format(version)}={arguments.jobs}" for version in interpreters)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", arguments.address]
    # One batch at a time: the exporter spreads it over the cores.
    command += ["--nthreads", "1", "--nworkers", "1", "--resources", resources, "--no-dashboard"]
    command += ["--death-timeout", str(DEATH_TIMEOUT)]
    print(f"offering {', '.join(interpreters)} to {arguments.address}", flush=True)
    os.execve(sys.executable, command, {**SELDOM, **os.environ, OFFER: json.dumps(offer)})
