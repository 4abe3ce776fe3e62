"""The table of this plugin."""

from executorch_goldens.plugins import Form, Plugin

PLUGIN = Plugin(
    name="shipping",
    forms=(
        Form(
            "diff",
            "FILE.pte TARGET/CASE",
            "whether a .pte is the golden of a cell; kernels that a build lacks",
            "executorch_goldens_plugins.shipping.form",
        ),
    ),
)
