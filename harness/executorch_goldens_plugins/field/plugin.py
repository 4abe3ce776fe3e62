"""The table of this plugin."""

from executorch_goldens.plugins import Command, Option, Plugin

PLUGIN = Plugin(
    name="field",
    commands={
        "freeze": Command(
            "keep the programs of chosen cells, with inputs and outputs, for later runtimes",
            "executorch_goldens_plugins.field.freeze",
        ),
        "thaw": Command(
            "run frozen programs in a different environment, or read a device's outputs, and compare",
            "executorch_goldens_plugins.field.thaw",
        ),
    },
    options=(
        Option(
            "compare",
            "--programs",
            {"action": "store_true", "help": "also run the base's programs in the runtime of the head"},
            "executorch_goldens_plugins.field.upgrade:ran",
        ),
    ),
)
