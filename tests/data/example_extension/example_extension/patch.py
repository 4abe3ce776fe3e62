"""GELU's tanh approximation stays out of XNNPACK, which serializes it as the exact GELU."""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch_goldens.patches import Patch

GELU = "executorch.backends.xnnpack.partition.config.generic_node_configs:GeluConfig"
LATER = "715c1c134fac7577d2b6fc4e1462509c74d9728bcf85df12f1670ac12fec203b"
FITS = {
    "1.1.0": {GELU: "d753d25e1cbc7873af6fa86f7b27a1fa1351e5e4b33412e3b16fa1294e72a656"},
    **{release: {GELU: LATER} for release in ("1.2.0", "1.3.1", "1.4.1", "1.5.1")},
}


def install(release: str) -> None:
    from executorch.backends.xnnpack.partition.config.generic_node_configs import GeluConfig

    upstream = GeluConfig.check_constraints

    @wraps(upstream)
    def check_constraints(self: Any, node: Any, program: Any) -> bool:
        return node.kwargs.get("approximate", "none") == "none" and upstream(self, node, program)

    GeluConfig.check_constraints = check_constraints


PATCH = Patch(
    name="example-gelu",
    issue=None,
    summary="GELU's tanh approximation is not delegated to XNNPACK",
    fits=FITS,
    install=install,
)
