"""Watches an export from within: which passes run, in which pipeline, which change the graph, which visitors serialize.

Passes are recorded by wrapping ``__call__`` of every pass class that has its own: from 1.4 on, Arm's base class
overrides that of torch. What counts as a change is a change of the graph's fingerprint, not what the pass says of
itself: a pass that retraces reports a modification whether it made one or not.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch
from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
from executorch.backends.arm.operators import node_visitor as arm_visitors
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.tosa.specification import TosaSpecification
from executorch.backends.xnnpack._passes import XNNPACKPassManager
from executorch.backends.xnnpack.operators import node_visitor as xnnpack_visitors
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir.backend.partitioner import PartitionResult
from torch.fx.passes.infra.pass_base import PassBase

from harness.artifact import PARTITIONING, PassRun, Watched

#: Methods that run a pipeline of passes, and its name. The last is absent before 1.5.1.
PIPELINES = (
    (ArmPassManager, "transform_for_annotation_pipeline", "arm annotation"),
    (ArmPassManager, "transform_for_pre_decomposition_pipeline", "arm pre-decomposition"),
    (ArmPassManager, "transform_to_backend_pipeline", "arm backend"),
    (XNNPACKPassManager, "transform", "xnnpack"),
)
#: What runs outside of any of them.
OUTSIDE = "exir"

#: Metadata of a node that later passes or serialization act on. The rest says where a node comes from.
METADATA = (
    *("input_qparams", "output_qparams", "delegation_tag", "tosa_dim_order", "_arm_disallow_tfa"),
    *("XNN_FUSED_ACTIVATION", "XNN_NHWC_NODE", "IS_IMPLICIT_Q_DQ_TAG"),
)
ADDRESS = re.compile(r"0x[0-9a-f]+|id=\d+|graph_id=\d+")


def fingerprint(module: torch.fx.GraphModule) -> str:
    """Return a digest of a graph and the graphs nested in it: operators, edges, arguments, `METADATA`; no names."""
    return hashlib.sha256("\n".join(_lines(module)).encode()).hexdigest()


def _lines(module: torch.fx.GraphModule) -> Iterator[str]:
    numbers = {node: number for number, node in enumerate(module.graph.nodes)}

    def argument(value: Any) -> Any:
        return f"%{numbers[value]}" if isinstance(value, torch.fx.Node) else value

    for node in module.graph.nodes:
        nested = getattr(module, node.target, None) if node.op == "get_attr" else None
        target = "" if node.op == "placeholder" or nested is not None else str(node.target)
        arguments = torch.fx.node.map_aggregate((node.args, node.kwargs), argument)
        metadata = {key: node.meta[key] for key in METADATA if key in node.meta}
        yield ADDRESS.sub("", f"{node.op} {target} {arguments} {_shape(node.meta.get('val'))} {metadata}")
        if isinstance(nested, torch.fx.GraphModule):
            yield from _lines(nested)


def _shape(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.stride()}"
    return str([_shape(item) for item in value]) if isinstance(value, list | tuple) else ""


class Watch:
    """A context in which the passes and node visitors of this process are recorded.

    Attributes
    ----------
    passes
        And partitioners, in order of their end.
    visitors
        ``backend target`` of each visitor that serialized a node, once.
    """

    def __init__(self) -> None:
        self.passes: list[PassRun] = []
        self.visitors: dict[str, None] = {}
        self._pipelines = [OUTSIDE]
        self._stack = ExitStack()

    def __enter__(self) -> Watch:
        for owner, name, pipeline in PIPELINES:
            if hasattr(owner, name):
                self._wrap(owner, name, functools.partial(self._in_pipeline, pipeline))
        for partitioner in (TOSAPartitioner, XnnpackPartitioner):
            self._wrap(partitioner, "partition", self._in_partitioner)
        passes: set[type[Any]] = {PassBase, *_descendants(PassBase)}
        for cls in passes:
            if "__call__" in vars(cls):
                self._wrap(cls, "__call__", self._in_pass)
        for backend, visitors in visitor_classes().items():
            # Some inherit the method: wherever it is defined, it is wrapped once.
            definers = {
                cls for visitor in visitors.values() for cls in visitor.__mro__ if "define_node" in vars(cls)
            }
            for definer in definers:
                self._wrap(definer, "define_node", functools.partial(self._in_visitor, backend))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def result(self) -> Watched:
        return Watched(tuple(self.passes), tuple(self.visitors))

    def _wrap(self, owner: type, name: str, around: Callable[..., Any]) -> None:
        """Replace a method by `around`, which is called with the method, its instance and its arguments."""
        method = vars(owner)[name]

        @functools.wraps(method)
        def wrapper(instance: Any, *args: Any, **kwargs: Any) -> Any:
            return around(method, instance, *args, **kwargs)

        setattr(owner, name, wrapper)
        self._stack.callback(setattr, owner, name, method)

    def _in_pipeline(
        self, pipeline: str, method: Callable[..., Any], instance: Any, *args: Any, **kwargs: Any
    ) -> Any:
        self._pipelines.append(pipeline)
        try:
            return method(instance, *args, **kwargs)
        finally:
            self._pipelines.pop()

    def _in_pass(
        self,
        method: Callable[..., Any],
        instance: Any,
        module: torch.fx.GraphModule,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        before = fingerprint(module)
        result = method(instance, module, *args, **kwargs)
        after = fingerprint(module if result is None else result.graph_module)
        self.passes.append(PassRun(self._pipelines[-1], type(instance).__name__, after, before != after))
        return result

    def _in_partitioner(self, method: Callable[..., Any], instance: Any, program: Any) -> PartitionResult:
        """Note the tags in the order in which backend lowering will follow them: no graph shows it."""
        result: PartitionResult = method(instance, program)
        tags = " ".join(result.partition_tags)
        self.passes.append(PassRun(PARTITIONING, type(instance).__name__, tags, bool(tags)))
        return result

    def _in_visitor(
        self,
        backend: str,
        method: Callable[..., Any],
        instance: Any,
        node: torch.fx.Node,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        self.visitors[f"{backend} {instance.target}"] = None
        return method(instance, node, *args, **kwargs)


def _descendants(cls: type[Any]) -> Iterator[type[Any]]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)


#: Specifications whose visitors together are those of TOSA 1.0.
TOSA_1_0 = ("TOSA-1.0+INT+int16", "TOSA-1.0+FP+bf16")


def visitor_classes() -> dict[str, dict[str, type]]:
    """Return each backend's node visitors by target: ``tosa`` (those of TOSA 1.0) and ``xnnpack``."""
    tosa = {
        target: visitor
        for name in TOSA_1_0
        for target, visitor in arm_visitors._node_visitor_tuples.get(
            TosaSpecification.create_from_string(name)
        )
    }
    return {"tosa": tosa, "xnnpack": dict(xnnpack_visitors._node_visitor_dict)}
