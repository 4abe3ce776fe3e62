"""The table of this plugin."""

from executorch_goldens.plugins import Command, Plugin

PLUGIN = Plugin(
    name="downstream",
    commands={
        "compile": Command(
            "compile TOSA payloads for an Ethos-U or to VGF, and compare with goldens",
            "executorch_goldens_plugins.downstream.compile",
        )
    },
)
