"""``python -m lab pairs``: a matrix of situations in which every pair of two factors' values is in some model.

``--update`` draws the array again, without the rows that PyTorch itself does not run; ``--show NAME`` prints a model.
``goldens run --models lab.pairs.zoo --goldens goldens/pairs`` runs it.
"""

from __future__ import annotations

import argparse
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError
from executorch_goldens.files import durable
from lab.pairs import rows, text
from lab.pairs.factors import Row


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("pairs", description=__doc__)
    parser.add_argument("--update", action="store_true", help="draw the array again")
    parser.add_argument("--show", metavar="NAME", help="print a model")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Draw the array, show a model, or say what there is."""
    if options.update:
        durable.replace(rows.FILE, rows.text(rows.drawn(runs)))
    found = rows.read()
    if options.show:
        if options.show not in found:
            raise UsageError(f"no model is called {options.show!r}; they are pairs-0000 to {list(found)[-1]}")
        print(text.source(found[options.show]), end="")
    else:
        print(f"{len(found)} models, {rows.digest()}")
    return SAME


def runs(row: Row) -> bool:
    """Whether PyTorch runs a model, and what comes of it is finite."""
    import torch

    made: dict[str, Any] = {}
    try:
        exec(text.source(row), made)  # noqa: S102 - a text of ours
        outputs = made["Model"]()(*made["inputs"])
        return all(each.numel() and bool(torch.isfinite(each.float()).all()) for each in outputs)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AttributeError):
        return False
