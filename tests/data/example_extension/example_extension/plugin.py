"""A plugin with a command, and an option of ``goldens run`` that leaves a file beside the results of each cell."""

from executorch_goldens.plugins import Command, Option, Plugin

PLUGIN = Plugin(
    name="example",
    commands={"count": Command("count the goldens of a folder", "example_extension.count")},
    options=(
        Option(
            "run",
            "--names",
            {"action": "store_true", "help": "leave the names of the variations beside the results"},
            "example_extension.count:Names",
        ),
    ),
)
