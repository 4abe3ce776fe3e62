"""The form of ``goldens run`` that stays."""

from __future__ import annotations

import argparse

from executorch_goldens_plugins.watch.plugin import PLUGIN


def add_to(parser: argparse._ActionsContainer) -> None:
    """Add the option that chooses it."""
    (form,) = PLUGIN.forms
    parser.add_argument(form.name, action="store_true", help=form.help)


def takes(arguments: argparse.Namespace) -> bool:
    """Return whether cells are to be checked again and again."""
    return bool(arguments.watch)


def run(arguments: argparse.Namespace) -> int:
    """Check cells until Ctrl-C."""
    # Other runs do not wait for it.
    from executorch_goldens_plugins.watch.watching import Watching

    return Watching.from_arguments(arguments).run()
