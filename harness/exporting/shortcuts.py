"""Shortcuts: what torch and ExecuTorch compute again and again in every export, computed once, with the same bytes.

A shortcut is installed in the template before it warms up, so that forked children find what is computed once; a fresh
interpreter installs them as well. Like a patch it names the functions that it replaces or relies on, with the digests
of their source, and is refused where a release's source is another. Unlike a patch it must not change a byte of any
artifact: ``nox -s shortcuts`` exports the zoo with and without and compares.

Importing this module imports neither torch nor executorch.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import HarnessError
from harness.patches.patch import digest


@dataclass(frozen=True)
class Shortcut:
    """A piece of work that exports are spared.

    Attributes
    ----------
    name
        What ``--shortcuts`` calls it.
    summary
        One line: what is computed once or not at all.
    known
        Per release, the functions that it replaces or whose behaviour it relies on, as ``module:qualified.name``, and
        the `digest` of the source that it was written against.
    install
        Makes the replacement in this process; imports what it replaces.
    """

    name: str
    summary: str
    known: Mapping[str, Mapping[str, str]]
    install: Callable[[], None]


class ShortcutError(HarnessError):
    """A shortcut does not fit the release that is installed; nothing was replaced.

    Attributes
    ----------
    shortcut
        Name of the shortcut.
    release
        The release that is installed.
    function
        The function in question as ``module:qualified.name``; None when the shortcut knows nothing of the release.
    expected
        Digest of the source that the shortcut was written against.
    found
        Digest of the source that is installed; None when there is no such function.
    """

    def __init__(
        self,
        shortcut: str,
        release: str,
        function: str | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        super().__init__(shortcut, release, function, expected, found)
        self.shortcut = shortcut
        self.release = release
        self.function = function
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        without = "use --shortcuts none, or name those that fit"
        if self.function is None:
            return (
                f"shortcut {self.shortcut!r} was not written for ExecuTorch {self.release}: {without}; or review the "
                f"functions it replaces and record their digests for {self.release} in harness/exporting/shortcuts.py"
            )
        if self.found is None:
            return (
                f"shortcut {self.shortcut!r} replaces or relies on {self.function}, which the installed {self.release} "
                f"does not have: is another release installed? Otherwise {without}"
            )
        return (
            f"shortcut {self.shortcut!r} was not written for this source of {self.function} in ExecuTorch "
            f"{self.release}: its SHA-256 is {self.found}, not {self.expected}; {without}. If the shortcut still fits "
            f"the new source, record the new digest in harness/exporting/shortcuts.py"
        )


class UnknownShortcutError(HarnessError, ValueError):
    """A name that is no shortcut's.

    Attributes
    ----------
    name
        The name that was asked for.
    known
        The names there are.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return (
            f"there is no shortcut {self.name!r}; known: {', '.join(self.known)} (or 'all', or 'none' alone)"
        )


def select(spec: str) -> tuple[str, ...]:
    """Return the names that ``--shortcuts`` asks for, each once, in the order of `SHORTCUTS`.

    Parameters
    ----------
    spec
        ``all``, ``none``, or names with commas between them.

    Raises
    ------
    UnknownShortcutError
        For a name that is no shortcut's.

    Examples
    --------
    >>> select("none")
    ()
    >>> select("collector, node-history")
    ('node-history', 'collector')
    """
    if spec == "none":
        return ()
    return tuple(SHORTCUTS) if spec == "all" else _ordered(name.strip() for name in spec.split(","))


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    wanted = set(names)
    for name in sorted(wanted):
        if name not in SHORTCUTS:
            raise UnknownShortcutError(name, tuple(SHORTCUTS))
    return tuple(name for name in SHORTCUTS if name in wanted)


def verify(shortcut: Shortcut, release: str) -> None:
    """Raise `ShortcutError` unless every function that `shortcut` names for `release` is the one it knows."""
    if release not in shortcut.known:
        raise ShortcutError(shortcut.name, release)
    for function, expected in shortcut.known[release].items():
        try:
            found = digest(function)
        except (ImportError, AttributeError) as missing:
            raise ShortcutError(shortcut.name, release, function, expected) from missing
        if found != expected:
            raise ShortcutError(shortcut.name, release, function, expected, found)


def install(names: Sequence[str], release: str) -> None:
    """Verify, then install, the shortcuts named, in this process: either all are, or none.

    Raises
    ------
    UnknownShortcutError
        For a name that is no shortcut's.
    ShortcutError
        When a function is not the one that a shortcut was written for.
    """
    shortcuts = [SHORTCUTS[name] for name in _ordered(names)]
    for shortcut in shortcuts:
        verify(shortcut, release)
    for shortcut in shortcuts:
        shortcut.install()
        INSTALLED.append(shortcut.name)


#: Names of the shortcuts that this process has, in the order in which they were installed.
INSTALLED: list[str] = []


# node-history

#: What it replaces or relies on: the digests of its source, and the releases that have it.
NODE_HISTORY = {
    "torch.fx.traceback:NodeSource": {
        "d7684b27ae81a2a9796ec4ba00cbf5e21753d9c295ba41e4d1a8ea13c1772965": "1.1.0",
        "a1d0eaac6658dadd7d3d57ea2a9a67267d77f500752d7fbe2afde0e863c075e6": "1.2.0",
        "0e29c3d55d6345c34657e0c97227bd3d35cb7d4949a689171a7224ff48d5c74f": "1.3.1 1.4.1 1.5.1",
    },
}


def _share_node_histories() -> None:
    """Let copies of a node share its history.

    Every pass copies the whole history of every node that it visits (``NodeSource``), which grows with every pass: a
    third of the time of an LSTM's export. Nothing in a history is changed after it was made
    (``torch/fx/traceback.py``); nor is any of it in a golden.
    """
    from torch.fx.traceback import NodeSource

    NodeSource.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]


# composite-operators

#: What it replaces or relies on: the digests of its source, and the releases that have it.
COMPOSITE_OPERATORS = {
    "torch._export.utils:_materialize_cpp_cia_ops": {
        "6a75f025254b4a0ae2e23c74641f16c403004708743bf30aa55c825ffd868177": "1.1.0",
        "51472f6b4e2c37824078c061741bf2861dcc0da2f439e19ab099ce5d0711b033": "1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch._export.utils:_collect_all_valid_cia_ops": {
        "394f86cd4229643284a8fd957e16f2077f8bfbd4ead96b1fcc17dbbd796f26fc": "1.1.0",
        "1d09a99ea79bd377c8f0acc97247545fc7c769103e4e94cad6e72370598fd615": "1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch._export.utils:_collect_all_valid_cia_ops_for_namespace": {
        "7fb5488e38b61d73d510f9a87e5211ecee023d2f30be3c0ef67808806ce6bf59": "1.1.0 1.2.0 1.3.1",
        "c26d5cd619830773104ec3ccb3fbdcfa84f0ff7e59fc9c54e13e7551c96701ee": "1.4.1 1.5.1",
    },
}


def _look_up_new_composite_operators() -> None:
    """Look up the composite operators of the C++ dispatcher again only when there are new ones.

    Every decomposition looks all of them up, once for each of some forty namespaces, so that Python knows those that
    were registered since: a tenth of the time of a small export. What they are named is asked once per decomposition.
    """
    import torch
    from torch._export import utils
    from torch.export import decomp_utils, exported_program

    materialize, collect = utils._materialize_cpp_cia_ops, utils._collect_all_valid_cia_ops
    known: list[str] = []
    collecting = False

    def materialize_new() -> None:
        registered = known if collecting else composite_operators()
        if registered != known:
            materialize()
            known[:] = registered

    def composite_operators() -> list[str]:
        return torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")

    @functools.wraps(collect)
    def collect_all() -> set[Any]:
        nonlocal collecting
        materialize_new()
        collecting = True
        try:
            return collect()
        finally:
            collecting = False

    utils._materialize_cpp_cia_ops = materialize_new
    modules: tuple[Any, ...] = (utils, exported_program, decomp_utils)
    for module in modules:
        module._collect_all_valid_cia_ops = collect_all


# composite-overrides

#: What it replaces or relies on: the digests of its source, and the releases that have it.
COMPOSITE_OVERRIDES = {
    "torch.export.exported_program:_override_composite_implicit_decomp": {
        "4422dc79d0792af728dd8eacf0a2fadcf00195c8802ceca15632b737d9d5c9bd": "1.1.0 1.2.0 1.3.1 1.4.1",
        "e96e2a4f053f0684e521ee56810b19317dc4e3bef86a37e8271e702edea025e7": "1.5.1",
    },
    "torch._export.utils:_get_decomp_for_cia": {
        "3ae30c72c7d7bce2e64a2589eac8d22502ccb6cdc120cc4d35a8150f726a5eb9": "1.1.0 1.2.0 1.3.1 1.4.1",
        "68fc58bf22eb1ea06a0d2f9840bc43d0f5065a3a3bc14d0a047b3d90fbe53154": "1.5.1",
    },
    "torch._ops:OperatorBase.py_impl": {
        "0a5b36da652d01e2a65f5cf53a51e7f5936768f921079822bf7ed8420b36c982": "1.1.0",
        "8173bd205b783783cda935e5b6590b730162bf3224538ae039576a75fc40ec0b": "1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch._subclasses.fake_impls:register_op_impl": {
        "5041739b7c362762341612e6cfaaf4c61c45d5969dc46258a47d9c78fa947971": "1.1.0",
        "405e93300718a185c5987656eb2035974eafdf0acd5a4bc4ea26c9a6847c36a0": "1.2.0 1.3.1 1.4.1",
        "6c0b0bcd047f8a6fb51a7b8d2d0e0e4a53e609e1f745219c3d788e3892046497": "1.5.1",
    },
    "torch._subclasses.fake_impls:_deregister_op_impl": {
        "9b2d27808507abcaf99fa38d80e3b5a1817374e8eb30260c2b335dc033bf04f6": "1.1.0",
        "b25dfd97c983a622274368e3179ad8d5d041e1f04894656ca36719cbdabc9233": "1.2.0 1.3.1 1.4.1",
        "1c86a2de2c23819549122622a4c37961a96d72275f4aed790b887095456ca68c": "1.5.1",
    },
    "torch._higher_order_ops.utils:autograd_not_implemented": {
        "5cd89d9f69d7a7735b1fa3f1cc13cfcd252a7fef173a3cd75348a90661a4b32a": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
}


@dataclass(frozen=True)
class _Override:
    """What stands in an operator's Python kernels while a program is decomposed.

    Attributes
    ----------
    before
        The kernels that the rest was made from.
    during
        The kernels meanwhile; what stands under CompositeImplicitAutograd is put in each time.
    fake
        The operator's rule for fake tensors meanwhile.
    """

    before: dict[Any, Any]
    during: dict[Any, Any]
    fake: Callable[..., Any]


def _prepare_composite_overrides() -> None:
    """Make the kernels that stand in for composite operators once per operator.

    ``run_decompositions`` replaces twenty-one Python kernels of each of some six hundred composite operators, twice,
    and takes them out again: 6% of an export of six drawn on 1.4.1, 19% of a small one. They follow from the operator
    and the kernels that it has, and hold no state: they are made once, and made again when an operator's kernels are
    others than they were.
    """
    import torch
    from torch.export import exported_program

    room: Any = exported_program
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    overrides: dict[Any, _Override] = {}

    def run_composite(mode: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        original = kwargs.pop("original_callable")
        with mode:
            return original(*args, **kwargs)

    def prepare(op: Any) -> _Override:
        before = op.py_kernels.copy()
        during = op.py_kernels.copy()
        refuse = room.autograd_not_implemented(op, deferred_error=True)
        for key in room._AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE:
            during.setdefault(key, refuse)
        original = room._get_decomp_for_cia(op)
        during.pop(composite, None)
        during[composite] = None
        for key in room._BACKEND_KEYS_TO_OVERRIDE:
            during.setdefault(key, original)
        return _Override(before, during, functools.partial(run_composite, original_callable=original))

    @contextlib.contextmanager
    def override_composite_implicit_decomp(
        decompositions: Mapping[Any, Callable[..., Any]],
    ) -> Iterator[None]:
        befores = {}
        for op, decomposition in decompositions.items():
            override = overrides.get(op)
            if override is None or override.before != op.py_kernels:
                override = overrides[op] = prepare(op)
            befores[op] = override.before
            op.py_kernels.clear()
            op.py_kernels.update(override.during)
            op.py_kernels[composite] = decomposition
            op._dispatch_cache.clear()
            if not room._is_op_registered_to_fake_rule(op):
                room.register_op_impl(op)(override.fake)
        try:
            yield
        finally:
            for op, before in befores.items():
                op.py_kernels.clear()
                op.py_kernels.update(before)
                op._dispatch_cache.clear()
                room._deregister_op_impl(op)

    room._override_composite_implicit_decomp = override_composite_implicit_decomp


# quantize-shapes

#: What it replaces or relies on: the digests of its source, and the releases that have it.
QUANTIZE_SHAPES = {
    "torch._subclasses.fake_tensor:FakeTensorMode._validate_cache_key": {
        "6e680de04c253adae1f96aabf06f1683b174d2b658649f1b441c3ba2459083d4": "1.1.0 1.2.0 1.3.1 1.4.1",
        "e559ead03ce8b4415855f0700e263a9014a3add9be96dde5b1e9720dd1504c25": "1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:quantize_per_tensor_meta": {
        "c69f7442c59fa0e2a4a1323a3794aba2fd5a8fe4d3cf6ab1bdab1c3056a68e00": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:quantize_per_tensor_tensor_meta": {
        "d2bb4e23cdeaa2f397395cbc4ec1a1e84282dce29a481ccb0549ce0aed16c7ff": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:quantize_per_tensor_tensor2_meta": {
        "419e4198297e55fc18fe3242d47e265f4084abac42eb650daa5dbcbd810583fa": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:dequantize_per_tensor_meta": {
        "91ed0ea5fd5351d7e6e90f94f3ee8a4fc37d84572ec4abc8b7d9e1ccf52f73c0": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:dequantize_per_tensor_tensor_meta": {
        "4ddfea1d86cf94ac52d391ad8c11ceffffc261e278672b49d5272ea8b2d6ac40": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:dequantize_per_tensor_tensor2_meta": {
        "5fa00de6477620ee5257f27e06ae294268b6be4f35ab3eab295ae87d3eba3a87": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:quantize_per_channel_meta": {
        "b0cd85e0b5cf968c68b50a1896ea6615476ca177d2aeb771273af39626467bec": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.ao.quantization.fx._decomposed:dequantize_per_channel_meta": {
        "4c73973091610521e00836002934f05562231ccb49c4e6793b1711d7c61d49d5": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
}


def _remember_shapes_of_quantized() -> None:
    """Let the cache of fake tensors take quantize and dequantize operators as well.

    Every pass runs every node on fake tensors. torch remembers what its own operators give, by what they are given;
    others it runs each time, for they might do anything. These return an empty tensor of the input's shape
    (``torch/ao/quantization/fx/_decomposed.py``) and are up to half of the nodes of a quantized graph: with them, 16
    quantized exports drawn took 0.88 of the time on 1.4.1, 0.95 on 1.1.0.
    """
    import torch
    import torch.ao.quantization.fx._decomposed
    from torch._subclasses.fake_tensor import FakeTensorMode

    room: Any = FakeTensorMode
    validate = room._validate_cache_key
    library = torch.ops.quantized_decomposed
    packets = (
        *(library.quantize_per_tensor, library.dequantize_per_tensor),
        *(library.quantize_per_channel, library.dequantize_per_channel),
    )
    pure = frozenset(getattr(packet, name) for packet in packets for name in packet.overloads())  # type: ignore[no-untyped-call]

    @functools.wraps(validate)
    def validate_cache_key(self: Any, func: Any, args: Any, kwargs: Any) -> None:
        if func not in pure:
            validate(self, func, args, kwargs)

    room._validate_cache_key = validate_cache_key


# lazy-code

#: What it replaces or relies on: the digests of its source, and the releases that have it.
LAZY_CODE = {
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
    """What the generated code of a graph follows from, as it was when the graph was to be compiled.

    A node's arguments are immutable and are replaced when they change, so that holding them is enough.

    Attributes
    ----------
    nodes
        (node, name, operation, target, arguments, keyword arguments, type) of each node in order.
    codegen, pytree_info
        What writes the function's head and its end.
    """

    nodes: tuple[tuple[Any, ...], ...]
    codegen: Any
    pytree_info: Any

    @classmethod
    def of(cls, graph: Any) -> _GraphAsItWas:
        nodes = tuple(
            [
                (node, node.name, node.op, node.target, node.args, node.kwargs, node.type)
                for node in graph.nodes
            ]
        )
        return cls(nodes, graph._codegen, getattr(graph._codegen, "pytree_info", None))

    def is_still(self, graph: Any) -> bool:
        """Say whether `graph` is what it was: the very same nodes with the very same arguments."""
        now = _GraphAsItWas.of(graph)
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
        """Return a graph that is what this one was."""
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
    """Stands in a graph module's class for the method ``forward`` until someone looks for it.

    It is what ``recompile`` returns as well, and has the fields of the code that is then generated.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.graph = _GraphAsItWas.of(module._graph)

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
    """Stands in ``GraphModule`` for an attribute that compiling gives each instance; theirs come first."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            _compile(instance)
        if instance is None or self.name not in instance.__dict__:
            raise AttributeError(self.name)
        return instance.__dict__[self.name]


#: What compiling a graph module leaves in its ``__dict__``.
OF_CODE = ("_code", "_lineno_map", "_prologue_start")


def _compile_graph_modules_when_called() -> None:
    """Generate and compile the code of a graph module when someone calls or reads it.

    Every pass makes several graph modules, or edits one, and each time its graph is printed as Python source and
    compiled: 13 to 18% of an export. Passes interpret graphs node by node; hardly one in a hundred of these functions
    is ever called. What is called is what would have been: where the graph was edited since, the code is generated
    from the graph as it was.
    """
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


# annotation-patterns

#: What it replaces or relies on: the digests of its source, and the releases that have it.
ANNOTATION_PATTERNS = {
    "executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils:_do_annotate_conv_bn": {
        "873daa992df61b9602c9f690be29d8cd03aa7486e580580942cc88e0334a08c9": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils:WrapperModule": {
        "ac48d2dda17b7d61bf105a54ef80c06b0063ce42f53a11280a64ffcf5ba9cf14": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torchao.quantization.pt2e.utils:_get_aten_graph_module_for_pattern": {
        "2760e12e1e6e532552517a34f0672e8316b8a6aa55ecd7e70590cec1e2ca5c84": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
}


def _keep_annotation_patterns() -> None:
    """Export the patterns of the XNNPACK quantizer's annotators once, and hand out copies.

    For every model it exports the same twelve little models with ``torch.export``, a convolution and a batch norm in
    training mode each, to look for them in the model's graph: 58% of the export of an int8 linear. A pattern follows
    from the function that builds it, from what that function closes over, and from the shapes of its example inputs.
    """
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer_utils as room

    upstream = room._get_aten_graph_module_for_pattern
    patterns: dict[Any, Any] = {}

    @functools.wraps(upstream)
    def pattern_of(
        pattern: Any, example_inputs: tuple[Any, ...], is_cuda: bool = False, **kwargs: Any
    ) -> Any:
        if kwargs or not isinstance(pattern, room.WrapperModule):
            return upstream(pattern, example_inputs, is_cuda, **kwargs)
        build = pattern.fn
        closed_over = tuple(cell.cell_contents for cell in build.__closure__ or ())
        key = (build.__code__, closed_over, is_cuda, *((tuple(x.shape), x.dtype) for x in example_inputs))
        if key not in patterns:
            patterns[key] = upstream(pattern, example_inputs, is_cuda)
        # The matcher takes the names out of a pattern's output.
        return copy.deepcopy(patterns[key])

    room._get_aten_graph_module_for_pattern = pattern_of


# qat-patterns

#: What it replaces or relies on: the digests of its source, and the releases that have it.
QAT_PATTERNS = {
    "torchao.quantization.pt2e.qat_utils:_fold_conv_bn_qat_helper": {
        "a7f715d1f9f169b0b8d83287cccff4711ce29d5a0ae0adbb0467a23805638d31": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torchao.quantization.pt2e.qat_utils:_get_quantized_qat_conv_bn_pattern": {
        "90c8c2242a44417aa8de955d1de9d50e929182934cfa1631200950a2803e3bf0": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.subgraph_rewriter:_replace_pattern": {
        "2b0ed6f6a12794684f032cd81aadb43b7d6eac415447f82dd12488a0fd8e473f": "1.1.0",
        "6c74637efbfb6ce2340d15faed1dcdc7d9428985e8b9100677da4fe1388bc45b": "1.2.0",
        "bb1c8a5a74cef19ddbb99c94d611c5ba526ddbb56af67a398d3b7c67681b7dd1": "1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.subgraph_rewriter:_replace_attributes": {
        "db69f64cef852b94780f2a6cf272fc9410a2b8dee6c560f2ee5cd797a0da7ed2": "1.1.0 1.2.0",
        "e29e0dd24a0d36230d9052c5a2d1896471e7ecaa1a37603a076904fe2935b469": "1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.passes.utils.matcher_utils:SubgraphMatcher": {
        "8a5ad694e861f79187c2bd1a571e340e1dcc7a02e372919b589d11a0e8dbc8c1": "1.1.0",
        "fb7b5252c4d200bf75010264be8463dd6663cbfec72f4cecbad037432576748b": "1.2.0",
        "464e55df00f6e73183b68a1cad81bbedf84a125b8b58e34316841e7d5e7a09d4": "1.3.1",
        "970c8c6e0e5417ad07a1a8f5a20286cbec3a80d97a1d06d544fb3a4d3d6a3978": "1.4.1",
        "4cfd52c852e91436428981dc2c593eea93f6ac00d92947a6fe69e4bfe71b6d4e": "1.5.1",
    },
}


def _look_for_training_patterns_where_they_may_be() -> None:
    """Look for the patterns of quantization-aware training only in graphs that have an operator of theirs.

    ``convert_pt2e`` looks in every graph with a batch norm for what ``prepare_qat_pt2e`` makes of a convolution and a
    batch norm. Each time it exports 96 patterns with ``torch.export``: three quarters of the export of an autoencoder.
    Each pattern has a square root, of the running variance, and one kind of convolution. In a graph that lacks either
    nothing matches, and what then happens to the graph is done here.
    """
    import torch
    from torch.fx.subgraph_rewriter import _replace_attributes
    from torchao.quantization.pt2e import qat_utils

    room: Any = qat_utils
    aten = torch.ops.aten
    convolutions: dict[Any, Any] = {
        torch.nn.functional.conv1d: aten.conv1d.default,
        torch.nn.functional.conv2d: aten.conv2d.default,
        torch.nn.functional.conv_transpose1d: aten.conv_transpose1d.default,
        torch.nn.functional.conv_transpose2d: aten.conv_transpose2d.input,
    }
    upstream = room._fold_conv_bn_qat_helper

    @functools.wraps(upstream)
    def fold_conv_bn_qat_helper(m: Any, conv_fn: Any, example_inputs: Any, is_cuda: bool) -> Any:
        if {aten.sqrt.default, convolutions[conv_fn]} <= {node.target for node in m.graph.nodes}:
            return upstream(m, conv_fn, example_inputs, is_cuda)
        m.graph.eliminate_dead_code()
        m.recompile()
        room._duplicate_dequantize_node(m)
        # A replacement that replaced nothing still has submodules deleted that nothing uses.
        m.recompile()
        _replace_attributes(m, torch.fx.GraphModule({}, torch.fx.Graph()))
        room._remove_extra_dequantize(m)
        m.graph.eliminate_dead_code()
        m.recompile()
        return m

    room._fold_conv_bn_qat_helper = fold_conv_bn_qat_helper


# collector


#: Objects, made and not freed again, that the collector waits for: some hundreds of MB, more than an export of the zoo
#: leaves, and a bound for a model that leaves far more.
COLLECTED_AFTER = 1_000_000


def _collect_seldom() -> None:
    """Let the garbage collector run only after very many objects: a child ends before that.

    It takes 4 to 6% of an export. Cycles of graphs and nodes are not freed: an LSTM's export takes 72 MB more (584 to
    656), a small one 7 MB.
    """
    gc.set_threshold(COLLECTED_AFTER, 10, 10)


# no-debugger


def _hide_the_debugger() -> None:
    """Let the TOSA reference model find no ``gdb``.

    Where it refuses a graph, or dies, it attaches the debugger that it finds on the PATH to its own process and prints
    backtraces: four times, and 20 s in all, for a graph of ten operators. Nobody reads them; what it refuses, and why,
    it says besides.
    """
    import tosa_reference_model

    run = tosa_reference_model.run

    @functools.wraps(run)
    def run_without_debugger(*args: Any, **kwargs: Any) -> Any:
        path = os.environ.get("PATH", os.defpath)
        # Empty, it would stand for the working directory.
        os.environ["PATH"] = os.devnull
        try:
            return run(*args, **kwargs)
        finally:
            os.environ["PATH"] = path

    tosa_reference_model.run = run_without_debugger


#: The releases whose sources were read.
RELEASES = ("1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1")


def _by_release(functions: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Turn function to digest to releases into release to function to digest."""
    return {
        release: {
            function: digest
            for function, digests in functions.items()
            for digest, releases in digests.items()
            if release in releases.split()
        }
        for release in RELEASES
    }


#: Every shortcut by name, in the order in which they are installed and named.
SHORTCUTS: dict[str, Shortcut] = {
    shortcut.name: shortcut
    for shortcut in (
        Shortcut(
            "node-history",
            "copies of a node share its history",
            _by_release(NODE_HISTORY),
            _share_node_histories,
        ),
        Shortcut(
            "composite-operators",
            "composite operators are looked up again only when there are new ones",
            _by_release(COMPOSITE_OPERATORS),
            _look_up_new_composite_operators,
        ),
        Shortcut(
            "composite-overrides",
            "kernels that stand in for composite operators are made once",
            _by_release(COMPOSITE_OVERRIDES),
            _prepare_composite_overrides,
        ),
        Shortcut(
            "quantize-shapes",
            "what quantize and dequantize give for fake tensors is remembered",
            _by_release(QUANTIZE_SHAPES),
            _remember_shapes_of_quantized,
        ),
        Shortcut(
            "lazy-code",
            "the code of a graph module is generated when someone calls or reads it",
            _by_release(LAZY_CODE),
            _compile_graph_modules_when_called,
        ),
        Shortcut(
            "annotation-patterns",
            "the XNNPACK quantizer's patterns are exported once",
            _by_release(ANNOTATION_PATTERNS),
            _keep_annotation_patterns,
        ),
        Shortcut(
            "qat-patterns",
            "patterns of quantization-aware training are looked for only where one may be",
            _by_release(QAT_PATTERNS),
            _look_for_training_patterns_where_they_may_be,
        ),
        Shortcut(
            "no-debugger",
            "the TOSA reference model attaches no gdb when it refuses a graph",
            _by_release({}),
            _hide_the_debugger,
        ),
        Shortcut(
            "collector",
            "the garbage collector waits for very many objects",
            _by_release({}),
            _collect_seldom,
        ),
    )
}
