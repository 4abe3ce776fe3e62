"""Let a pass that interprets a graph translate the arguments of an operator without torch's trees.

For each operator a pass translates the arguments twice, from its own values to fake tensors and to nodes, and gives
them to the new graph, one by one through five methods. torch's trees do that for any nested structure. Nearly all
arguments are values of the pass, numbers, and tuples, lists and dictionaries of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from executorch_goldens.patches.shortcuts.shortcut import Shortcut, by_release

#: Code that is replaced or relied on: digests of its source, with the releases that have it.
FITS = {
    "executorch.exir.pass_base:_ExportPassBase._fx": {
        "d21aacbb5c107fba936892ddf1aa96b79921e01ca1e3cedd79da0fc115aa54ea": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "executorch.exir.pass_base:_ExportPassBase.ExportTracer.create_arg": {
        "e6e164d8b63fb1db2d598f6c5017adea5d55e168b364792f6e11bbc086a6b00b": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "executorch.exir.pass_base:ExportPass.ExportTracer.create_arg": {
        "e62a74465159fb279e845a08123bff61846c6f82c6daff5308e9b68b6b94d945": "1.1.0 1.2.0 1.3.1 1.4.1 1.5.1",
    },
    "torch.fx.experimental.proxy_tensor:PythonKeyTracer.create_arg": {
        "a2245ed7308d18686b5ca78258dcf160988786aa191a58cda4c02fb41dba13df": "1.1.0",
        "b283ffb89f11d2bb5691e8ee07afd35a837a1e79860a2fbaafafedef41604eb6": "1.2.0",
        "bde2a3d37f7cdfa28fee296dc80e5acf75bed185af489b1760f63c065b5fedf2": "1.3.1 1.4.1",
        "c0728163f1a3bfac35cf8ccd01514efb22a3353efeb8e1fb5b89ee8444bf5520": "1.5.1",
    },
    "torch.fx._symbolic_trace:Tracer.create_arg": {
        "7c82a04849c2eaca92f03ce9c286acefffc4df92a1f3400f9e73b532b080c57b": "1.1.0",
        "74415bd0c7877af119d6517389590011e57a1cec176bbd1fdce648da9c17d561": "1.2.0",
        "433a92814bdbb0049c171df4062ad365ffcbd4875346043f9dc0347ab1ffe8f4": "1.3.1 1.4.1",
        "9b552e42a895aab64c77f8c8d40cd6ef6a793dc0fc57ce5b827b68b293890ce3": "1.5.1",
    },
    "torch.fx.proxy:TracerBase.create_arg": {
        "31456b664cdf3f3fe63f0555bf197bd76f3de976f62cae321de852deab787d3e": "1.1.0 1.2.0",
        "eec436601a27887a04073fea3b9689df23c1912be5b7b37e2f147c99fe5fcdb6": "1.3.1 1.4.1",
        "a1970ce919ed89cc6ec03cacfc9a724b0d994caf49aa4300a50d935c1c071332": "1.5.1",
    },
}

#: Types of arguments that are translated to themselves.
PLAIN = frozenset((int, float, bool, str, type(None)))


def _install() -> None:
    import torch
    from executorch.exir import pass_base
    from torch.utils import _pytree as pytree

    room: Any = pass_base._ExportPassBase
    tracer: Any = pass_base.ExportPass.ExportTracer
    proxy_value: Any = pass_base.ProxyValue
    create_arg = tracer.create_arg
    plain = PLAIN | {torch.dtype, torch.device, torch.layout, torch.memory_format}

    def translated(value: Any, of: Callable[[Any], Any]) -> Any:
        kind = type(value)
        if kind is proxy_value:
            return of(value)
        if kind in plain:
            return value
        if kind is tuple:
            return tuple([translated(each, of) for each in value])
        if kind is list:
            return [translated(each, of) for each in value]
        if kind is dict:
            return {key: translated(each, of) for key, each in value.items()}
        return pytree.tree_map_only(proxy_value, of, value)

    @functools.wraps(room._fx)
    def fx(self: Any, kind: str, target: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        data = translated(args, _data), translated(kwargs, _data)
        result = getattr(self.interpreter, kind)(target, *data)
        proxies = translated(args, _proxy), translated(kwargs, _proxy)
        name = None
        if isinstance(target, torch._ops.OpOverload):
            name = self.tracer.graph._target_to_str(target.overloadpacket.__name__)
        proxy = self.tracer.create_proxy(kind, target, *proxies, name=name)
        proxy.node.meta.update(meta.data)
        self.tracer.set_metadata(proxy.node, result)
        return proxy_value(result, proxy)

    @functools.wraps(create_arg)
    def create_argument(self: Any, a: Any) -> Any:
        kind = type(a)
        if kind is torch.fx.Proxy:
            return a.node
        return a if kind in PLAIN else create_arg(self, a)

    room._fx = fx
    tracer.create_arg = create_argument


def _data(value: Any) -> Any:
    return value.data


def _proxy(value: Any) -> Any:
    return value.proxy


SHORTCUT = Shortcut(
    "retraced-arguments",
    "arguments of an operator are translated by a pass without torch's trees",
    by_release(FITS),
    _install,
)
