"""Finding log1p-below-zero: log1p is a Taylor series around zero only.

`DecomposeLog1pPass` computes ``log(1 + x)`` where x is above 1e-3 and six terms of a Taylor series everywhere else, all
of -1..0 included.

Installed, the series serves where the absolute value of x is at most 1e-3.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch_goldens.patches.patch import Patch

DECOMPOSE = "executorch.backends.arm._passes.decompose_log1p_pass:DecomposeLog1pPass.call_operator"
SERIES = "executorch.backends.arm._passes.decompose_log1p_pass:DecomposeLog1pPass._poly"

#: Value from which upstream uses the logarithm.
NEAR_ZERO = 1e-3

FITS = {
    "1.1.0": {
        DECOMPOSE: "cdc26fac3d67d8ca21774fe911b4164d4b7d4f81a7c5afb5378828a9fa12c6de",
        SERIES: "67a01b59a6427c611f96750de1601c895bb3b3c2a26a112300e0837cd1252d5e",
    },
    "1.2.0": {
        DECOMPOSE: "a8ca8528342a534214cd40a540452f6746ac68aa929744f1eba6ffeacf76b53b",
        SERIES: "67a01b59a6427c611f96750de1601c895bb3b3c2a26a112300e0837cd1252d5e",
    },
    "1.3.1": {
        DECOMPOSE: "a8ca8528342a534214cd40a540452f6746ac68aa929744f1eba6ffeacf76b53b",
        SERIES: "67a01b59a6427c611f96750de1601c895bb3b3c2a26a112300e0837cd1252d5e",
    },
    "1.4.1": {
        DECOMPOSE: "f55e0798e013ad64993214f90beb9d7028ba5b677c6683d2dc60c4146de65073",
        SERIES: "67a01b59a6427c611f96750de1601c895bb3b3c2a26a112300e0837cd1252d5e",
    },
    "1.5.1": {
        DECOMPOSE: "f55e0798e013ad64993214f90beb9d7028ba5b677c6683d2dc60c4146de65073",
        SERIES: "67a01b59a6427c611f96750de1601c895bb3b3c2a26a112300e0837cd1252d5e",
    },
}


def _install(release: str) -> None:
    from executorch.backends.arm._passes.decompose_log1p_pass import DecomposeLog1pPass
    from executorch.exir.dialects._ops import ops

    aten = ops.edge.aten
    upstream = DecomposeLog1pPass.call_operator

    @wraps(upstream)
    def call_operator(self: Any, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        def emit(operator: Any, *operands: Any) -> Any:
            return super(DecomposeLog1pPass, self).call_operator(operator, operands, {}, meta, updated=True)

        # A quantized log1p becomes a table.
        if op != aten.log1p.default or (meta.data.get("input_qparams") and meta.data.get("output_qparams")):
            return upstream(self, op, args, kwargs, meta)
        x = args[0]
        logarithm = emit(aten.log.default, emit(aten.add.Scalar, x, 1.0))
        is_far = emit(aten.gt.Scalar, emit(aten.abs.default, x), NEAR_ZERO)
        return emit(aten.where.self, is_far, logarithm, self._poly(x, meta))

    DecomposeLog1pPass.call_operator = call_operator


PATCH = Patch(
    name="log1p-below-zero",
    issue=None,
    summary="log1p is a Taylor series around zero only, and not far below it",
    fits=FITS,
    install=_install,
)
