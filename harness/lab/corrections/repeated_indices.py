"""Finding repeated-indices: an index_put that accumulates is not delegated to TOSA.

`AccumulateIndexPutPass` gathers the old rows, adds the new ones and takes ``accumulate`` away; one SCATTER then writes
the sums. Where an index occurs twice, a sum is lost, and the specification calls the SCATTER unpredictable. The pass
runs in the delegate and, before that, when a model is quantized.

Installed, it leaves an index_put that accumulates as it is, and the partitioner leaves such a one outside, whatever its
indices: they are known when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

from executorch_goldens.patches.patch import Patch

#: As the partitioner calls it.
SUPPORT = "executorch.backends.arm.tosa.partitioner:tosa_support_factory"
ACCUMULATE = "executorch.backends.arm._passes.accumulate_index_put_pass:AccumulateIndexPutPass.call_operator"

FITS = {
    "1.2.0": {
        SUPPORT: "ab1e7616e0709b976791c6194c037add60f8ed1cbd966b63800817fc12a664e2",
        ACCUMULATE: "d831d1d8fc6186d19d925e5fb4a9a425c0ebf17b58ded991001e634b7af1c68d",
    },
    "1.3.1": {
        SUPPORT: "c24e1432e7ac40d43dbb75af5dbe4eb0e40d6c8cc23700eb7992139706842b79",
        ACCUMULATE: "d831d1d8fc6186d19d925e5fb4a9a425c0ebf17b58ded991001e634b7af1c68d",
    },
    "1.4.1": {
        SUPPORT: "91e41a5c91ff8d631011a064d22d18bdc8b70aea5263f9ec542a8c9aeeb1eff2",
        ACCUMULATE: "a6fc9d6b13c8f1fba0f417715f32ed87f6ba4e761fdb78eb1679d9e7458acfc1",
    },
    "1.5.1": {
        SUPPORT: "79930c856f8ed84d394436c5ea252bbebe20e46d0e6e128b19fa87cfe3cb1662",
        ACCUMULATE: "a6fc9d6b13c8f1fba0f417715f32ed87f6ba4e761fdb78eb1679d9e7458acfc1",
    },
}


def _install(release: str) -> None:
    from executorch.backends.arm._passes.accumulate_index_put_pass import AccumulateIndexPutPass, aten_ops
    from executorch.backends.arm.tosa import partitioner
    from executorch.exir.dialects._ops import ops
    from torch.fx.passes.operator_support import OperatorSupportBase

    index_puts = (ops.edge.aten.index_put.default, *aten_ops)
    support = partitioner.tosa_support_factory
    rewrite = AccumulateIndexPutPass.call_operator

    def accumulates(operator: Any, arguments: Sequence[Any]) -> bool:
        return operator in index_puts and len(arguments) > 3 and bool(arguments[3])

    class AddsNothing(OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return not accumulates(node.target, node.args)

    @wraps(support)
    def tosa_support_factory(
        tosa_spec: Any, exported_program: Any, reporter: Any, additional_checks: Any = None, **others: Any
    ) -> Any:
        checks = [*(additional_checks or ()), AddsNothing()]
        return support(tosa_spec, exported_program, reporter, checks, **others)

    @wraps(rewrite)
    def call_operator(self: Any, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        if accumulates(op, args):
            return super(AccumulateIndexPutPass, self).call_operator(op, args, kwargs, meta)
        return rewrite(self, op, args, kwargs, meta)

    partitioner.tosa_support_factory = tosa_support_factory
    AccumulateIndexPutPass.call_operator = call_operator


PATCH = Patch(
    name="repeated-indices",
    issue=None,
    summary="an index_put that accumulates is not delegated to TOSA",
    fits=FITS,
    install=_install,
)
