"""The table of this plugin."""

from executorch_goldens.plugins import Plugin

#: The shortcuts, in the order in which they are installed and named.
NAMES = (
    *("node-history", "composite-operators", "composite-overrides", "quantize-shapes"),
    *("lazy-code", "annotation-patterns", "fold-patterns", "retraced-shapes"),
)

PLUGIN = Plugin(
    name="fast",
    shortcuts={name: f"executorch_goldens_plugins.fast.{name.replace('-', '_')}:SHORTCUT" for name in NAMES},
)
