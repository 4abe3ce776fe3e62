"""The table of this plugin."""

from executorch_goldens.plugins import Command, Plugin

PLUGIN = Plugin(
    name="start",
    commands={
        "init": Command(
            "set up goldens in your own repository and record the first one",
            "executorch_goldens_plugins.start.init",
        )
    },
)
