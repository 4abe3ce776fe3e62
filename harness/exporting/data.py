"""The deterministic weights and inputs of cases.

Everything numeric in a case comes from numpy's PCG64, keyed by the case's name and the tensor's name, so that no torch
release, platform or import order can change it. Values are small dyadic rationals (a small integer over a power of
two): float32 sums and products of them are exact in any order, so that no vectorised kernel can round differently from
another.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from harness.registry import Case

#: Weights are k / 2**n with k in -8..8: few enough significant bits that the sums of a convolution over small
#: dyadic inputs need less than float32's 24, enough distinct values that a misplaced one shows.
WEIGHT_BITS = 3


def fan_in_bits(fan_in: int) -> int:
    """Return n such that weights uniform in -2**-n..2**-n keep activations near the size of the inputs.

    The standard deviation of such a weight is ``2**-n / sqrt(3)``; a sum over `fan_in` of them gains between
    0.6 and 1.6 (about 1 with a ReLU behind it), so that stacks neither saturate nor fade.

    >>> [fan_in_bits(n) for n in (1, 4, 9, 27, 64, 144)]
    [0, 0, 1, 1, 2, 3]
    """
    return max(0, (fan_in.bit_length() - 2) // 2)


@dataclass(frozen=True)
class Data:
    """Deterministic tensors for one case.

    Attributes
    ----------
    case
        Name of the case; part of the key of every tensor.
    """

    case: str

    def generator(self, name: str) -> np.random.Generator:
        """Return the PCG64 generator keyed by ``<case>/<name>`` (SHA-256 of the key, first 16 bytes)."""
        key = hashlib.sha256(f"{self.case}/{name}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(key[:16], "little")))

    def tensor(self, name: str, *shape: int, bits: int = 4, limit: int = 16) -> torch.Tensor:
        """Return float32 values k / 2**bits with k uniform over the integers -limit..limit.

        Parameters
        ----------
        name
            Name of the input or parameter within the case.
        shape
            Shape of the tensor; empty for a scalar.
        bits
            Binary digits after the point.
        limit
            Largest absolute numerator; the largest absolute value is ``limit / 2**bits``.
        """
        numerators = self.generator(name).integers(-limit, limit, size=shape, endpoint=True)
        return torch.from_numpy(np.asarray(numerators / 2.0**bits, dtype=np.float32))

    def like(self, name: str, example: torch.Tensor, sample: str) -> torch.Tensor:
        """Return a tensor of the shape, dtype, memory format and range of `example`, filled as `sample` says.

        Drawn values are multiples of 1/16 between the smallest and the largest of `example`; integers and booleans
        are drawn among all between them.
        """
        filled = torch.zeros_like(example)
        if sample == "zeros" or example.numel() == 0:
            return filled
        low, high = float(example.min()), float(example.max())
        generator = self.generator(f"{sample} {name}")
        if sample == "extremes":
            values = generator.choice(np.array([low, high]), size=tuple(example.shape))
        else:
            step = 1 / 16 if example.is_floating_point() else 1
            values = low + step * generator.integers(
                0, int((high - low) / step), example.shape, endpoint=True
            )
        return filled.copy_(torch.from_numpy(np.asarray(values)))

    def fill(self, module: torch.nn.Module) -> torch.nn.Module:
        """Overwrite every floating parameter and batch-norm statistic of `module`; return it in eval mode.

        Buffers other than batch-norm statistics are left as the case made them. Scales (batch-norm and
        layer-norm weights, running variances) stay positive and near one. Other one-dimensional parameters
        lie in -0.5..0.5; weights are scaled to their fan-in (`fan_in_bits`).
        """
        for name, parameter in module.named_parameters():
            owner = module.get_submodule(name.rpartition(".")[0])
            parameter.data = self._value(name, owner, parameter.data)
        for name, buffer in module.named_buffers():
            if name.rpartition(".")[2] in ("running_mean", "running_var"):
                owner = module.get_submodule(name.rpartition(".")[0])
                buffer.data = self._value(name, owner, buffer.data)
        return module.eval()

    def _value(self, name: str, owner: torch.nn.Module, like: torch.Tensor) -> torch.Tensor:
        leaf = name.rpartition(".")[2]
        is_scale = leaf == "running_var" or (leaf == "weight" and like.dim() == 1)
        if is_scale and not isinstance(owner, torch.nn.PReLU):
            return 1.0 + self.tensor(name, *like.shape, bits=3, limit=4)
        if like.dim() < 2:
            return self.tensor(name, *like.shape, bits=5, limit=16)
        fan_in = like[0].numel()
        return self.tensor(name, *like.shape, bits=WEIGHT_BITS + fan_in_bits(fan_in), limit=2**WEIGHT_BITS)


@dataclass(frozen=True)
class Example:
    """A model and the positional inputs it is exported with.

    Attributes
    ----------
    module
        Put into eval mode by `example_of`.
    inputs
        Also the samples that quantized targets calibrate with.
    fill
        Whether `Data.fill` replaces the parameters. False keeps the module's own, a checkpoint's for instance; two
        processes must then build the same bits.
    dynamic_shapes
        For `torch.export.export`: for each input, which of its dimensions may change, as ``{dimension: Dim}``.
    """

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    fill: bool = True
    dynamic_shapes: Any = None


def example_of(case: Case) -> Example:
    """Build the model of `case` and its inputs, with deterministic weights, in eval mode."""
    data = Data(case.name)
    built = case.build(data)
    module = data.fill(built.module) if built.fill else built.module.eval()
    return replace(built, module=module)


def samples_of(case: Case, example: Example) -> dict[str, tuple[torch.Tensor, ...]]:
    """Return the sets of inputs that the lowered program of `case` is run on, by name."""
    data = Data(case.name)
    return {
        sample: example.inputs
        if sample == "example"
        else tuple(data.like(str(index), x, sample) for index, x in enumerate(example.inputs))
        for sample in (case.run_on if example.inputs else ("example",))
    }
