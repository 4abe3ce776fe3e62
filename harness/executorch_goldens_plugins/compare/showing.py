"""A form of ``goldens show``: what a model of one call of an operator is made of."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from executorch_goldens.cli import SAME
from executorch_goldens_plugins.compare.calls import WORD, read

#: The form has no option of its own.
OPTIONS: Sequence[str] = ()


def add_to(parser: Any) -> None:
    """Add no option."""


def takes(arguments: argparse.Namespace) -> bool:
    """Return whether a model is named that there is."""
    zoo, _, name = arguments.what.partition("/")
    return zoo == WORD and name in read()


def run(arguments: argparse.Namespace) -> int:
    """Print the target of the model, and the model."""
    model = read()[arguments.what.partition("/")[2]]
    print(f"for {model.target}: {model}")
    return SAME
