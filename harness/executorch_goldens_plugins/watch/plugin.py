"""The table of this plugin."""

from executorch_goldens.plugins import Form, Plugin

#: What is typed.
WATCH = "--watch"

PLUGIN = Plugin(
    name="watch",
    forms=(
        Form(
            "run",
            WATCH,
            "keep templates, and check cells again when a file that they depend on is saved",
            "executorch_goldens_plugins.watch.form",
        ),
    ),
)
