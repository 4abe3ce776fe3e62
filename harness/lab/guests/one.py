"""``python -m lab guest NAME``: a run over one guest zoo, against its goldens, with the options of ``goldens run``."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Any

from executorch_goldens import cli
from executorch_goldens.files import invocation
from executorch_goldens.running.options import CALLED_AS
from executorch_goldens.settings import config
from executorch_goldens.toolchains.toolchain import here
from lab.guests import ZOOS, GuestZoo, layer

#: Options that a guest zoo sets itself.
TAKEN = ("--models", "--goldens", "--sweeps")


class _Refused(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        parser.error(f"{given[-1]} is of goldens run: a guest zoo has its own")


def main(arguments: Sequence[str] | None = None) -> int:
    """Call ``goldens run`` with the zoo's options; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m lab guest",
        description="Export the cells of a guest zoo and compare them with its goldens. Options are those of "
        f"goldens run, except {', '.join(TAKEN)}.",
        allow_abbrev=False,
    )
    parser.add_argument("zoo", choices=tuple(ZOOS))
    for name in TAKEN:
        parser.add_argument(name, action=_Refused, help=argparse.SUPPRESS)
    options, words = parser.parse_known_args(arguments)
    os.environ.setdefault(CALLED_AS, shlex.join(["python", "-m", "lab", "guest", options.zoo, *words]))
    zoo = ZOOS[options.zoo]
    return cli.main(["run", *of(zoo), *(() if names_a_toolchain(words) else layered(zoo)), *words])


def names_a_toolchain(words: Sequence[str]) -> bool:
    """Return whether words of ``goldens run`` name the toolchain: ``-t NAME``, ``-tNAME``, ``--toolchain=NAME``."""
    return invocation.value(words, "-t", "--toolchain") is not None


def layered(zoo: GuestZoo) -> list[str]:
    """Return the option that lets a zoo be exported in the layer of this Python's release, if it has one."""
    python = layer.python_of(here().release.version) if zoo.layered else None
    return ["--toolchain", str(python)] if python is not None else []


def of(zoo: GuestZoo) -> list[str]:
    """Return the options of a run over `zoo`; later ones win."""
    repository = config.load()
    # Many models, few findings: two variations show most of what four would.
    words = ["--models", zoo.module, "--variations", repository.variations or "quick"]
    words += ["--goldens", str(repository.goldens / zoo.folder)]
    return [*words, "--sweeps", str(repository.sweeps / zoo.folder)]
