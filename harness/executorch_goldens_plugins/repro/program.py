"""An exported graph as a module that can be cut down and written out as Python, with its inputs."""

from __future__ import annotations

import base64
import copy
import dataclasses
import importlib.util
import re
import sys
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, GraphModule
from torch.fx.graph import CodeGen

from executorch_goldens.exporting.data import Example

#: Columns of a generated line, as of this project's own.
WIDTH = 110
#: Elements up to which a tensor is written as a list; above, as its compressed bytes.
LISTED = 64
#: Functions that XNNPACK's partitioner distinguishes by the source of a node (``source_fn_stack``).
FUNCTIONS = {"torch.ops.aten.linear.default(": "torch.nn.functional.linear("}


#: Arguments that say what is the default on a CPU.
DEFAULTS: Mapping[str, Any] = {"device": torch.device("cpu"), "pin_memory": False}


class NoProgramError(ValueError):
    """A graph cannot be written as straight-line code; the message says why."""


@dataclass(frozen=True)
class GraphProgram:
    """A graph of operators with the tensors that it runs on.

    Attributes
    ----------
    module
        Parameters, buffers and constants are its own attributes, not those of modules in it.
    inputs
        One tensor for each placeholder.
    dynamic
        Name of an input to the expression that says which of its dimensions may change.
    """

    module: GraphModule
    inputs: tuple[torch.Tensor, ...]
    dynamic: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_module(
        cls, exported: GraphModule, inputs: tuple[torch.Tensor, ...], dynamic_shapes: Sequence[Any] = ()
    ) -> GraphProgram:
        """Return the program of the result of ``ExportedProgram.module()``; raise `NoProgramError`.

        Assertions on dtypes, and arguments that only say what is the default on a CPU, are left out.

        Parameters
        ----------
        inputs
            Its inputs, all of them.
        dynamic_shapes
            The declaration of each of them.
        """
        graph = copy.deepcopy(exported.graph)
        graph.set_codegen(CodeGen())
        held: dict[str, Any] = {}
        taken = torch.nn.Module()
        for node in graph.nodes:
            if node.op not in ("get_attr", "call_function", "placeholder", "output"):
                raise NoProgramError(f"its exported graph has a {node.op} of {node.target}")
            if node.op == "get_attr":
                value = _attribute(exported, str(node.target))
                node.target = f"{node.name}_" if hasattr(taken, node.name) else node.name
                held[node.target] = owned(value)
            elif node.target is torch.ops.aten._assert_tensor_metadata.default and not node.users:
                graph.erase_node(node)
            elif node.op == "call_function":
                node.kwargs = _without_defaults(node.kwargs)
        program = cls(GraphModule(held, graph), tuple(map(owned, inputs)))
        named = zip(program.names(), dynamic_shapes, strict=False)
        return dataclasses.replace(program, dynamic={name: _shape(shape) for name, shape in named if shape})

    @property
    def nodes(self) -> int:
        return len(self.module.graph.nodes)

    def size(self) -> tuple[int, int]:
        """Return the size that programs are compared by: calls, then nodes."""
        return len([node for node in self.module.graph.nodes if node.op == "call_function"]), self.nodes

    def names(self) -> list[str]:
        """Return the names of the inputs, in order."""
        return [str(node.target) for node in self.module.graph.nodes if node.op == "placeholder"]

    def constants(self) -> dict[str, torch.Tensor]:
        """Return the attributes that the graph reads, by name."""
        reads = [str(node.target) for node in self.module.graph.nodes if node.op == "get_attr"]
        return {name: getattr(self.module, name) for name in reads}

    def sources(self) -> dict[str, torch.Tensor]:
        """Return inputs and constants, by name."""
        return {**dict(zip(self.names(), self.inputs, strict=True)), **self.constants()}

    def with_sources(self, changed: Mapping[str, torch.Tensor]) -> GraphProgram:
        """Return the program with other values for some inputs and constants, or with further constants."""
        return self.with_graph(copy.deepcopy(self.module.graph), changed)

    def with_graph(self, graph: Graph, changed: Mapping[str, torch.Tensor] | None = None) -> GraphProgram:
        """Return the program with a different graph, without its dead code; see `with_sources`."""
        sources = {**self.sources(), **(changed or {})}
        graph.eliminate_dead_code()
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        # One input stays: a model without any meets defects of its own.
        for node in [node for node in inputs if not node.users][: len(inputs) - 1]:
            graph.erase_node(node)
            inputs.remove(node)
        kept = tuple(sources[str(node.target)] for node in inputs)
        return GraphProgram(GraphModule(sources, graph), kept, self.dynamic)

    def shapes(self) -> list[str]:
        """Return the expression for ``dynamic_shapes``, of each input; none where all are static."""
        found = [self.dynamic.get(name, "None") for name in self.names()]
        return found if set(found) != {"None"} else []

    def source(self) -> str:
        """Return Python that defines ``Model`` and ``inputs``, and ``dynamic_shapes`` where there are any."""
        forward = self.module.graph.python_code("self").src.strip()
        # torch frees each value after its last use.
        forward = re.sub(r";  [\w = ]+ = None$", "", forward, flags=re.MULTILINE)
        for operator, function in FUNCTIONS.items():
            forward = forward.replace(operator, function)
        lines = ["class Model(torch.nn.Module):"]
        if constants := self.constants():
            lines += ["    def __init__(self):", "        super().__init__()"]
            lines += [textwrap.indent(_assignment(name, held), " " * 8) for name, held in constants.items()]
            lines.append("")
        lines += [textwrap.indent(forward, "    "), "", ""]
        tensors = [literal(tensor) for tensor in self.inputs]
        one_line = f"inputs = ({', '.join(tensors)}{',' if len(tensors) == 1 else ''})"
        several = "\n".join(["inputs = (", *(_wrapped(f"    {tensor},") for tensor in tensors), ")"])
        lines.append(one_line if len(one_line) <= WIDTH else several)
        if shapes := self.shapes():
            lines.append(f"dynamic_shapes = ({', '.join(shapes)},)")
        return "\n".join(lines) + "\n"

    def imports(self) -> list[str]:
        """Return the imports that `source` needs in addition to torch."""
        source = self.source()
        needs = {
            "from torch import device": r"\bdevice\(",
            "from math import inf": r"\binf\b",
            "from math import nan": r"\bnan\b",
            "import base64": r"\bbase64\.",
            "import zlib": r"\bzlib\.",
        }
        return [line for line, pattern in needs.items() if re.search(pattern, source)]

    def file(self) -> str:
        """Return `source` as a module of its own."""
        return "\n".join([*self.imports(), "import torch", "", "", self.source()])


def _without_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in arguments.items() if name not in DEFAULTS or value != DEFAULTS[name]
    }


def example_in(file: Path, name: str) -> Example:
    """Load a model as it is written at this moment, by `GraphProgram.source` for instance, from `file`.

    Parameters
    ----------
    name
        The name of its Python module. It has ``Model``, ``inputs`` and perhaps ``dynamic_shapes``.
    """
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    # A strict export looks names up in the module that the model's class says it is of.
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shapes = getattr(module, "dynamic_shapes", None)
    return Example(module.Model(), module.inputs, fill=False, dynamic_shapes=shapes)


def _attribute(module: torch.nn.Module, path: str) -> torch.Tensor:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    if not isinstance(value, torch.Tensor):
        raise NoProgramError(f"its exported graph has control flow ({path})")
    return value


def owned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in the same layout, or contiguous where memory is shared between elements or left out."""
    plain = tensor.detach()
    # Such a layout is the one that empty_like does not keep.
    dense = torch.empty_like(plain).stride() == plain.stride()
    kept = plain.clone() if dense else plain.contiguous().clone()
    return torch.nn.Parameter(kept, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else kept


def _shape(entry: Any) -> str:
    if entry is None or isinstance(entry, int):
        return repr(entry)
    if isinstance(entry, Mapping):
        return f"{{{', '.join(f'{key}: {_shape(value)}' for key, value in entry.items())}}}"
    if isinstance(entry, tuple | list):
        return f"({' '.join(f'{_shape(each)},' for each in entry)})"
    if not isinstance(entry, torch.export.Dim):
        raise NoProgramError(f"its dynamic shapes have a {type(entry).__name__}")
    return f'torch.export.Dim("{entry.__name__}", min={entry.min}, max={entry.max})'


def _assignment(name: str, held: torch.Tensor) -> str:
    if isinstance(held, torch.nn.Parameter):
        return _wrapped(f"self.{name} = torch.nn.Parameter({literal(held)})")
    return _wrapped(f'self.register_buffer("{name}", {literal(held)})')


def _wrapped(line: str) -> str:
    """Break a line of code between the items of its lists, but not beside the sign of an assignment."""
    indent = line[: len(line) - len(line.lstrip())]
    filled = textwrap.fill(
        line.replace(" = ", "\0=\0"),
        WIDTH - 8,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\0", " ")


# Tensors as expressions


def plain(shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[str]:
    """Yield expressions for tensors that a reader takes in at a glance: ones, zeros, multiples of 1/8 in -1..1."""
    sizes = ", ".join(map(str, shape)) if shape else "()"
    kind = "" if dtype is torch.float32 else f", dtype={dtype}"
    yield f"torch.ones({sizes}{kind})"
    yield f"torch.zeros({sizes}{kind})"
    if shape and dtype.is_floating_point:
        count = torch.Size(shape).numel()
        shaped = f".reshape({sizes})" if len(shape) > 1 else ""
        cast = "" if dtype is torch.float32 else f".to({dtype})"
        yield f"(torch.arange({count}) % 17 / 8 - 1){shaped}{cast}"


def literal(tensor: torch.Tensor) -> str:
    """Return an expression that gives a tensor exactly, with its dtype and layout."""
    tensor, shape = tensor.detach(), tuple(tensor.shape)
    if tensor.stride() != torch.empty(shape).stride():
        flat = tensor.as_strided((tensor.numel(),), (1,))
        return f"{literal(flat)}.as_strided({shape}, {tuple(tensor.stride())})"
    for text in plain(shape, tensor.dtype):
        if _is_same(evaluate(text), tensor):
            return text
    if tensor.numel() <= LISTED:
        inferred = torch.tensor(tensor.tolist()).dtype is tensor.dtype
        return f"torch.tensor({tensor.tolist()}{'' if inferred else f', dtype={tensor.dtype}'})"
    packed = base64.b64encode(zlib.compress(tensor.view(torch.uint8).numpy().tobytes(), 9)).decode()
    unpacked = f'bytearray(zlib.decompress(base64.b64decode("{packed}")))'
    return f"torch.frombuffer({unpacked}, dtype={tensor.dtype}).reshape{shape}"


def evaluate(text: str) -> torch.Tensor:
    """Return the value of an expression of `plain`."""
    tensor = eval(text, {"torch": torch})
    assert isinstance(tensor, torch.Tensor)
    return tensor


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors are equal, signs of zeros included."""
    return torch.equal(one, other) and (
        not one.is_floating_point() or torch.equal(one.signbit(), other.signbit())
    )
