"""``python -m lab pairs``: the matrix of situations in which every pair of two factors' values is in some model.

It was drawn once, with the torch of the oldest release, without the rows that PyTorch itself does not run, or not
export where a size is symbolic. ``--show NAME`` prints a model. ``python -m lab guest pairs`` runs it.
"""

from __future__ import annotations

import argparse
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from lab.pairs import rows, text


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("pairs", description=__doc__)
    parser.add_argument("--show", metavar="NAME", help="print a model")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show a model, or say how many there are."""
    found = rows.read()
    if not options.show:
        print(f"pairs: {len(found)} models, {rows.digest()}")
    elif options.show in found:
        print(text.source(found[options.show]), end="")
    else:
        raise UsageError(f"no model is called {options.show!r}; they are pairs-0000 to {list(found)[-1]}")
    return SAME
