"""Names what nothing checks in a program: methods without a reference, outputs that cannot show an error."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from executorch_goldens.artifact import Lowered, Tensor
from executorch_goldens.goldens.findings import Unchecked

#: Field of a manifest that lists it.
FIELD = "unchecked"


def listed(lowered: Lowered) -> tuple[str, ...]:
    """Return what nothing checks, in words: methods, and outputs that would be equal if nothing were computed."""
    outputs = (f"{name} is {why}" for name, why in _outputs(lowered).items() if why)
    return (*(f"method {name}" for name in lowered.unchecked), *outputs)


def objection(lowered: Lowered, accepted: Collection[str] = ()) -> Unchecked | None:
    """Return why a program is not recorded; None where what is unchecked is accepted.

    Outputs that cannot show an error are an objection where no other output of the program can.

    Parameters
    ----------
    accepted
        Methods, and outputs such as ``output 0``, that a person has accepted.
    """
    methods = tuple(name for name in lowered.unchecked if name not in accepted)
    outputs = _outputs(lowered)
    # Constants that lowering folds are compared with what the delegates hold.
    nothing = outputs if all(outputs.values()) and not lowered.codes else {}
    left = tuple((name, why) for name, why in nothing.items() if name not in accepted)
    return Unchecked(methods, left, tuple(accepted)) if methods or left else None


def _outputs(lowered: Lowered) -> dict[str, str]:
    """Return the outputs of a program that was run, each with why it shows no error; empty where it shows one."""
    return {
        name: _shows_nothing(values) for method in lowered.by_method() for name, values in _by_output(method)
    }


def _by_output(method: Lowered) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield the name of each output of a method, and what is expected in each sample."""
    for index, _ in enumerate(method.samples[0].expected if method.samples else ()):
        values = [sample.expected[index] for sample in method.samples if index < len(sample.expected)]
        yield f"{method.samples[0].method} output {index}".lstrip(), values


def _shows_nothing(values: Sequence[Tensor]) -> str:
    """Return what an output is in all samples; empty where its values differ.

    >>> [_shows_nothing([Tensor.from_array(np.array([each, each]))]) for each in (np.nan, 1)]
    ['NaN in every element', '1 in every element']
    """
    numbers = np.concatenate([each.array().ravel() for each in values])
    if not numbers.size:
        return "empty"
    if np.isnan(numbers).all():
        return "NaN in every element"
    if not np.isfinite(numbers).any():
        return "infinite or NaN in every element"
    # One number is compared with one number.
    return f"{numbers[0]} in every element" if numbers.size > 1 and (numbers == numbers[0]).all() else ""
