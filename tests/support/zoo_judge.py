"""A zoo with a case in whose process the harness itself is broken: ``--models tests.support.zoo_judge``."""

from __future__ import annotations

import torch

from executorch_goldens import Data, Example, case
from executorch_goldens.exporting.numerics import programs


def example(data: Data) -> Example:
    return Example(torch.nn.Linear(4, 3), (data.tensor("x", 2, 4),))


@case(guards="nothing is wrong with it", name="a-steady-one")
def steady(data: Data) -> Example:
    return example(data)


@case(guards="what the harness's own code raises costs this cell only", name="broken-judge")
def broken_judge(data: Data) -> Example:
    # As code that calls torch wrongly: no tensor has a dimension twice.
    wrong = programs.Layout(torch.float32, (0, 0))
    programs.Layout.declared = lambda value: wrong
    print("what the harness found out before", flush=True)
    return example(data)


@case(guards="it is exported after the other one", name="one-more-steady-one")
def steady_again(data: Data) -> Example:
    return example(data)
