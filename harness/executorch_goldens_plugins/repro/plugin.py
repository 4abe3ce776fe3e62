"""The table of this plugin."""

import argparse

from executorch_goldens.plugins import Command, Option, Plugin

PLUGIN = Plugin(
    name="repro",
    commands={
        "repro": Command(
            "write a script that shows a cell's defect without the harness",
            "executorch_goldens_plugins.repro.command",
        )
    },
    options=(
        Option(
            "compare",
            "--minimize",
            {
                "action": argparse.BooleanOptionalAction,
                "default": True,
                "help": "make a model that the search found smaller",
            },
            "executorch_goldens_plugins.repro.searched:shrunk",
        ),
    ),
    hint="executorch_goldens_plugins.repro.hints:hint",
)
