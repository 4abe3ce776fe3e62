"""The table of this plugin."""

from executorch_goldens.plugins import Form, Option, Plugin

PLUGIN = Plugin(
    name="explorer",
    options=(
        Option(
            "run",
            "--origins",
            {"action": "store_true", "help": "record the pass that made each operator, for show --explore"},
            "executorch_goldens_plugins.explorer.recording:OriginsOption",
        ),
    ),
    forms=(
        Form(
            "show",
            "--explore",
            "open a run's result for a cell in Google's Model Explorer",
            "executorch_goldens_plugins.explorer.form",
        ),
    ),
)
