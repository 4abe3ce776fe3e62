"""Generate and compile the code of a graph module when someone calls or reads it.

Every pass makes several graph modules, or edits one, and each time its graph is printed as Python source and
compiled: 13 to 18% of an export. Passes interpret graphs node by node; hardly one in a hundred of these functions
is ever called. What is called is what would have been: where the graph was edited since, the code is generated
from the graph as it was.
"""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass
from typing import Any

from executorch_goldens.patches.guard import by_release
from executorch_goldens.patches.patch import replaces
from executorch_goldens_plugins.fast.shortcut import Shortcut

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = by_release(
    """
    torch.fx.graph_module:GraphModule.__new__  6529bcfa8c2427f2 1.1.0 1.2.0 1.3.1  9b3b555879e4a3e7 1.4.1 1.5.1
    torch.fx.graph_module:GraphModule.recompile  f415c27f466a7cff 1.1.0 1.2.0 1.3.1  98adb1519c457ae4 1.4.1 1.5.1
    torch.fx.graph_module:GraphModule.__reduce__  ce24209faf9c8e8e 1.1.0 1.2.0 1.3.1  479fb053d55614ee 1.4.1 1.5.1
    torch.fx.graph_module:GraphModule.__reduce_package__
        899484cbad6da364 1.1.0 1.2.0 1.3.1  4bec0f9856baf5d7 1.4.1 1.5.1
    torch.fx.graph_module:GraphModule.__deepcopy__  cac6316fa47f92e5 1.1.0 1.2.0 1.3.1  895f13008e6b1972 1.4.1 1.5.1
    torch.fx.graph_module:_forward_from_src  a9b20674688fb254 1.1.0 1.2.0 1.3.1  69e8956ea0efa582 1.4.1 1.5.1
    torch.fx.graph:CodeGen._gen_python_code
        0d8e8e897ff4a9b6 1.1.0  c451f407071c61d4 1.2.0  c2470b1df92e5b7c 1.3.1  9e367ac7bd7b936d 1.4.1
        fb7a28207ddb8639 1.5.1
    torch.export._trace:_export_to_torch_ir  a8a32c30d2e800a4 1.1.0 1.2.0 1.3.1 1.4.1  35f3d03be86c585f 1.5.1
    """
)


@dataclass(frozen=True)
class _GraphAsItWas:
    """The inputs of a graph's generated code, as they were when the graph was to be compiled.

    A node's arguments are immutable and are replaced when they change, so that holding them is enough.

    Attributes
    ----------
    nodes
        (node, arguments, keyword arguments, name, operation, target, type) of each node in order.
    codegen, pytree_info
        The writer of the function's head and its end.
    """

    nodes: tuple[tuple[Any, ...], ...]
    codegen: Any
    pytree_info: Any

    @classmethod
    def from_graph(cls, graph: Any) -> _GraphAsItWas:
        nodes = tuple(
            [
                (node, node.args, node.kwargs, node.name, node.op, node.target, node.type)
                for node in graph.nodes
            ]
        )
        return cls(nodes, graph._codegen, getattr(graph._codegen, "pytree_info", None))

    def is_still(self, graph: Any) -> bool:
        """Return whether `graph` is unchanged: the very same nodes with the very same arguments."""
        now = _GraphAsItWas.from_graph(graph)
        return (
            self.codegen is now.codegen
            and self.pytree_info is now.pytree_info
            and len(self.nodes) == len(now.nodes)
            # Arguments not by value: 1, 1.0 and True are equal and are other code.
            and all(
                all(map(operator.is_, one[:3], its[:3]))
                for one, its in zip(self.nodes, now.nodes, strict=True)
            )
            and [each[3:] for each in self.nodes] == [each[3:] for each in now.nodes]
        )

    def again(self) -> Any:
        """Return a graph equal to the earlier state of this one."""
        from torch.fx import Graph
        from torch.fx.node import map_arg

        graph = Graph()
        graph._codegen = copy.copy(self.codegen)
        if self.pytree_info is not None:
            graph._codegen.pytree_info = self.pytree_info  # type: ignore[attr-defined]
        copies: dict[Any, Any] = {}
        for node, args, kwargs, name, op, target, kind in self.nodes:
            made = graph.create_node(
                op, target, map_arg(args, copies.__getitem__), map_arg(kwargs, copies.__getitem__), name, kind
            )
            made.name = name
            made.meta = node.meta
            copies[node] = made
        return graph


class _Uncompiled:
    """Placeholder of the method ``forward`` in a graph module's class, until it is looked up.

    It is what ``recompile`` returns as well, and has the fields of the code that is then generated.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.graph = _GraphAsItWas.from_graph(module._graph)

    def __get__(self, instance: Any, owner: type) -> Any:
        self.compile()
        found: Any = owner if instance is None else instance
        return found.forward

    def __getattr__(self, name: str) -> Any:
        if name not in ("src", "globals", "_lineno_map", "_prologue_start"):
            raise AttributeError(name)
        self.compile()
        return getattr(self.code, name)

    def compile(self) -> None:
        """Generate the code of the graph as it was, and put the method in its place."""
        from torch.fx.graph_module import _forward_from_src

        if "code" in vars(self):
            return
        graph = self.module._graph
        co_fields = getattr(graph, "_co_fields", {})
        if not self.graph.is_still(graph):
            graph = self.graph.again()
        self.code = code = graph.python_code(root_module="self", record_func=False)
        cls = type(self.module)
        if vars(cls).get("_uncompiled") is self:
            self.module.__dict__.update(
                _code=code.src, _lineno_map=code._lineno_map, _prologue_start=code._prologue_start
            )
            if vars(cls).get("forward") is self:
                cls.forward = _forward_from_src(code.src, code.globals, co_fields)
            del cls._uncompiled


def _compile(module: Any) -> None:
    """Compile `module` if it is a graph module that has not been."""
    uncompiled = vars(type(module)).get("_uncompiled")
    if uncompiled is not None:
        uncompiled.compile()


class _OfCode:
    """Placeholder in ``GraphModule`` of an attribute that compiling gives each instance; theirs come first."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            _compile(instance)
        if instance is None or self.name not in instance.__dict__:
            raise AttributeError(self.name)
        return instance.__dict__[self.name]


#: Entries that compiling a graph module leaves in its ``__dict__``.
OF_CODE = ("_code", "_lineno_map", "_prologue_start")


def _install(release: str) -> None:
    import torch
    from torch.export import _trace
    from torch.fx import graph_module
    from torch.fx.experimental import _config

    room: Any = graph_module
    module_class: Any = room.GraphModule

    @replaces(module_class, "recompile")
    def recompile(upstream: Any, self: Any) -> Any:
        cls = type(self)
        if _config.enrich_profiler_metadata:
            cls._uncompiled = None
            return upstream(self)
        if isinstance(self._graph._codegen, room._PyTreeCodeGen):
            self._in_spec = self._graph._codegen.pytree_info.in_spec
            self._out_spec = self._graph._codegen.pytree_info.out_spec
        for name in OF_CODE:
            self.__dict__.pop(name, None)
        uncompiled = cls.forward = cls._uncompiled = _Uncompiled(self)
        cls_call = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = room._WrappedCall(cls, cls_call)
        self._recompile_submodules()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return uncompiled

    @replaces(module_class, "__reduce__")
    def reduce_compiled(upstream: Any, self: Any) -> Any:
        # It pickles what it has in its __dict__.
        _compile(self)
        return upstream(self)

    @replaces(_trace, "_export_to_torch_ir")
    def export_to_torch_ir(upstream: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        # Dynamo reads methods without asking descriptors.
        if isinstance(f, torch.nn.Module):
            for module in f.modules():
                _compile(module)
        return upstream(f, *args, **kwargs)

    for name in OF_CODE:
        setattr(module_class, name, _OfCode(name))


SHORTCUT = Shortcut("lazy-code", None, "graphs are compiled when they are called", FITS, _install)
