"""Finding merged-users: nodes that differ in quantization parameters, or in ELU's slope, are not merged.

`FuseDuplicateUsersPass` merges users of one tensor that agree in target and arguments. When it runs,
`FoldAndAnnotateQParamsPass` has moved quantization parameters to ``node.meta``, and from 1.3.1 `ConvertELUParamsPass`
has moved the slope of an ELU there: two nodes that compute different things look alike. The floor and the truncation of
a quotient are such a pair.

Installed, these entries are a part of what is compared.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch_goldens.patches.patch import Patch

SIGNATURE = (
    "executorch.backends.arm._passes.fuse_duplicate_users_pass:FuseDuplicateUsersPass._build_user_signature"
)

#: Entries of ``node.meta`` that an operator of the lowered graph is computed with.
ENTRIES = ("input_qparams", "output_qparams", "float_alpha")

#: The same in every release.
SOURCES = {
    SIGNATURE: "762d025c013dfb32528b08c700256122fc0929b5eb4b3a6bb9b4dc6e419b22e9",
}
FITS = dict.fromkeys(("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"), SOURCES)


def _install(release: str) -> None:
    from executorch.backends.arm._passes.fuse_duplicate_users_pass import FuseDuplicateUsersPass

    upstream = FuseDuplicateUsersPass._build_user_signature

    @wraps(upstream)
    def _build_user_signature(self: Any, node: Any) -> tuple[Any, ...] | None:
        signature = upstream(self, node)
        if signature is None:
            return None
        return (*signature, *(self._to_hashable(node.meta.get(entry)) for entry in ENTRIES))

    FuseDuplicateUsersPass._build_user_signature = _build_user_signature


PATCH = Patch(
    name="merged-users",
    issue=None,
    summary="nodes that differ in quantization parameters, or in ELU's slope, are not merged",
    fits=FITS,
    install=_install,
)
