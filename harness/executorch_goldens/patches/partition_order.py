"""Issue #19045: TOSA partitions are lowered in the order in which they were found, whatever the hash seed.

`TOSAPartitioner` numbers its partitions as it finds them (``tag0``, ``tag1``, ...; the modules of a
control-flow operator before the module that holds it) but gathers the tags in a ``set[str]`` and makes
``partition_tags`` by iterating it. Backend lowering follows that dict: it duplicates shared constants, cuts
submodules, numbers the lowered modules and names their inputs in its order, so that payloads change in
content too. Two more orders feed the same artifact:

- up to 1.3.1, a constant that several partitions share is tagged with ``set[str].pop()`` of its users' tags (from
  1.4.1 with their minimum): with shared constants it decides what is duplicated when, and which constant and which
  tags an error names;
- from 1.4.1, a partition that the removal of boundary Q/DQ nodes left cyclic is split into connected components, found
  by iterating a set of nodes: which component gets which tag follows addresses, and no hash seed reaches it.

Installed, all three follow discovery. A run that happened to be in that order already is unchanged.
"""

from __future__ import annotations

from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import Patch, replaces

CONSTANTS = "executorch.backends.arm.tosa.partitioner:tag_constant_data"
COMPONENTS = "executorch.backends.arm.tosa.partitioner:_find_connected_components"

FITS = {
    **by_release(
        f"""
        executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition
            2eaf2566af962491 1.1.0 1.2.0  06d7cbcc07004241 1.3.1
        {CONSTANTS}  5d5708919ef3d028 1.1.0 1.2.0  b22e656e9e45252f 1.3.1
        """
    ),
    **by_release(
        f"""
        executorch.backends.arm.tosa.partitioner:TOSAPartitioner.partition
            7f85a4d96eb60d16 1.4.1  d6ef623911feda19 1.5.1
        {COMPONENTS}  fc1ef808490b98e2 1.4.1 1.5.1
        """
    ),
}


def number(tag: str) -> int:
    """Return the place of a partition in discovery order.

    Tags are ``tag<n>`` with n counting up. Sorted as strings, ``tag10`` would come before ``tag2``.

    Examples
    --------
    >>> sorted(["tag10", "tag2", "tag0"], key=number)
    ['tag0', 'tag2', 'tag10']
    """
    return int(tag.removeprefix("tag"))


def _install(release: str) -> None:
    from executorch.backends.arm.tosa import partitioner

    functions = FITS[release]
    _order_tags(partitioner.TOSAPartitioner)
    if CONSTANTS in functions:
        _order_shared_constants(partitioner)
    if COMPONENTS in functions:
        _order_components(partitioner)


def _order_tags(partitioner_class: Any) -> None:
    @replaces(partitioner_class, "partition")
    def partition(upstream: Any, self: Any, exported_program: Any) -> Any:
        result = upstream(self, exported_program)
        result.partition_tags = {
            tag: result.partition_tags[tag] for tag in sorted(result.partition_tags, key=number)
        }
        return result


def _order_shared_constants(partitioner: Any) -> None:
    # Only the partitioner's own binding: other backends that use this function number their tags otherwise.
    @replaces(partitioner, "tag_constant_data")
    def tag_constant_data(upstream: Any, edge_program: Any) -> None:
        upstream(edge_program)
        for node in edge_program.graph.nodes:
            if node.op == "placeholder" and "delegation_tag" in node.meta:
                tags = [user.meta.get("delegation_tag") for user in node.users]
                node.meta["delegation_tag"] = min((tag for tag in tags if tag is not None), key=number)


def _order_components(partitioner: Any) -> None:
    @replaces(partitioner, "_find_connected_components")
    def find_connected_components(upstream: Any, nodes: set[Any]) -> list[set[Any]]:
        components = upstream(nodes)
        graph = next(iter(nodes)).graph
        place = {node: index for index, node in enumerate(graph.nodes)}
        return sorted(components, key=lambda component: min(place[node] for node in component))


PATCH = Patch(
    name="partition-order",
    issue=19045,
    summary="TOSA partitions are lowered in the order in which they were found",
    fits=FITS,
    install=_install,
    verdicts={"order-only": {}, "unstable": {}},
    delegates=2,
)
