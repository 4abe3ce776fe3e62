"""The table of this plugin."""

from executorch_goldens.plugins import Command, Form, Plugin

PLUGIN = Plugin(
    name="compare",
    commands={
        "compare": Command(
            "compare the results of two toolchains: base against head, or an upgrade",
            "executorch_goldens_plugins.compare.command",
        )
    },
    forms=(
        Form(
            "show",
            "args/NAME",
            "a model of one call of an operator, of those that a search tries",
            "executorch_goldens_plugins.compare.showing",
        ),
    ),
    zoos={"args": "executorch_goldens_plugins.compare.exporting.args"},
)
