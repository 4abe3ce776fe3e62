"""The effect of rounding on outputs: none where nothing rounds, a code near a tie, as much as the model amplifies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch._decomp import decomposition_table

from executorch_goldens.exporting.eager import FLOAT8, Float8InFloat32
from executorch_goldens.exporting.numerics.arithmetic import APPROXIMATIONS
from executorch_goldens.exporting.numerics.programs import flatten, overwrite
from executorch_goldens.exporting.numerics.rounding import _sum_of_float16, moved
from executorch_goldens.numerics.tolerances import TOUCHED
from executorch_goldens.zoo.targets import TOSA, XNNPACK

quantized = torch.ops.quantized_decomposed
SCALE = 0.125


class Of(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., torch.Tensor], **buffers: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs, *self.buffers())


def spread(model: nn.Module, *inputs: torch.Tensor, backend: str = "", scale: float = 0.0) -> np.ndarray:
    """Return how far rounding moves the one output of `model`, as a part of its largest value."""
    expected = flatten(model(*inputs))
    off = APPROXIMATIONS.get(backend, {})
    (found,) = moved(model, [inputs], (scale,), np.random.default_rng(0), off).spreads
    return found.array() / np.abs(expected[0].array().astype(np.float64)).max()


def through_codes(x: torch.Tensor, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    limits = torch.iinfo(dtype)
    codes = quantized.quantize_per_tensor(x, SCALE, 0, limits.min, limits.max, dtype)
    return quantized.dequantize_per_tensor(codes, SCALE, 0, limits.min, limits.max, dtype)


X = torch.linspace(-1.0, 1.0, 24).reshape(4, 6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat((x, x.flip(0))).permute(1, 0)[:, 1:],
        lambda x: torch.relu(x).clamp(max=0.5),
        lambda x: torch.where(x > 0, x, -x).amax(dim=1),
        lambda x: x.argmax(dim=1),
        lambda x: through_codes(x).reshape(-1),
    ],
    ids=["moves", "limits", "chooses", "counts", "quantizes an input"],
)
def test_what_no_rounding_touches_is_exact(function: Callable[..., torch.Tensor]) -> None:
    assert not spread(Of(function), X).any()


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        (lambda x: x * 3.0, 2**-24, 2**-22),
        (lambda x: torch.exp(x), 2**-23, 2**-20),
        (lambda x: x @ x.T, 2**-24, 2**-20),
        (lambda x: nn.functional.layer_norm(x, (6,)), 2**-24, 2**-17),
        # The small difference of large numbers.
        (lambda x: (x * 1e4 + 1e4 * 1.5) - 1e4 * 1.5 - 9999 * x, 2**-16, 2**-6),
    ],
    ids=["product", "exponential", "sums", "norm", "cancellation"],
)
def test_a_float_result_moves_by_units_in_its_last_place(
    function: Callable[..., torch.Tensor], least: float, most: float
) -> None:
    assert least <= spread(Of(function), X).max() <= most


def test_attention_is_rounded_in_each_of_its_steps_though_torch_has_one_kernel_for_it() -> None:
    # Scores of a thousand that differ by one: what rounding does to them is what it does to the output.
    x = X[None, None]
    inputs = (x + 20.0, x / 99.0 + 20.0, x)
    moved = spread(Of(nn.functional.scaled_dot_product_attention), *inputs)
    assert 2**-12.5 < moved.max() < 2**-8


def test_bfloat16_has_units_of_its_own() -> None:
    assert 2**-9 < spread(Of(lambda x: torch.exp(x)), X.bfloat16()).max() < 2**-5


def test_sums_of_float16_are_as_torch_gives_them_and_move() -> None:
    # Ones that float16 cannot add to 2048 one by one, as neither torch does.
    terms = torch.cat((torch.tensor([2048.0]), torch.ones(64))).half()[None]
    weights = torch.ones(65, 1).half()
    made = _sum_of_float16(torch.mm, (terms, weights), {})
    assert made.dtype is torch.float16
    assert made.item() == 2112.0
    assert 0.0 < spread(Of(lambda x: torch.mm(x, weights)), terms).max() <= 2**-9


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 1.0).sum(-1),
        lambda x: (x * 1.0).mean(),
        lambda x: (x * 1.0).reshape(3, 16, 256).mean((1, 2), keepdim=True),
        lambda x: (x * 1.0).half().sum(-1),
    ],
    ids=["sum", "mean of all", "over two dimensions", "float16"],
)
def test_many_terms_whose_partial_sums_round_the_same_way_may_be_added_in_order(
    function: Callable[..., torch.Tensor],
) -> None:
    # A tenth is added to itself: nearly every partial sum between two powers of two rounds the same way.
    added = np.add.accumulate(np.full(4096, 0.1, np.float32), dtype=np.float32)[-1]
    off = abs(float(added) / 409.6 - 1.0)
    assert spread(Of(function), torch.full((3, 4096), 0.1)).max() > 0.9 * off > 300 * 2**-24


def test_what_is_near_a_tie_moves_by_a_code_and_nothing_else_does() -> None:
    codes = torch.tensor([1.0, 1.25, 1.4, 1.49, 1.5, 1.51, 1.6, 1.75])
    moved = spread(Of(lambda x: through_codes(x * SCALE)), codes) * 2 * SCALE
    assert moved.tolist() == pytest.approx([TOUCHED] * 3 + [SCALE] * 3 + [TOUCHED] * 2)


def test_codes_that_get_another_scale_are_rounded_and_those_that_keep_theirs_are_not() -> None:
    def again(x: torch.Tensor, scale: float) -> torch.Tensor:
        codes = quantized.quantize_per_tensor(through_codes(x), scale, 0, -128, 127, torch.int8)
        return quantized.dequantize_per_tensor(codes, scale, 0, -128, 127, torch.int8)

    assert not spread(Of(lambda x: again(x, SCALE)), X).any()
    assert spread(Of(lambda x: again(x, 2 * SCALE)), X).max() >= 2 * SCALE


def test_an_output_that_is_a_buffer_moves_as_a_copy_of_it_does() -> None:
    def both(x: torch.Tensor, buffer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return buffer.add_(x * 0.3), buffer.clone()

    model = Of(both, buffer=torch.zeros(4, 6))  # type: ignore[arg-type]
    itself, copied = moved(model, [[X]], (), np.random.default_rng(0), {}).spreads
    assert itself.array().any()
    np.testing.assert_array_equal(itself.array(), copied.array())
    assert not model.buffer.any()


def test_an_output_that_follows_from_a_state_alone_moves_where_it_is_rounded() -> None:
    def three(x: torch.Tensor, buffer: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.tanh(buffer), buffer.flip(0), x.relu()

    model = Of(three, buffer=X.clone())  # type: ignore[arg-type]
    computed, handed_on, given = (
        found.array() for found in moved(model, [[X]], (), np.random.default_rng(0), {}).spreads
    )
    assert 2**-23 < computed.max() < 2**-20
    assert not handed_on.any()
    assert not given.any()


def test_what_is_quantized_by_channel_moves_by_the_scale_of_its_channel() -> None:
    scales, zeros = torch.tensor([SCALE, 4 * SCALE]), torch.zeros(2, dtype=torch.int64)

    def through_channels(x: torch.Tensor) -> torch.Tensor:
        codes = quantized.quantize_per_channel(x, scales, zeros, 0, -128, 127, torch.int8)
        return quantized.dequantize_per_channel(codes, scales, zeros, 0, -128, 127, torch.int8)

    # The second row's scale is four times as large: 4 is a code, and 6 is between two.
    x = torch.tensor([[1.0, 1.5, 2.0], [4.0, 6.0, 8.0]])
    moved = spread(Of(lambda x: through_channels(x * SCALE)), x)
    assert moved.tolist() == [pytest.approx([TOUCHED, s, TOUCHED]) for s in scales.tolist()]
    assert not spread(Of(lambda x: through_channels(through_channels(x))), x * SCALE).any()


def test_int16_is_moved_by_up_to_a_code() -> None:
    assert spread(Of(lambda x: through_codes(x * SCALE, torch.int16)), torch.tensor([1.2, 3.0])).all()


def test_a_scale_that_is_chosen_from_the_values_moves_their_codes() -> None:
    def dynamic(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax() / 127.0
        return quantized.quantize_per_tensor.tensor(x, scale, torch.tensor(0), -128, 127, torch.int8) * scale

    assert spread(Of(dynamic), X).max() > 0.9 / 127


def test_polynomials_are_off_where_they_are() -> None:
    moved = spread(Of(torch.expm1), torch.tensor([0.01, 0.3, 0.5, -1.0]), backend=TOSA)
    assert moved[1] > 1e-5 > 3e-6 > moved[[0, 2, 3]].max()


def test_what_is_written_into_a_part_of_a_value_follows_the_value() -> None:
    def padded(x: torch.Tensor) -> torch.Tensor:
        around = torch.zeros(6, 8)
        around[1:5, 1:7] = x * 3.0
        return around

    # The border is constant; nobody looks which part of a value was written.
    assert spread(Of(padded), X)[1:5, 1:7].max() >= 2**-24
    # What reads it is rounded as what reads any value.
    assert spread(Of(lambda x: padded(x) @ padded(x).T), X).max() >= 2**-24


def test_constants_do_not_move() -> None:
    model = Of(lambda x, weight: x @ through_codes(weight * 0.3), weight=torch.ones(6, 2))
    plain = Of(lambda x, weight: x @ weight, weight=through_codes(torch.ones(6, 2) * 0.3))
    assert spread(model, X).tolist() == spread(plain, X).tolist()


def test_a_constant_output_is_a_code_off_where_it_is_quantized() -> None:
    model = Of(lambda x, weight: through_codes(weight), weight=torch.ones(3))
    assert spread(model, X, scale=SCALE).tolist() == [SCALE] * 3
    assert not spread(model, X).any()


def test_every_run_begins_with_the_states_that_the_model_has() -> None:
    def counting(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        state += 1.0
        return x * state

    model = Of(counting, state=torch.zeros(1))
    assert spread(model, X).max() < 2**-20
    assert dict(model.named_buffers())["state"].item() == 1.0, "by the call that gives what is expected"


def test_conditions_and_loops_are_followed() -> None:
    class Chooses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * 3.0, lambda x: torch.exp(x), (x,))  # type: ignore[no-any-return]

    for inputs in (X + 1.0, X - 1.0):
        program = torch.export.export(Chooses(), (inputs,), strict=True)
        assert 2**-25 < spread(program.module(), inputs).max() < 2**-19


def test_an_outcome_that_a_tie_decides_may_be_any() -> None:
    nearly_equal = torch.tensor([1.0, 1.0 + 2**-23, 0.0])
    assert spread(Of(lambda x: (x * 3.0).argmax() + 1), nearly_equal) > 0


def test_what_is_no_number_is_not_compared_and_what_becomes_none_may_be_anything() -> None:
    infinite = torch.tensor([float("-inf"), 0.0])
    assert np.isfinite(spread(Of(lambda x: torch.softmax(x * 1.0, dim=0)), infinite)).all()
    # Zero, and below it if the product is rounded down.
    assert np.isinf(spread(Of(lambda x: torch.sqrt(x * 3.0 - 3.0) + 1.0), torch.ones(1))).all()


def test_the_same_is_measured_every_time() -> None:
    model = Of(lambda x: through_codes(torch.softmax(x, dim=1)) @ x.T)
    assert spread(model, X).tobytes() == spread(model, X).tobytes()


# float8: both dtypes have 16 and a neighbour whose middle is 17 or 18.
MIDDLES = [(torch.float8_e4m3fn, 1.0), (torch.float8_e5m2, 2.0)]


def spread_of_float8(
    function: Callable[..., torch.Tensor], dtype: torch.dtype, *inputs: list[list[float]]
) -> np.ndarray:
    with Float8InFloat32():
        given = [torch.tensor(x).to(dtype) for x in inputs]
        (found,) = moved(Of(function), [given], (), np.random.default_rng(0), {}).spreads
    return found.array()


@pytest.mark.parametrize(("dtype", "half"), MIDDLES, ids=str)
@pytest.mark.parametrize("added", [[0.0], [2.0**-6]], ids=["all", "not all"])
def test_a_sum_of_float8_in_the_middle_of_two_moves_if_float16_does_not_hold_its_terms(
    added: list[float], dtype: torch.dtype, half: float
) -> None:
    one, other = [[16.0, half, *added]], [[1.0], [1.0], added]
    moved = spread_of_float8(torch.mm, dtype, one, other)
    assert moved == (2 * half if added[0] else TOUCHED)
    beside = spread_of_float8(torch.addmm, dtype, [[half]], [[16.0, *added]], [[1.0], added])
    assert beside == (2 * half if added[0] else TOUCHED)


@pytest.mark.parametrize(("dtype", "half"), MIDDLES, ids=str)
def test_what_is_added_to_a_product_of_float8_is_rounded_with_it(dtype: torch.dtype, half: float) -> None:
    # Rounded before, the product would be 16, and the sum in the middle.
    moved = spread_of_float8(torch.addmm, dtype, [[half]], [[16.0, half / 2]], [[1.0], [1.0]])
    assert moved == TOUCHED


@pytest.mark.parametrize(
    ("dtype", "two", "three", "step"),
    [
        (torch.float8_e4m3fn, [16.0, 18.0], [15.0, 16.0, 20.0], 2.0),
        (torch.float8_e5m2, [16.0, 20.0], [14.0, 20.0, 20.0], 4.0),
    ],
    ids=str,
)
def test_a_mean_of_float8_moves_if_its_number_of_elements_is_no_power_of_two(
    dtype: torch.dtype, two: list[float], three: list[float], step: float
) -> None:
    def mean(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.avg_pool2d(x[None, None], (1, x.shape[1]))

    assert spread_of_float8(mean, dtype, [two]) == TOUCHED
    assert spread_of_float8(mean, dtype, [three]) == step

    def of_windows(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.avg_pool2d(x[None, None], (1, 3), stride=1)[..., :1]

    def adaptive(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.adaptive_avg_pool2d(x[None, None], (1, 2))

    # As many outputs as inputs say nothing of how many terms each has.
    assert spread_of_float8(of_windows, dtype, [three * 2]) == step
    assert (spread_of_float8(adaptive, dtype, [three * 2]) == step).all()


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_a_cast_to_float8_moves_only_with_what_it_casts(dtype: torch.dtype) -> None:
    def cast(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32).to(dtype)

    assert not (spread_of_float8(cast, dtype, [[0.5, 1.0, 1.5]]) > TOUCHED).any()


# What is approximated, in narrow types


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize(
    "function",
    [torch.exp, torch.sigmoid, torch.tanh, torch.sin, torch.erf, torch.rsqrt, lambda x: x.pow(2.5)],
    ids=["exp", "sigmoid", "tanh", "sin", "erf", "rsqrt", "pow"],
)
def test_what_is_approximated_may_be_off_by_a_unit_however_small_or_large_it_is(
    function: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    x = torch.cat((torch.linspace(-10.9, -9.0, 8), torch.linspace(9.0, 10.9, 8), torch.full((1,), 2.0**-14)))
    x = (x.abs() if function is torch.rsqrt else x).to(dtype)
    made = function(x)
    known = made.isfinite() & (made != 0)
    far = torch.from_numpy(
        moved(Of(function), [[x]], (), np.random.default_rng(0), {}).spreads[0].array().copy()
    )
    limits = torch.finfo(dtype)
    exponents = made.double().abs().clamp(min=limits.smallest_normal).log2().floor()
    units = limits.eps * torch.exp2(exponents)
    assert (far[known] >= units[known] * 0.5).all()
    # This far, and not much further.
    assert (far[known] <= units[known] * 9.0).all()


def test_xnnpack_is_off_by_as_much_as_its_own_tests_allow_for_exp_of_float16() -> None:
    x = torch.linspace(1.0, 10.9, 16).half()
    exact = moved(Of(torch.exp), [[x]], (), np.random.default_rng(0), {}).spreads[0].array()
    of_xnnpack = moved(Of(torch.exp), [[x]], (), np.random.default_rng(0), APPROXIMATIONS[XNNPACK])
    assert (of_xnnpack.spreads[0].array() >= 3.0 * exact).all()
    assert not (APPROXIMATIONS[XNNPACK]["exp"](X) != 0.0).any()


# What eager has no value for


@pytest.mark.parametrize(
    ("function", "inputs", "said"),
    [
        (
            lambda x, n: x << n,
            (torch.arange(3, dtype=torch.int32), torch.tensor([1, 31, 32], dtype=torch.int32)),
            "shifts by bits",
        ),
        (lambda x: x >> 9, (torch.arange(3, dtype=torch.int8),), "shifts by bits"),
        (lambda x, n: x >> n, (torch.arange(3), torch.tensor([1, -1, 2])), "shifts by bits"),
        (lambda x: x.to(torch.int8), (torch.tensor([1.0, 128.0]),), "casts what int8 cannot hold"),
        (lambda x: x.int(), (torch.tensor([1.0, torch.nan]),), "casts what int32 cannot hold"),
        (
            lambda x: torch.zeros(2, dtype=torch.int16).copy_(x),
            (torch.tensor([1e6, 0.0]),),
            "casts what int16",
        ),
    ],
    ids=["left", "narrow", "negative", "float", "nan", "copy"],
)
def test_what_torch_leaves_open_is_noticed(
    function: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...], said: str
) -> None:
    found = moved(Of(function), [inputs], (), np.random.default_rng(0), {}).undefined
    assert len(found) == 1
    assert said in found[0]
    assert found[0].startswith("aten.")


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, n: x << n, (torch.arange(3).int(), torch.tensor([0, 31, 7]).int())),
        # Of int32 by int64, in int64.
        (lambda x, n: x << n, (torch.arange(3).int(), torch.tensor([0, 63, 32]))),
        (lambda x: x.to(torch.int8), (torch.tensor([-128.9, 127.9, -0.0]),)),
        (lambda x: x.long(), (torch.tensor([-(2.0**63), 2.0**62]),)),
        (lambda x: x.bool(), (torch.tensor([torch.nan, 0.0]),)),
        (lambda x: x.half(), (torch.tensor([1e9, 0.0]),)),
    ],
    ids=["shift", "wide shift", "cast", "long", "bool", "half"],
)
def test_what_torch_defines_is_not_noticed(
    function: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...]
) -> None:
    assert not moved(Of(function), [inputs], (), np.random.default_rng(0), {}).undefined


def test_what_leaves_its_domain_is_noticed_though_it_is_not_chosen() -> None:
    def beyond(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> tuple[str, ...]:
        return moved(Of(function), [inputs], (), np.random.default_rng(0), {}).beyond

    assert beyond(lambda x: torch.where(x > 0, x.pow(0.5), 0.0 * x), X)[0].startswith("aten.pow")
    assert not beyond(lambda x: x.pow(3.0), X)
    assert not beyond(lambda x: x.masked_fill(x > 0, -torch.inf).softmax(1), X - 1.0)
    large = torch.tensor([2**31 - 1], dtype=torch.int32)
    assert beyond(lambda x: x + 1, large) == ("aten.add.Tensor wraps around",)
    assert not beyond(lambda x: x - 1, large)


UNARY = (
    "expm1",
    "log1p",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "asin",
    "acos",
    "atan",
    "exp",
    "tanh",
    "sqrt",
)
#: Of each dtype the values at which arithmetic in it is not that of numbers, and others.
NARROW = {
    torch.bool: [True, False],
    torch.uint8: [1, 20, 16],
    torch.int8: [1, 20, 16, -20],
    torch.int16: [1, 20, -20],
    torch.int32: [1, 20, -20],
}


@pytest.mark.parametrize("backend", [TOSA, XNNPACK])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_what_is_promoted_to_float_is_moved_as_what_is_float(dtype: torch.dtype, backend: str) -> None:
    """Booleans cannot be negated; 20 * 20 is no integer of eight bits, and -1 none without a sign."""
    given = torch.tensor(NARROW[dtype], dtype=dtype)

    def spreads(name: str, is_float: bool) -> object:
        function = getattr(torch, name)
        finite = given[function(given).isfinite()]
        x = finite.float() if is_float else finite
        return moved(Of(function), [[x]], (0.0,), np.random.default_rng(0), APPROXIMATIONS[backend]).spreads

    assert [name for name in UNARY if spreads(name, False) != spreads(name, True)] == []


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mean(dtype=torch.float32),
        lambda x: x.sum(dtype=torch.float32),
        lambda x: x.cumsum(0, dtype=torch.float32),
    ],
    ids=["mean", "sum", "cumsum"],
)
def test_sums_of_what_is_promoted_to_float_are_moved(
    dtype: torch.dtype, function: Callable[..., torch.Tensor]
) -> None:
    found = spread(Of(function), torch.tensor(NARROW[dtype], dtype=dtype))
    assert 0.0 < found.max() < 1e-5


@pytest.mark.parametrize(
    "state",
    [
        torch.tensor([[1.0], [2.0]]).expand(2, 3),
        torch.tensor(2.0).expand(2, 3),
        torch.arange(4.0).unfold(0, 3, 1),
        torch.tensor([[1.0], [2.0]]).expand(2, 3).t().contiguous().t(),
    ],
    ids=["of a column", "of a number", "of windows", "no overlap"],
)
def test_buffers_whose_elements_share_memory_are_left_as_they_are(state: torch.Tensor) -> None:
    model = Of(lambda x, state: x.exp() * state, state=state)
    before = state.clone()
    assert 0.0 < spread(model, torch.linspace(-1.0, 1.0, 6).reshape(2, 3)).max() < 1e-6
    assert torch.equal(model.state, before)
    assert model.state.stride() == state.stride()


def test_values_are_written_to_all_that_share_memory() -> None:
    column = torch.tensor([[1.0], [2.0]])
    overwrite(column.expand(2, 3), torch.tensor([[3.0] * 3, [4.0] * 3]))
    assert column.flatten().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("size", [(2, 3, 6), (1, 1, 1), (2, 2, 5)], ids=str)
@pytest.mark.parametrize("indices", [False, True], ids=["", "indices"])
def test_pools_of_maxima_are_exact_whatever_their_sizes(size: tuple[int, ...], indices: bool) -> None:
    """Torch 2.14 takes those apart whose sizes are multiples, and refuses others by NotImplemented."""
    given = torch.linspace(-1.0, 1.0, 3 * 4 * 4 * 6).reshape(3, 4, 4, 6)
    pool = Of(lambda x: torch.nn.functional.adaptive_max_pool3d(x, size, indices)[0 if indices else ...])
    assert spread(pool, given).max() <= TOUCHED


def test_what_a_decomposition_refuses_runs_as_it_is_and_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch 2.14 refuses adaptive pools; no other operator of the table is refused on every release."""
    given = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
    monkeypatch.setitem(
        decomposition_table, torch.ops.aten.var_mean.correction, lambda *_, **__: NotImplemented
    )
    found = moved(
        Of(lambda x: torch.var_mean(x, dim=1)),
        [[given]],
        (0.0, 0.0),
        np.random.default_rng(0),
        {},  # type: ignore[arg-type,return-value]
    )
    assert len(found.spreads) == 2
    for spread_of in found.spreads:
        assert 0.0 < spread_of.array().max() < 1e-5
