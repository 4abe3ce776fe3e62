"""Finding gelu-tanh: the tanh form of GELU is not delegated to XNNPACK.

XNNPACK's serialized graph has one GELU, the exact one; `GeluVisitor` writes it whatever ``approximate`` says. The
correction that upstream merged (#22851) adds a second one, which the runtimes of these releases do not know.

Installed, the partitioner leaves the tanh form to the portable kernels, which compute it.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch_goldens.patches.patch import Patch

CONSTRAINTS = "executorch.backends.xnnpack.partition.config.generic_node_configs:GeluConfig.check_constraints"

INHERITED = "44a5055ed27ebf952e3a431952e7511ec19119f90bae1ea4f118956707065eaa"
OWN = "b425e6cbe514256ea722215003110e37cca77afe93ba8e232316d06fcb6200e0"

FITS = {
    "1.1.0": {CONSTRAINTS: INHERITED},
    **{release: {CONSTRAINTS: OWN} for release in ("1.2.0", "1.3.1", "1.4.1", "1.5.1")},
}


def _install(release: str) -> None:
    from executorch.backends.xnnpack.partition.config.generic_node_configs import GeluConfig, why

    upstream = GeluConfig.check_constraints

    @wraps(upstream)
    def check_constraints(self: Any, node: Any, ep: Any) -> bool:
        if node.kwargs.get("approximate", "none") != "none":
            why(node, reason="only the exact GELU is supported")
            return False
        return bool(upstream(self, node, ep))

    GeluConfig.check_constraints = check_constraints


PATCH = Patch(
    name="gelu-tanh",
    issue=None,
    summary="the tanh form of GELU is not delegated to XNNPACK",
    fits=FITS,
    install=_install,
)
