"""The table of this plugin."""

from executorch_goldens.plugins import Command, Plugin

PLUGIN = Plugin(
    name="merge",
    commands={
        "merge": Command(
            "join the results of shards into those of one run, or summarize results",
            "executorch_goldens_plugins.merge.command",
        )
    },
)
