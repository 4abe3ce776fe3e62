"""Issue #18971: constants in a list argument are folded with the quantization parameters of that argument.

`FoldAndAnnotateQParamsPass` keys ``node.meta["input_qparams"]`` by the index of the top-level argument: a
``cat`` of any number of tensors has one entry, for argument 0. `FuseConstantArgsPass` of 1.1.0 and 1.2.0
looks the parameters up by the position of a tensor among the node's distinct inputs. In a ``cat``, the first
tensor is dequantized and every other one goes in as raw integer codes, so that the order in the list matters;
a list that repeats one constant has one distinct input, and hides it. From 1.3.1 the look-up is by argument.

Installed, a constant is dequantized with the parameters of the top-level argument that it is in, however
deeply nested in lists and tuples. Keyword arguments have no entry and stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import Patch, replaces

FITS = by_release(
    """
    executorch.backends.arm._passes.fuse_constant_ops_pass:FuseConstantArgsPass._fuse_nodes
        79edd5201f5f4dc8 1.1.0  77462042694181f9 1.2.0
    """
)


def by_input(node: Any, by_argument: Mapping[int, Any]) -> dict[int, Any] | None:
    """Re-key quantization parameters from top-level arguments to the node's distinct inputs.

    Parameters
    ----------
    node
        The operator that is folded, a `torch.fx.Node`.
    by_argument
        Its ``input_qparams``: quantization parameters by index of the top-level argument.

    Returns
    -------
    dict or None
        The parameters by index into ``node.all_input_nodes``, which is how the pass looks them up; None when
        one constant is in several arguments with different parameters, which no such table can say.
    """
    inputs = list(node.all_input_nodes)
    found: dict[int, Any] = {}
    for position, argument in [*enumerate(node.args), *((None, value) for value in node.kwargs.values())]:
        parameters = None if position is None else by_argument.get(position)
        for constant in _inputs_in(argument, inputs):
            if found.setdefault(inputs.index(constant), parameters) != parameters:
                return None
    return {index: parameters for index, parameters in found.items() if parameters is not None}


def _inputs_in(argument: Any, inputs: list[Any]) -> list[Any]:
    if isinstance(argument, (list, tuple)):
        return [constant for item in argument for constant in _inputs_in(item, inputs)]
    return [constant for constant in inputs if constant is argument]


def _install(release: str) -> None:
    from executorch.backends.arm._passes.fuse_constant_ops_pass import FuseConstantArgsPass

    @replaces(FuseConstantArgsPass, "_fuse_nodes")
    def fuse_nodes(upstream: Any, self: Any, node: Any) -> bool:
        by_argument = node.meta.get("input_qparams")
        if not by_argument:
            return bool(upstream(self, node))
        parameters = by_input(node, by_argument)
        if parameters is None:
            return False  # left as it is, the operator is computed by whoever runs the artifact
        node.meta["input_qparams"] = parameters
        try:
            return bool(upstream(self, node))
        finally:
            node.meta["input_qparams"] = by_argument


PATCH = Patch(
    name="list-qparams",
    issue=18971,
    summary="a constant in a list argument is folded with the quantization parameters of that argument",
    fits=FITS,
    install=_install,
    verdicts={"corrupt": {}},
    delegates=1,
)
