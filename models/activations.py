"""Functions of one element, or of one row, by what their lowerings share.

Arguments stay inside each function's domain, and away from its jumps by more than an int8 code. A function that is
steep takes its argument from an input: a quantized sum before it could be off by one code.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from executorch_goldens import Data, Example, case


class Exponentials(nn.Module):
    """Exponentials, logarithms, and functions made of them."""

    def forward(
        self, x: torch.Tensor, positive: torch.Tensor, share: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return (
            torch.exp(x),
            torch.expm1(2.0 * x),
            torch.log(positive),
            torch.log1p(positive),
            torch.sigmoid(x),
            functional.logsigmoid(x),
            torch.tanh(x),
            torch.logit(share),
        )


@case(
    guards="exponentials, logarithms and sigmoids: each its own table or decomposition",
    run_on=("example", "extremes", "drawn"),
)
def exponentials(data: Data) -> Example:
    shares = data.tensor("share", 2, 5, bits=5, limit=12) + 0.5
    return Example(Exponentials(), (data.tensor("x", 2, 5), data.tensor("positive", 2, 5) + 1.5, shares))


class LogOnePlus(nn.Module):
    """The logarithm of one plus a number, small and large, of either sign."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(0.75 * x)


@case(guards="log1p is right below zero too: TOSA decomposes it to a polynomial there")
def log1p(data: Data) -> Example:
    return Example(LogOnePlus(), (data.tensor("x", 2, 5),))


class SmoothUnits(nn.Module):
    """Activations that bend smoothly."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.gelu(x),
            functional.silu(x),
            functional.mish(x),
            functional.softplus(x, beta=2.0),
        )


@case(guards="GELU, SiLU, Mish and softplus keep apart", also=("tosa-bf16",))
def smooth_units(data: Data) -> Example:
    return Example(SmoothUnits(), (data.tensor("x", 2, 5, bits=3),))


@case(guards="the tanh form of GELU is not taken for the exact one")
def gelu_tanh(data: Data) -> Example:
    return Example(nn.GELU(approximate="tanh"), (data.tensor("x", 2, 5, bits=3),))


class EluFamily(nn.Module):
    """ELU with and without an integer slope, SELU and CELU: one operator with other parameters."""

    def forward(
        self, w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return (
            functional.elu(w),
            functional.elu(x, alpha=0.75),
            functional.selu(y),
            functional.celu(z, alpha=1.5),
        )


@case(guards="ELU, SELU and CELU keep their slopes and scales, integer or not")
def elu_family(data: Data) -> Example:
    # Up to six: TOSA's polynomial for small arguments is exact to 1e-5 of the largest output.
    return Example(EluFamily(), tuple(data.tensor(name, 2, 5, bits=2, limit=24) for name in "wxyz"))


class ElusOfOneInput(nn.Module):
    """Two ELUs that differ in their slope alone."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.elu(x, alpha=0.75), functional.elu(x, alpha=1.5)


@case(guards="ELUs of one input that differ in their slope are not merged into one", backends=("tosa",))
def elus_of_one_input(data: Data) -> Example:
    return Example(ElusOfOneInput(), (data.tensor("x", 2, 5, bits=2, limit=24),))


class PiecewiseUnits(nn.Module):
    """Activations of straight pieces."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.prelu = nn.PReLU(channels)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            functional.hardswish(x),
            functional.hardsigmoid(x),
            torch.relu(functional.hardtanh(x, -0.5, 0.75)),
            functional.relu6(4.0 * x),
            functional.leaky_relu(x, 0.125),
            self.prelu(x),
            functional.threshold(x, 0.375, -1.0),
            torch.clamp(x, max=0.5),
        )


@case(
    guards="hard and leaky units keep their limits and slopes; a clamp after a clamp becomes one",
    also=("tosa-int16",),
)
def piecewise_units(data: Data) -> Example:
    # Sixteenths plus a sixty-fourth: none is near the threshold, at which the output jumps.
    x = data.tensor("x", 1, 3, 2, 4, bits=3) + 2.0**-6
    return Example(PiecewiseUnits(channels=3), (x,))


class Trigonometry(nn.Module):
    """Circular and hyperbolic functions, and the inverses of the latter."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.sin(2.0 * x),
            torch.cos(2.0 * x),
            torch.tan(x),
            torch.sinh(x),
            torch.cosh(x),
            torch.asinh(x),
            torch.acosh(x + 2.5),
            torch.atanh(0.75 * x),
        )


@case(guards="circular and hyperbolic functions decompose in float and become tables in int8")
def trigonometry(data: Data) -> Example:
    return Example(Trigonometry(), (data.tensor("x", 2, 5),))


class Arcs(nn.Module):
    """Arc cosine, which contains the arc sine, well inside its domain, and arc tangent."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.acos(0.75 * x), torch.atan(2.0 * x)


@case(
    guards="arc cosine and arc tangent become polynomials in float, tables in int8",
)
def arcs(data: Data) -> Example:
    return Example(Arcs(), (data.tensor("x", 2, 5),))


class RootsAndPowers(nn.Module):
    """Roots, powers and reciprocals, and the error function."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        above_zero = x + 1.5
        return (
            torch.sqrt(above_zero),
            torch.rsqrt(above_zero),
            torch.reciprocal(above_zero),
            torch.square(x),
            x**3,
            above_zero**-1.5,
            torch.erf(x),
            torch.pow(above_zero, y),
        )


@case(guards="roots, powers, reciprocals and the error function, integer exponents and others")
def roots_and_powers(data: Data) -> Example:
    return Example(RootsAndPowers(), (data.tensor("x", 2, 5), data.tensor("y", 2, 5, bits=3)))


class Rounding(nn.Module):
    """Every way to an integer, of quarters plus an eighth: no argument is near a jump."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        eighths = 4.0 * x + 0.125
        return (
            torch.round(eighths),
            torch.floor(eighths),
            torch.ceil(eighths),
            torch.trunc(eighths),
            torch.sign(eighths) + eighths,
            torch.abs(eighths),
            torch.neg(eighths),
        )


@case(guards="round, floor, ceil, trunc and sign differ below zero")
def rounding(data: Data) -> Example:
    return Example(Rounding(), (data.tensor("x", 3, 5),))


class Divisions(nn.Module):
    """Quotients and remainders by a number and by a tensor; no quotient is near an integer."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x / y,
            x / 0.375,
            torch.div(x, y, rounding_mode="floor"),
            torch.floor_divide(x, 0.375),
            torch.remainder(x, y),
            torch.remainder(x, 0.375),
        )


def dividends(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """Return odd numbers of 32nds and one to four eighths: no quotient is nearer to an integer than a sixteenth."""
    eighths = data.generator("y").integers(1, 4, size=(3, 5), endpoint=True)
    return data.tensor("x", 3, 5) + 2.0**-5, torch.from_numpy(eighths).float() / 8.0


@case(
    guards="quotients and remainders round towards minus infinity",
    run_on=("example", "extremes", "drawn"),
    backends=("tosa", "xnnpack-int8"),
)
def divisions(data: Data) -> Example:
    return Example(Divisions(), dividends(data))


class TruncatingDivisions(nn.Module):
    """A quotient rounded towards zero, and the remainder that it leaves."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y)


@case(
    guards="quotients and remainders round towards zero",
    run_on=("example", "extremes", "drawn"),
    backends=("tosa",),
)
def truncating_divisions(data: Data) -> Example:
    return Example(TruncatingDivisions(), dividends(data))


class FloorAndTrunc(nn.Module):
    """One quotient rounded down and rounded towards zero."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc")


@case(
    guards="two roundings of one quotient keep quantization parameters of their own",
    run_on=("example", "extremes", "drawn"),
    backends=("tosa",),
)
def floor_and_trunc(data: Data) -> Example:
    return Example(FloorAndTrunc(), dividends(data))


class RowUnits(nn.Module):
    """Softmax and its logarithm along the last and along a middle dimension, and GLU."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.softmax(x, dim=-1),
            torch.softmax(x, dim=1),
            torch.log_softmax(x, dim=-1),
            functional.glu(x, dim=1),
        )


@case(
    guards="softmax, log-softmax and GLU work along their own dimension",
    also=("tosa-int16",),
    backends=("tosa", "xnnpack-int8"),
)
def softmax_glu(data: Data) -> Example:
    return Example(RowUnits(), (data.tensor("x", 2, 4, 5, bits=3),))


class InverseError(nn.Module):
    """The inverse of the error function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.erfinv(0.75 * x)


# The runtime has no kernel for it.
@case(guards="the inverse error function is approximated on both sides of zero", backends=("tosa",))
def inverse_error(data: Data) -> Example:
    return Example(InverseError(), (data.tensor("x", 2, 5),))
