"""``python -m lab pairs``: matrices of situations in which every pair of two factors' values is in some model.

They were drawn once, with the torch of the oldest release, without the rows that PyTorch itself does not run, or not
export where a size is symbolic. ``--show NAME`` prints a model. ``python -m lab guest pairs`` runs the first one; the
wider one has no goldens.
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
    parser.add_argument("array", nargs="*", choices=[[], *rows.ARRAYS], help="only this one")
    parser.add_argument("--show", metavar="NAME", help="print a model")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show a model, or list the arrays."""
    arrays = [rows.ARRAYS[name] for name in options.array or rows.ARRAYS]
    found = {name: row for array in arrays for name, row in rows.read(array).items()}
    if options.show:
        if options.show not in found:
            there = " or ".join(f"{array.name}-0000 to {list(rows.read(array))[-1]}" for array in arrays)
            raise UsageError(f"no model is called {options.show!r}; they are {there}")
        print(text.source(found[options.show]), end="")
        return SAME
    for array in arrays:
        print(f"{array.name}: {len(rows.read(array))} models, {rows.digest(array)}")
    return SAME
