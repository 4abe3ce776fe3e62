"""Issue #18866: every output slot of a TOSA block has a tensor of its own.

`FuseEqualPlaceholdersPass` merges constants of equal value, after which one node can be in several output
slots. `ToTosaMemoryFormatPass` of 1.1.0 and 1.2.0 then makes a TRANSPOSE per slot, and each rewrites *every*
slot that the node is in: the slots collapse onto the first TRANSPOSE, the later ones have no user and are
serialized all the same (``[t_1, t_2, t_2]`` and a dead ``t_3``), and a slot of another memory format gets the
data transposed too. Without transposes (rank below 4) the block names one tensor twice. From 1.3.1 repeated
slots are TOSA IDENTITYs.

Installed, the slots of one node that need a TRANSPOSE share one, slots of another memory format keep the
node. After that pass and the following `RemoveNoopPass`, which makes ``y.clone(), y`` one node in two slots, each slot
of a node that is in more than one is an IDENTITY of it. Graphs in which every output is distinct are unchanged.
"""

from __future__ import annotations

from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import Patch, replaces

FITS = by_release(
    """
    executorch.backends.arm._passes.arm_pass_manager:ArmPassManager.add_pass  e88fafaf1cd5f873 1.1.0 1.2.0
    executorch.backends.arm._passes.to_tosa_memory_format_pass:ToTosaMemoryFormatPass.insert_input_transpose
        fd98795250b5c276 1.1.0  a1bde5ae958c5897 1.2.0
    executorch.backends.arm._passes.to_tosa_memory_format_pass:ToTosaMemoryFormatPass.insert_tosa_transposes
        01da3a9c60743a1a 1.1.0  718602e1fbfcac86 1.2.0
    """
)


def _install(release: str) -> None:
    from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
    from executorch.backends.arm._passes.remove_noop_pass import RemoveNoopPass
    from executorch.backends.arm._passes.to_tosa_memory_format_pass import ToTosaMemoryFormatPass

    # Importing it registers an operator and a visitor, which must exist only where the patch is installed.
    from executorch_goldens.patches.tosa_identity import UniqueOutputNodesPass

    _transpose_slot_by_slot(ToTosaMemoryFormatPass)

    @replaces(ArmPassManager, "add_pass")
    def add_pass(upstream: Any, self: Any, pipeline_pass: Any) -> None:
        upstream(self, pipeline_pass)
        # Erasing a clone of an output makes its slot one with the original's, so this comes after that.
        placed = any(isinstance(earlier, ToTosaMemoryFormatPass) for earlier in self.passes)
        if placed and isinstance(pipeline_pass, RemoveNoopPass):
            upstream(self, UniqueOutputNodesPass())


def _transpose_slot_by_slot(pass_class: Any) -> None:
    from executorch.backends.arm.constants import NCHW_ORDER, NNCHW_ORDER, NNNCHW_ORDER

    channels_first = (NCHW_ORDER, NNCHW_ORDER, NNNCHW_ORDER)  # what the pass itself transposes outputs for

    @replaces(pass_class, "insert_input_transpose")
    def insert_input_transpose(upstream: Any, node: Any, input_node: Any, graph_module: Any) -> None:
        if node.op != "output":
            upstream(node, input_node, graph_module)
            return
        slots = list(node.args[0])
        orders = node.meta["original_dim_orders"]
        wanted = [
            slot is input_node and order in channels_first for slot, order in zip(slots, orders, strict=True)
        ]
        if not any(wanted):
            return  # an earlier slot's TRANSPOSE serves this one
        upstream(node, input_node, graph_module)  # rewrites every slot that holds input_node
        node.args = (
            type(node.args[0])(
                new if want else old for old, new, want in zip(slots, node.args[0], wanted, strict=True)
            ),
            *node.args[1:],
        )


PATCH = Patch(
    name="unique-outputs",
    issue=18866,
    summary="every output slot of a TOSA block has a tensor of its own, repeated ones through an IDENTITY",
    fits=FITS,
    install=_install,
    verdicts={"corrupt": {}},
    delegates=1,
)
