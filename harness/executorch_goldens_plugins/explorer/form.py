"""The form of ``goldens show`` that opens a cell in Model Explorer."""

from __future__ import annotations

import argparse

from executorch_goldens.cli import SAME

#: Model Explorer's own.
PORT = 8080
OPTIONS = ("--explore", "--release", "--sweeps", "--goldens", "--port", "--no-browser")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options that the command lacks."""
    group = parser.add_argument_group("of a cell, in Model Explorer")
    group.add_argument(
        "--explore", action="store_true", help="open a run's result for a cell, beside its golden"
    )
    group.add_argument("--port", type=int, default=PORT, help="of the server (default: %(default)s)")
    group.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")


def takes(arguments: argparse.Namespace) -> bool:
    """Return whether a cell is to be opened."""
    return bool(arguments.explore)


def run(arguments: argparse.Namespace) -> int:
    """Serve the cell."""
    # A payload does not wait for what reads runs.
    from executorch_goldens_plugins.explorer import opening

    browser = not arguments.no_browser
    opening.serve(
        arguments.what, arguments.release, arguments.sweeps, arguments.goldens, arguments.port, browser
    )
    return SAME
