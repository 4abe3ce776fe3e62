"""The form of ``goldens diff`` that takes a program and a cell."""

from __future__ import annotations

import argparse
from pathlib import Path

from executorch_goldens.commands.payload_files import is_cell
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.settings.exports import EXPORT_TIMEOUT

OPTIONS = (
    *("--limit", "--schemas", "--goldens", "--release", "--kernels", "--rebuild"),
    *("--toolchain", "--models", "--export-timeout"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options that the command lacks."""
    group = parser.add_argument_group("of a program and a cell")
    share(
        group.add_argument,
        "--release",
        help="whose golden it is compared with (default: the only one that has the cell)",
    )
    group.add_argument(
        "--kernels",
        metavar="FILE",
        help="list the kernels that the program needs outside its delegates, and those that are missing in FILE, a "
        "selected_operators.yaml of ExecuTorch's selective build or a list of operators",
    )
    group.add_argument(
        "--rebuild",
        action="store_true",
        help="export the cell again under each setting that a build may have, until one makes these bytes",
    )
    share(with_short(group.add_argument), "--toolchain")
    share(group.add_argument, "--models")
    share(group.add_argument, "--export-timeout", default=EXPORT_TIMEOUT)


def takes(arguments: argparse.Namespace) -> bool:
    """Return whether the two words are a program and a cell."""
    return is_cell(arguments.after) and not Path(arguments.before).is_dir()


def run(arguments: argparse.Namespace) -> int:
    """Print whether the file is the golden, and how it differs."""
    # Payloads do not wait for what reads goldens and exports.
    from executorch_goldens_plugins.shipping import program

    return program.run(arguments)
