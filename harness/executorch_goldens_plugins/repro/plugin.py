"""The table of this plugin."""

from executorch_goldens.plugins import Command, Plugin

PLUGIN = Plugin(
    name="repro",
    commands={
        "repro": Command(
            "write a script that shows a cell's defect without the harness",
            "executorch_goldens_plugins.repro.command",
        )
    },
    hint="executorch_goldens_plugins.repro.hints:hint",
)
