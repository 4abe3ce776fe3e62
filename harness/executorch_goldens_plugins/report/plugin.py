"""The table of this plugin."""

from executorch_goldens.plugins import Command, Plugin

PLUGIN = Plugin(
    name="report",
    commands={
        "report": Command(
            "write the results of runs as one HTML file", "executorch_goldens_plugins.report.command"
        )
    },
)
