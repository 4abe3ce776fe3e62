"""The values inside a TOSA delegate: every tensor of its payload made an output, and run in the reference model."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from unittest import mock

import flatbuffers
import torch
from executorch.exir.backend.backend_details import ExportedProgram, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.fx import GraphModule

from executorch_goldens.decode import Graph, Operator, Schemas, decode
from executorch_goldens.decode.flatbuffer import Table
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.inside.evaluation import DelegateTensor, Opened, Values
from executorch_goldens.exporting.numerics import programs as numerics

#: Metadata that every pass copies from a node to its replacements, in all five releases.
HANDLE = "debug_handle"
#: Operators that give the values that they take, in another shape or order of dimensions.
HANDING_ON = frozenset({"IDENTITY", "RESHAPE", "TRANSPOSE"})
#: Data types, in the words of the schema, whose tensors the reference model gives as what they are. It has no others
#: for what graphs of ATen compute, but for the accumulators of 48 bits.
GIVEN = frozenset({"BOOL", "INT8", "INT16", "INT32", "FP16", "BF16", "FP32"})


def opened(lowered: LoweredBackendModule) -> Opened:
    """Make a delegate ready to be run with the values inside seen.

    Raises
    ------
    RuntimeError
        If lowering it again gives another payload, whose names are others, or the reference model does not run it.
    """
    graph = decode(lowered.processed_bytes, schemas=Schemas.installed()).graphs[0]
    given = lowered.original_module.graph.output_node().args[0]
    written = {name: node.name for name, node in zip(graph.outputs, given, strict=True)}
    places = list(traced(graph, {**written, **made_from(lowered)}))
    payload, names = with_outputs(lowered.processed_bytes)

    def run(inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Values]:
        arrays = numerics.run_model(payload, numerics.tosa_arrays(lowered, inputs))
        dtypes = (torch.bfloat16 if graph.values[name].dtype == "BF16" else torch.float32 for name in names)
        found = dict(zip(names, map(numerics.from_model, arrays, dtypes), strict=True))
        held: dict[str, list[DelegateTensor]] = {}
        for operator, tensor, node in places:
            if tensor in found:
                # Whatever it was made of, an output is what the delegate gives for a node.
                for name in dict.fromkeys((node, written.get(tensor, node))):
                    held.setdefault(name, []).append(DelegateTensor(operator, found[tensor]))
        return numerics.run_tosa(lowered, inputs), held

    return run


def traced(graph: Graph, made_of: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (the operator that computes a tensor, the tensor, the node that it was made of).

    What no pass says of an operator, the operator before it says: a RESCALE belongs to what it rescales. What only
    hands a value on has the name of what computes it.
    """
    made_of = dict(made_of)
    computed: dict[str, tuple[str, str]] = {}
    for operator in graph.operators:
        before = (
            made_of[name] for name in operator.inputs if name in made_of and not is_constant(graph, name)
        )
        inherited = next(before, None)
        for name in operator.outputs:
            node = made_of.get(name or "") or inherited
            if name is None or node is None:
                continue
            made_of[name] = node
            computed[name] = _computing(graph, operator, name, computed, made_of)
            yield " ".join(computed[name]), name, node


def _computing(
    graph: Graph,
    operator: Operator,
    name: str,
    computed: Mapping[str, tuple[str, str]],
    made_of: Mapping[str, str],
) -> tuple[str, str]:
    """Return the operator for the output `name`, and the tensor that it computes.

    Parameters
    ----------
    computed
        The same of the tensors before it.
    made_of
        The node that each tensor was made of.
    """
    first = operator.inputs[0] if operator.inputs else None
    if operator.type in HANDING_ON and first is not None and is_constant(graph, first):
        return "CONST", first
    if first is not None and first in computed and made_of[first] == made_of[name]:
        if operator.type in HANDING_ON:
            return computed[first]
        if operator.type == "RESCALE":
            return f"{computed[first][0]} and RESCALE", name
    return operator.type, name


def is_constant(graph: Graph, name: str | None) -> bool:
    return name is not None and name in graph.values and graph.values[name].constant is not None


def made_from(lowered: LoweredBackendModule) -> Mapping[str, str]:
    """Return the node of the delegate's graph that each tensor was made of, by name of the tensor.

    Where nothing was `noted` when the delegate was lowered, it is lowered again.
    """
    known = _NOTED.get(_key(lowered.processed_bytes, lowered.original_module))
    if known is not None:
        return known
    from executorch.backends.arm.tosa.backend import TOSABackend

    with noted():
        payload = TOSABackend.preprocess(
            copy.deepcopy(lowered.original_module), lowered.compile_specs
        ).processed_bytes
        if bytes(payload) != bytes(lowered.processed_bytes):
            raise RuntimeError("lowering the delegate again gives a different payload")
        return _NOTED[_key(payload, lowered.original_module)]


#: The origin of each tensor of the delegates that were lowered while `noted` was entered: see `made_from`.
_NOTED: dict[tuple[bytes, tuple[str, ...]], Mapping[str, str]] = {}


def _key(payload: bytes, program: ExportedProgram) -> tuple[bytes, tuple[str, ...]]:
    """Return the identity of a delegate: two graphs may become one payload."""
    return bytes(payload), tuple(node.name for node in program.graph.nodes)


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Record the origin of each tensor of every lowered delegate; payloads stay unchanged.

    The nodes of its graph, which is a copy that only the backend gets, are numbered where no pass of it looks.
    """
    from executorch.backends.arm.tosa.backend import TOSABackend

    method = vars(TOSABackend)["preprocess"]
    _NOTED.clear()

    def noting(program: ExportedProgram, specs: list[CompileSpec]) -> PreprocessResult:
        names = {}
        for number, node in enumerate(program.graph.nodes, 1):
            # Placeholders carry no origin.
            if node.op == "call_function":
                names[number] = node.name
            node.meta[HANDLE] = number
        given = tuple(node.name for node in program.graph.nodes)
        with passes_noted() as graphs:
            result: PreprocessResult = method.__func__(program, specs)
        # The first is the delegate's; branches and bodies of loops come after it.
        _NOTED[bytes(result.processed_bytes), given] = {
            node.name: names[handle]
            for node in graphs[0].graph.nodes
            if (handle := node.meta.get(HANDLE)) in names
        }
        return result

    with mock.patch.object(TOSABackend, "preprocess", staticmethod(noting)):
        yield


@contextlib.contextmanager
def passes_noted() -> Iterator[list[GraphModule]]:
    """Note the graphs that the passes of the backend leave."""
    pipeline = next(pipeline for pipeline in compat.pipelines() if pipeline.name == "arm backend")
    method = vars(pipeline.owner)[pipeline.method]
    graphs: list[GraphModule] = []

    def noting(*args: object, **kwargs: object) -> GraphModule:
        graphs.append(method(*args, **kwargs))
        return graphs[-1]

    with mock.patch.object(pipeline.owner, pipeline.method, noting):
        yield graphs


def with_outputs(payload: bytes) -> tuple[bytes, list[str]]:
    """Return a TOSA payload with every tensor that an operator writes as an output as well, and the outputs' names.

    The new list of outputs follows the payload, and the block is made to refer to it.
    """
    schemas = Schemas.installed()
    decoded = decode(payload, schemas=schemas)
    graph = decoded.graphs[0]
    written = [name for operator in graph.operators for name in operator.outputs if name is not None]
    further = [
        name
        for name in written
        if name not in graph.outputs and graph.values[name].dtype in GIVEN and not is_constant(graph, name)
    ]
    names = [*graph.outputs, *further]
    slot = next(f.slot for f in schemas.load("tosa").tables["TosaBasicBlock"] if f.name == "outputs")
    block = first(first(decoded.tree, "regions"), "blocks").offset
    changed = bytearray(payload)
    # Offsets are multiples of four.
    changed += bytes(-len(changed) % 4)
    field = block + flatbuffers.table.Table(changed, block).Offset(4 + 2 * slot)
    listed = list_of(names)
    # A buffer begins with the offset to its root, here the list. An offset is counted from where it is stored.
    root = len(changed) + flatbuffers.encode.Get(flatbuffers.packer.uoffset, listed, 0)
    flatbuffers.encode.Write(flatbuffers.packer.uoffset, changed, field, root - field)
    return bytes(changed + listed), names


def list_of(texts: Sequence[str]) -> bytes:
    """Return a FlatBuffer whose root is a vector of strings."""
    builder = flatbuffers.Builder()
    strings = [builder.CreateString(text) for text in texts]
    builder.StartVector(4, len(strings), 4)
    for string in reversed(strings):
        builder.PrependUOffsetTRelative(string)
    builder.Finish(builder.EndVector())
    return bytes(builder.Output())


def first(table: Table | None, name: str) -> Table:
    """Return the first table of a vector of tables."""
    assert table is not None
    entries = table.fields[name]
    assert isinstance(entries, tuple)
    entry = entries[0]
    assert isinstance(entry, Table)
    return entry
