"""The only place that knows how the releases' APIs differ. Each function names the releases it is for."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from executorch.exir import EdgeProgramManager, ExecutorchBackendConfig, ExecutorchProgramManager
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, get_node_tensor_specs
from executorch.exir.passes import MemoryPlanningPass
from packaging.version import Version
from torch.fx.passes.infra.pass_base import PassBase

from executorch_goldens.zoo.targets import TOSA, XNNPACK, Target

if TYPE_CHECKING:
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

#: Modules that exports of each backend load. Those of the other do not: what they make cannot depend on it, and
#: `executorch_goldens.exporting.recording` shows so.
MODULES = {
    TOSA: (
        "executorch.backends.arm._passes.arm_pass_manager",
        "executorch.backends.arm.operators.node_visitor",
        "executorch.backends.arm.quantizer",
        "executorch.backends.arm.tosa.backend",
        "executorch.backends.arm.tosa.partitioner",
        "executorch.backends.arm.tosa.specification",
    ),
    XNNPACK: (
        "executorch.backends.xnnpack._passes",
        "executorch.backends.xnnpack.operators.node_visitor",
        "executorch.backends.xnnpack.partition.xnnpack_partitioner",
        "executorch.backends.xnnpack.quantizer.xnnpack_quantizer",
        # Its kernels are what a quantized program outside of delegates needs; Arm's quantizer imports it as well.
        "executorch.kernels.quantized",
    ),
}

#: A string of JSON, or a number that flatc writes and JSON does not have.
_STRING_OR_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|\b(?:inf|nan)\b')
_NOT_FINITE = {b"inf": b"Infinity", b"nan": b"NaN"}


@contextlib.contextmanager
def without_reuse() -> Iterator[dict[str, str]]:
    """Have ``to_executorch`` plan memory that no two values share; yield, by method, the class of the pass it replaces.

    The releases' ``naive`` is not that: each branch of a ``torch.cond`` begins at the same place, where its result
    stays, and from 1.4.1 it takes no value that is part of another. So their default algorithm plans, for lifetimes
    without end, behind what it has planned before.
    """
    replaced: dict[str, str] = {}
    emitting = EdgeProgramManager.to_executorch

    def emit(
        manager: EdgeProgramManager, config: ExecutorchBackendConfig | None = None
    ) -> ExecutorchProgramManager:
        config = config or ExecutorchBackendConfig()
        given = config.memory_planning_pass
        default = ExecutorchBackendConfig().memory_planning_pass
        each = given if isinstance(given, dict) else dict.fromkeys(manager.methods, given)
        passes = {name: each.get(name, default) for name in manager.methods}
        replaced.update({name: type(planner).__name__ for name, planner in passes.items()})
        # Methods of one pass may share buffers.
        unshared = {planner: _without_reuse(planner) for planner in passes.values()}
        own = (
            {name: unshared[planner] for name, planner in passes.items()}
            if isinstance(given, dict)
            else unshared[given]
        )
        return emitting(manager, dataclasses.replace(config, memory_planning_pass=own))

    with mock.patch.object(EdgeProgramManager, "to_executorch", emit):
        yield replaced


def _without_reuse(given: Any) -> MemoryPlanningPass:
    """Return a memory planning pass with the arguments of another, and an algorithm that shares no memory.

    ``enable_non_cpu_memory_planning`` is an argument in 1.3.1 alone, ``specs`` an iterator before it.
    """
    taken: list[int] = []

    def algorithm(alignment: int, specs: Iterable[Any], module: Any, *rest: Any) -> list[int]:
        every = list(specs)
        for spec in every:
            spec.lifetime = [0, sys.maxsize]
        module.input_mem_buffer_sizes = list(taken)
        sizes = MemoryPlanningAlgorithmSuite()(alignment, every, module, *rest)
        taken[:] = [max(pair) for pair in itertools.zip_longest(taken, sizes, fillvalue=0)]
        return list(taken)

    named = inspect.signature(MemoryPlanningPass.__init__).parameters
    arguments = {name: getattr(given, name) for name in named if hasattr(given, name)}
    return MemoryPlanningPass(**{**arguments, "memory_planning_algo": algorithm})


def load_backends(target: Target) -> None:
    """Import the modules in which exports for `target` are watched."""
    for backend in target.backends:
        for module in MODULES.get(backend, ()):
            importlib.import_module(module)


def _loaded(module: str, name: str) -> Any:
    """Return an attribute of a module; None where no export of this process needs the module."""
    return getattr(sys.modules.get(f"executorch.backends.{module}"), name, None)


def installed_release() -> str:
    """Return the executorch version of this interpreter, without its local label."""
    return metadata.version("executorch").partition("+")[0]


def bindings_take_floats() -> bool:
    """Return whether the runtime's Python interface accepts a float input: not in 1.1.0 and 1.2.0.

    ``extension/pybindings/pybindings.cpp``: "Unsupported python type <class 'float'>".
    """
    return Version(installed_release()) >= Version("1.3.1")


def tosa_quantizer(spec: TosaCompileSpec) -> Any:
    """Return a TOSAQuantizer in the mode that the release makes its default, said explicitly.

    ``use_composable_quantizer`` is absent in 1.1.0 and 1.2.0, False by default in 1.3.1 and True by default from
    1.4.1, where False is deprecated.
    """
    from executorch.backends.arm.quantizer import TOSAQuantizer

    parameters = inspect.signature(TOSAQuantizer.__init__).parameters
    if "use_composable_quantizer" not in parameters:
        return TOSAQuantizer(spec)
    return TOSAQuantizer(spec, use_composable_quantizer=parameters["use_composable_quantizer"].default)


def graph_module(program: torch.export.ExportedProgram) -> torch.fx.GraphModule:
    """Return the program as a module that quantizers can annotate.

    All five releases come with a torch whose ``module()`` adds a ``_guards_fn`` submodule by default; Arm's
    annotation passes raise on its ``call_module`` node.
    """
    return program.module(check_guards=False)


def named_data(delegate: LoweredBackendModule) -> tuple[tuple[str, bytes], ...]:
    """Return (key, bytes) of the backend's named data, sorted by key.

    ``pte_data`` maps a key to a ``DataEntry`` in all five releases; ``buffers`` holds bytes in some and
    ``BufferEntry`` in others.
    """
    store = delegate.named_data_store_output
    if store is None:
        return ()
    entries = dict(store.pte_data)
    for external in store.external_data.values():
        entries.update(external)
    found = []
    for key in sorted(entries):
        entry = entries[key]
        buffer = store.buffers[getattr(entry, "buffer_index", entry)]
        found.append((key, bytes(getattr(buffer, "buffer", buffer))))
    return tuple(found)


def deserialized(pte: bytes) -> Any:
    """Return a ``.pte`` as a ``PTEFile``: all five releases have one.

    Releases before 1.4.1 read JSON of flatc, which writes an infinity in a list as ``inf``.
    """
    from executorch.exir._serialize import _program

    name = "_program_flatbuffer_to_json"
    if (decompile := getattr(_program, name, None)) is None:
        return _program.deserialize_pte_binary(pte)
    with mock.patch.object(_program, name, lambda program: as_json(decompile(program))):
        return _program.deserialize_pte_binary(pte)


def as_json(text: bytes) -> bytes:
    r"""Return flatc's text with infinities and NaN as ``json.loads`` takes them, and strings as they are.

    >>> as_json(b'{"double_val": -inf, "name": "at: inf, \\" nan", "more": [nan, inf]}')
    b'{"double_val": -Infinity, "name": "at: inf, \\" nan", "more": [NaN, Infinity]}'
    """
    return _STRING_OR_WORD.sub(lambda found: _NOT_FINITE.get(found[0], found[0]), text)


def serialized(file: Any, plan: Any) -> bytes:
    """Return a ``PTEFile`` with `plan` as its only method, and with the data that this refers to, as a ``.pte``."""
    from executorch.exir._serialize._program import serialize_pte_binary

    program = copy.copy(file.program)
    program.execution_plan = [plan]
    program.backend_delegate_data = []
    for at, delegate in enumerate(plan.delegates):
        program.backend_delegate_data.append(file.program.backend_delegate_data[delegate.processed.index])
        plan.delegates[at] = dataclasses.replace(
            delegate, processed=dataclasses.replace(delegate.processed, index=at)
        )
    held = {getattr(value.val, "data_buffer_idx", 0) for value in plan.values}
    empty = type(file.program.constant_buffer[0])(b"") if file.program.constant_buffer else None
    program.constant_buffer = [
        buffer if at in held else empty for at, buffer in enumerate(file.program.constant_buffer)
    ]
    return bytes(
        serialize_pte_binary(dataclasses.replace(file, program=program), extract_delegate_segments=True)
    )


@dataclass(frozen=True)
class Pipeline:
    """A method that runs passes one after the other.

    Attributes
    ----------
    owner, method
        The class and the name of its method.
    name
        Name of the pipeline in traces.
    """

    owner: type[Any]
    method: str
    name: str


def pipelines() -> list[Pipeline]:
    """Return the release's pipelines of passes, of the backends that are loaded.

    ``transform_for_pre_decomposition_pipeline`` is absent before 1.5.1; all five releases have the others.
    """
    arm = _loaded("arm._passes.arm_pass_manager", "ArmPassManager")
    xnnpack = _loaded("xnnpack._passes", "XNNPACKPassManager")
    known = (
        Pipeline(arm, "transform_for_annotation_pipeline", "arm annotation"),
        Pipeline(arm, "transform_for_pre_decomposition_pipeline", "arm pre-decomposition"),
        Pipeline(arm, "transform_to_backend_pipeline", "arm backend"),
        Pipeline(xnnpack, "transform", "xnnpack"),
    )
    return [pipeline for pipeline in known if hasattr(pipeline.owner, pipeline.method)]


def partitioners() -> list[type[Any]]:
    """Return the partitioners of the backends that are loaded.

    Both have a ``partition`` of their own, which returns a ``PartitionResult``, in all five releases.
    """
    known = (
        _loaded("arm.tosa.partitioner", "TOSAPartitioner"),
        _loaded("xnnpack.partition.xnnpack_partitioner", "XnnpackPartitioner"),
    )
    return [partitioner for partitioner in known if partitioner is not None]


def pass_classes() -> list[type[Any]]:
    """Return every loaded class of passes that defines ``__call__`` itself: wrapping these sees every pass.

    Those are torch's ``PassBase`` and ExecuTorch's ``SpecPropPass`` in all five releases, ``ToDevicePass`` from 1.3.1
    and Arm's ``ArmPass``, the base of its passes, from 1.4.1.
    """
    return [cls for cls in dict.fromkeys(_descendants(PassBase)) if "__call__" in vars(cls)]


def planners() -> list[type[Any]]:
    """Return every loaded memory planning pass that defines ``run`` itself: all five releases call that."""
    return [cls for cls in dict.fromkeys(_descendants(MemoryPlanningPass)) if "run" in vars(cls)]


def _descendants(cls: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all that are made from it, some more than once."""
    yield cls
    for child in cls.__subclasses__():
        yield from _descendants(child)


def plan_of(module: torch.fx.GraphModule) -> Iterator[str]:
    """Yield a line for each planned value of a graph and of those nested in it, and the sizes of the arenas."""
    graphs = [each for each in module.modules() if isinstance(each, torch.fx.GraphModule)]
    for number, node in enumerate(node for graph in graphs for node in graph.graph.nodes):
        for spec in get_node_tensor_specs(node):
            if spec.mem_id is not None:
                yield f"%{number} {node.target}: {spec.allocated_memory} bytes at {spec.mem_id}:{spec.mem_offset}\n"
    yield from (f"arenas {graph.meta.get('non_const_buffer_sizes')}\n" for graph in graphs)


#: Specifications whose visitors together are those of TOSA 1.0.
TOSA_1_0 = ("TOSA-1.0+INT+int16", "TOSA-1.0+FP+bf16")


def visitor_classes() -> dict[str, dict[str, type[Any]]]:
    """Return each loaded backend's node visitors by target: ``tosa`` (those of TOSA 1.0) and ``xnnpack``.

    All five releases register them in these two private tables.
    """
    tables: Any = _loaded("arm.operators.node_visitor", "_node_visitor_tuples")
    specification = _loaded("arm.tosa.specification", "TosaSpecification")
    tosa = {
        target: visitor
        for name in (TOSA_1_0 if tables else ())
        for target, visitor in tables.get(specification.create_from_string(name))
    }
    xnnpack = _loaded("xnnpack.operators.node_visitor", "_node_visitor_dict") or {}
    return {"tosa": tosa, "xnnpack": dict(xnnpack)}
