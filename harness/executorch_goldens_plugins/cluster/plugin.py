"""The table of this plugin."""

from executorch_goldens.plugins import Command, Option, Plugin

PLUGIN = Plugin(
    name="cluster",
    commands={
        "worker": Command(
            "offer this machine's releases to a Dask cluster", "executorch_goldens_plugins.cluster.worker"
        )
    },
    options=(
        Option(
            "run",
            "--cluster",
            {
                "metavar": "tcp://HOST:PORT",
                "help": "export on the workers of a Dask scheduler; artifacts come back through the cache",
            },
            "executorch_goldens_plugins.cluster.sweep:Cluster",
        ),
    ),
)
