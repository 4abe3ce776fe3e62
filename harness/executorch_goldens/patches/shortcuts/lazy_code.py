"""Generate and compile the code of a graph module when someone calls or reads it.

Every pass makes several graph modules, or edits one, and each time its graph is printed as Python source and
compiled: 13 to 18% of an export. Passes interpret graphs node by node; hardly one in a hundred of these functions
is ever called. What is called is what would have been: where the graph was edited since, the code is generated
from the graph as it was.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from typing import Any

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = {
    "torch.fx.graph_module:GraphModule.__new__": {
        "6529bcfa8c2427f2b894465510a1c981f52036b60a06de294d8cb4a4940e3dd4": "1.1.0 1.2.0 1.3.1",
        "9b3b555879e4a3e71044aff3f04e56ae68c78f47931f714a310312bbdb09ec7d": "1.4.1 1.5.1",
    },
    "torch.fx.graph_module:GraphModule.recompile": {
        "f415c27f466a7cffc0349cc9cf0503e75a2a6dddd99d451dfd7b06e237ee79f1": "1.1.0 1.2.0 1.3.1",
        "98adb1519c457ae430b046da8ec7bf6f00a488e22f777e6e13568d4bbb7fb6b1": "1.4.1 1.5.1",
    },
    "torch.fx.graph_module:GraphModule.__reduce__": {
        "ce24209faf9c8e8e7e427d669e3701c314ff4fb3d4ccc417f741a5a80230bd28": "1.1.0 1.2.0 1.3.1",
        "479fb053d55614eecb409944efc0e0e1bfdccaac48dd76994beb894ca5ad160f": "1.4.1 1.5.1",
    },
    "torch.fx.graph_module:GraphModule.__reduce_package__": {
        "899484cbad6da36484cb48ea52d7cce13b62484151d6197c6dd01d33004cb2fd": "1.1.0 1.2.0 1.3.1",
        "4bec0f9856baf5d7806711e14c5ff30c73daa461126bcbecbaa0ac1c5b144e54": "1.4.1 1.5.1",
    },
    "torch.fx.graph_module:GraphModule.__deepcopy__": {
        "cac6316fa47f92e5411e305ae229ace0e4b25290110cb9965b6abaa28eb058d3": "1.1.0 1.2.0 1.3.1",
        "895f13008e6b19727c85b8c06fcd59ce4cc634a43db40dfd364323abd9186d92": "1.4.1 1.5.1",
    },
    "torch.fx.graph_module:_forward_from_src": {
        "a9b20674688fb2549fe06d4198be131c43666111f27f250c0ad7b7c97af415c0": "1.1.0 1.2.0 1.3.1",
        "69e8956ea0efa582081a0e742cbd05fff3f5fb92dd9ef9ee096d39a03e6a4898": "1.4.1 1.5.1",
    },
    "torch.fx.graph:CodeGen._gen_python_code": {
        "0d8e8e897ff4a9b6242f4bc272a6f767730df459d2627f2f12732f8b6f62f9bf": "1.1.0",
        "c451f407071c61d4a088d60883681a14d3e535008f4e460cd5000fa6285db168": "1.2.0",
        "c2470b1df92e5b7c258d06393a5ddf5b6512cf96e0d050965ad69e8fdc238a8a": "1.3.1",
        "9e367ac7bd7b936da3e75ea846ec74b9a002ce293c1aa1e9b52cd841cbf85335": "1.4.1",
        "fb7a28207ddb86396dcca4e720e398c861b7cb80bc06604740569a10eb98f3a5": "1.5.1",
    },
    "torch.export._trace:_export_to_torch_ir": {
        "a8a32c30d2e800a48c10c9d23fd859911222b022ffa2c2ab4ca335b4c2fe8b3a": "1.1.0 1.2.0 1.3.1 1.4.1",
        "35f3d03be86c585f8f0aa8f02436a8c43c3105777500cb3f64f4c66826010763": "1.5.1",
    },
}


@dataclass(frozen=True)
class _GraphAsItWas:
    """The inputs of a graph's generated code, as they were when the graph was to be compiled.

    A node's arguments are immutable and are replaced when they change, so that holding them is enough.

    Attributes
    ----------
    nodes
        (node, name, operation, target, arguments, keyword arguments, type) of each node in order.
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
                (node, node.name, node.op, node.target, node.args, node.kwargs, node.type)
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
            and all(
                node is its_node
                and (name, op, target, kind) == (its_name, its_op, its_target, its_kind)
                # Not by value: 1, 1.0 and True are equal and are other code.
                and args is its_args
                and kwargs is its_kwargs
                for (node, name, op, target, args, kwargs, kind), (
                    its_node,
                    its_name,
                    its_op,
                    its_target,
                    its_args,
                    its_kwargs,
                    its_kind,
                ) in zip(self.nodes, now.nodes, strict=True)
            )
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
        for node, name, op, target, args, kwargs, kind in self.nodes:
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


def _install() -> None:
    import torch
    from torch.export import _trace
    from torch.fx import graph_module
    from torch.fx.experimental import _config

    room: Any = graph_module
    module_class: Any = room.GraphModule
    upstream, reduce, trace = module_class.recompile, module_class.__reduce__, _trace._export_to_torch_ir

    @functools.wraps(upstream)
    def recompile(self: Any) -> Any:
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

    @functools.wraps(reduce)
    def reduce_compiled(self: Any) -> Any:
        # It pickles what it has in its __dict__.
        _compile(self)
        return reduce(self)

    @functools.wraps(trace)
    def export_to_torch_ir(f: Any, *args: Any, **kwargs: Any) -> Any:
        # Dynamo reads methods without asking descriptors.
        if isinstance(f, torch.nn.Module):
            for module in f.modules():
                _compile(module)
        return trace(f, *args, **kwargs)

    for name in OF_CODE:
        setattr(module_class, name, _OfCode(name))
    module_class.recompile = recompile
    module_class.__reduce__ = reduce_compiled
    _trace._export_to_torch_ir = export_to_torch_ir


SHORTCUT = Shortcut(
    "lazy-code",
    "the code of a graph module is generated when someone calls or reads it",
    by_release(FITS),
    _install,
)
