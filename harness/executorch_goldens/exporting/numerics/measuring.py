"""The metric of a case's task, for outputs of its program and of the eager model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from executorch_goldens.artifact import Metric, Tensor
from executorch_goldens.exporting.data import Example
from executorch_goldens.zoo.registry import ZooError

Outputs = Mapping[str, Sequence[Tensor]]


def measured(example: Example, outputs: Outputs, eager: Outputs) -> Metric | None:
    """Return the metric of an example for outputs; None without a metric, or without a run.

    Parameters
    ----------
    outputs, eager
        The outputs of the program, and of the model before it is quantized, by name of the sample.

    Raises
    ------
    ZooError
        For a metric that raises, or gives no number.
    """
    names = [name for name in (example.recordings or ("example",)) if name in outputs]
    if example.metric is None or not names:
        return None
    called = getattr(example.metric, "__name__", "")
    name = called if re.fullmatch(r"[A-Za-z]\w{0,63}", called) else "metric"
    value, right = (_value(example, name, side, names) for side in (outputs, eager))
    return Metric(name, value, right, float(example.bound))


def _value(example: Example, name: str, outputs: Outputs, names: Sequence[str]) -> float:
    assert example.metric is not None
    arrays = {sample: [output.array().copy() for output in outputs[sample]] for sample in names}
    try:
        value = example.metric(arrays)
    except Exception as error:
        raise ZooError(f"the metric {name} raises {type(error).__name__}: {error}") from None
    if not isinstance(value, int | float | np.number) or np.ndim(value):
        raise ZooError(f"the metric {name} gives {value!r}, and no number")
    return float(value)
