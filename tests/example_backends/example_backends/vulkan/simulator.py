"""Runs a Vulkan payload as the graph that it is: each operator by torch, in the memory that the payload plans.

Vulkan's own operators (``et_vk``) have a Python implementation in ExecuTorch's wheel
(``backends/vulkan/custom_ops_lib.py``). What a shader rounds otherwise, and how a texture is packed, is not seen here.
What is seen: constants, arguments, the order of operators, shapes, dtypes, and a tensor that is read after its memory
was given to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import executorch.backends.vulkan.custom_ops_lib  # noqa: F401
import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule

from example_backends.vulkan.decoder import decode
from executorch_goldens.decode import Decoded, Operator, Schemas, Value
from executorch_goldens.exporting import compat

DTYPES: Mapping[str, torch.dtype] = {
    "BOOL": torch.bool,
    "UINT8": torch.uint8,
    "INT8": torch.int8,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FLOAT16": torch.float16,
    "FLOAT32": torch.float32,
    "FLOAT64": torch.float64,
}


def run(lowered: LoweredBackendModule, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a delegate; raise RuntimeError for a payload that reads undefined values, or has unused outputs."""
    data = memoryview(lowered.processed_bytes)
    payload = decode(data, Schemas.installed(), dict(compat.named_data(lowered)))
    memory = _Memory(payload)
    graph = payload.graphs[0]
    taken = lowered.original_module.graph_signature.user_outputs
    if len(graph.outputs) != len(taken):
        raise RuntimeError(
            f"the payload gives {len(graph.outputs)} outputs, and the program takes {len(taken)}"
        )
    for name, given in zip(graph.inputs, inputs, strict=True):
        memory.write(name, given)
    for operator in graph.operators:
        made = _call(operator, memory)
        for name, each in zip(
            operator.outputs, made if isinstance(made, list | tuple) else [made], strict=True
        ):
            memory.write(name, each)
    dtypes = {
        node.name: node.meta["val"].dtype for node in lowered.original_module.graph.output_node().args[0]
    }
    return [memory.read(name).to(dtypes[node]) for name, node in zip(graph.outputs, taken, strict=True)]


class _Memory:
    """The tensors of a payload: each in an object of its own, or in one that others use before and after it."""

    def __init__(self, payload: Decoded) -> None:
        self.values = payload.graphs[0].values
        self.tensors: dict[str, Any] = {}
        self.owners: dict[object, str] = {}
        for name, value in self.values.items():
            if value.constant is not None:
                self.tensors[name] = torch.from_numpy(value.constant.array().copy())

    def write(self, name: str, tensor: Any) -> None:
        value = self.values[name]
        if isinstance(tensor, torch.Tensor):
            _require_fitting(value, tensor)
            tensor = tensor.to(DTYPES[value.dtype])
        self.tensors[name] = tensor
        shared = value.attributes.get("mem_obj_id", -1)
        if shared != -1:
            self.owners[shared] = name

    def read(self, name: str) -> Any:
        owner = self.owners.get(self.values[name].attributes.get("mem_obj_id", -1), name)
        if owner != name:
            raise RuntimeError(f"{name} is read after {owner} was written to its memory")
        if name not in self.tensors:
            raise RuntimeError(f"{name} is read and nothing has written it")
        return self.tensors[name]


def _require_fitting(value: Value, tensor: torch.Tensor) -> None:
    """Raise RuntimeError for a tensor of another rank than its value, or larger: smaller it may be."""
    planned = value.shape or ()
    if len(planned) != tensor.dim() or any(
        size > most for size, most in zip(tensor.shape, planned, strict=True)
    ):
        raise RuntimeError(f"{value.name} is planned as {list(planned)} and becomes {list(tensor.shape)}")


def _call(operator: Operator, memory: _Memory) -> Any:
    """Call an operator; its arguments are those of its schema, in order."""
    function = _function(operator.type)
    given = dict(zip(operator.input_roles, map(memory.read, filter(None, operator.inputs)), strict=True))
    given |= {role: value for role, value in operator.attributes.items() if role.startswith("arg")}
    arguments, keywords = [], {}
    for place, argument in enumerate(function._schema.arguments):
        value = _argument(f"arg{place}", given, isinstance(argument.type, torch.ListType))
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            arguments.append(value)
    with torch.no_grad():
        return function(*arguments, **keywords)


def _function(name: str) -> Any:
    namespace, operator, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), operator), overload)


def _argument(role: str, given: Mapping[str, Any], is_list: bool) -> Any:
    """Return an argument: a list's values are ``arg0[0]``, ``arg0[1]``, …"""
    if role in given:
        value = given[role]
        if isinstance(value, float) and abs(value) > torch.finfo(torch.float32).max:
            # A clamp without an end has the largest float64 for one; the runtime takes it as float32.
            return math.copysign(math.inf, value)
        return list(value) if is_list and isinstance(value, tuple) else value
    return list(_items(role, given)) if is_list else None


def _items(role: str, given: Mapping[str, Any]) -> Iterator[Any]:
    place = 0
    while f"{role}[{place}]" in given:
        yield given[f"{role}[{place}]"]
        place += 1
