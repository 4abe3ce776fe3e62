"""The zoo's layers and networks as anyone would write them: torch's own initialization, normal inputs, histograms.

What ``nox -s lab -- portable`` measures the zoo against: ``--models tests.support.zoo_naive``.
"""

from __future__ import annotations

import dataclasses
import functools

import torch

from executorch_goldens.exporting.data import Data, Example
from executorch_goldens.zoo.registry import Case, case, load

FAMILIES = frozenset(
    (
        "attention",
        "convolutions",
        "image_networks",
        "layers",
        "networks",
        "pooling",
        "recurrent",
        "sequence_networks",
    )
)


def build(original: Case, data: Data) -> Example:
    """Build the model of a case with torch's random weights and inputs."""
    torch.manual_seed(0)
    example = original.build(Data(original.name))
    inputs = tuple(torch.randn_like(x) if x.is_floating_point() else x for x in example.inputs)
    return dataclasses.replace(example, inputs=inputs, fill=False)


for original in [known for known in load(("models",)).values() if known.family in FAMILIES]:
    builder = functools.partial(build, original)
    functools.update_wrapper(builder, build)
    case(name=f"naive-{original.name}"[:64], guards=f"naively: {original.guards}", quantization="histogram")(
        builder
    )
