"""Language models as they ship: whole programs, with a cache that is their state, in weights of eight and four bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from executorch_goldens import Build, case

if TYPE_CHECKING:
    from executorch.exir import ExecutorchProgramManager

#: Weights that share a scale: the fewest that XNNPACK takes.
GROUP = 32
#: The SQNR, in dB, that four-bit weights which nobody trained for leave.
FOUR_BITS = 10
#: How far a token's activations move an output when one of their codes is rounded to the next, in 8 bits each.
FAR = 0.25


class Attention(nn.Module):
    """Attention of one step, or of a prompt, to all steps before it, whose keys and values it keeps."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.length = heads, length
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("keys", torch.zeros(self.cache(width)))
        self.register_buffer("values", torch.zeros(self.cache(width)))

    def cache(self, width: int) -> tuple[int, ...]:
        return 1, self.heads, self.length, width // self.heads

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        steps, width = x.shape[1:]
        packed = self.packed(x).view(1, steps, 3, self.heads, width // self.heads)
        query, key, value = packed.permute(2, 0, 3, 1, 4).unbind(0)
        self.keys.index_copy_(2, at, key)
        self.values.index_copy_(2, at, value)
        seen = torch.arange(self.length).unsqueeze(0) <= at.unsqueeze(1)
        scores = query @ self.keys.transpose(2, 3) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(~seen, -1e4).softmax(-1)
        return self.out((scores @ self.values).transpose(1, 2).reshape(1, steps, width))  # type: ignore[no-any-return]


class CustomAttention(Attention):
    """The same by the operators that ExecuTorch brings for it, which write the cache in place."""

    def cache(self, width: int) -> tuple[int, ...]:
        return 1, self.length, self.heads, width // self.heads

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        steps, width = x.shape[1:]
        query, key, value = self.packed(x).view(1, steps, 3, self.heads, width // self.heads).unbind(2)
        start = at[0].item()
        torch._check(start >= 0)  # type: ignore[no-untyped-call]
        torch._check(start + steps <= self.length)  # type: ignore[no-untyped-call]
        torch.ops.llama.update_cache(key, self.keys, start)
        torch.ops.llama.update_cache(value, self.values, start)
        attended = torch.ops.llama.custom_sdpa(
            query, self.keys, self.values, start, None, 0.0, True, (width // self.heads) ** -0.5
        )
        return self.out(attended.view(1, steps, width))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """A language model of one layer: tokens and their places in, logits out."""

    def __init__(
        self, attention: type[Attention] = Attention, tokens: int = 32, width: int = 64, length: int = 8
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = attention(width, heads=2, length=length)
        self.gate, self.up = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.down, self.logits = nn.Linear(width, width, bias=False), nn.Linear(width, tokens, bias=False)

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        x = x + self.attention(self.norms[0](x), at)
        y = self.norms[1](x)
        x = x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))
        return self.logits(self.norms[2](x))  # type: ignore[no-any-return]


class Attending(nn.Module):
    """What a decoder has around its attention at least: an embedding before it, logits after it."""

    def __init__(
        self, attention: type[Attention], tokens: int = 32, width: int = 64, length: int = 8
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.attention = attention(width, heads=2, length=length)
        self.logits = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self.logits(self.attention(self.embedding(tokens), at))  # type: ignore[no-any-return]


class Last(nn.Module):
    """The logits of the last token alone, as a prefill gives them."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self.decoder(tokens, at)[:, -1:]  # type: ignore[no-any-return]


class Every(Last):
    """The logits of every token."""

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self.decoder(tokens, at)  # type: ignore[no-any-return]


def in_8da4w(model: nn.Module) -> nn.Module:
    """Quantize the weights of linear layers to int4 in groups, in place; return the model."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    int4: torch.dtype = torch.int4  # type: ignore[attr-defined]
    quantize_(
        model,
        Int8DynamicActivationIntxWeightConfig(weight_dtype=int4, weight_granularity=PerGroup(GROUP)),
    )
    return model


def with_quantized_embeddings(model: nn.Module, bits: int = 4, by_rows: bool = False) -> nn.Module:
    """Quantize embeddings, in groups of a row or by rows, in place; return the model."""
    from torchao.quantization import IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    granularity = PerAxis(0) if by_rows else PerGroup(GROUP)
    config = IntxWeightOnlyConfig(weight_dtype=getattr(torch, f"int{bits}"), granularity=granularity)
    quantize_(model, config, lambda module, name: isinstance(module, nn.Embedding))
    return model


class Embeddings(nn.Module):
    """A layer behind pairs of tables of embeddings, the second of any float type, that are read at the same places."""

    def __init__(self, pairs: int, rows: int = 8, width: int = 2 * GROUP) -> None:
        super().__init__()
        self.pairs = nn.ModuleList(
            nn.ModuleList(nn.Embedding(rows, width) for _ in range(2)) for _ in range(pairs)
        )
        self.layer = nn.Linear(width, 4)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.layer(table(rows).float()) for pair in self.in_pairs() for table in pair)

    def in_pairs(self) -> list[nn.ModuleList]:
        return [cast(nn.ModuleList, pair) for pair in self.pairs]


def lowered(methods: Mapping[str, tuple[nn.Module, tuple[Any, ...]]]) -> ExecutorchProgramManager:
    """Lower methods that share weights and cache: parts quantized at run time first, then the rest."""
    # A run that takes everything from the store needs none of these, which take seconds to import.
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
        XnnpackPartitioner,
    )
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from executorch.exir.passes import MemoryPlanningPass

    programs = {
        name: torch.export.export(model, inputs, strict=True) for name, (model, inputs) in methods.items()
    }
    partitioners = {
        name: [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()] for name in programs
    }
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge_transform_and_lower(programs, partitioner=partitioners, compile_config=config)
    plan = MemoryPlanningPass(alloc_graph_input=False, share_mutable_buffers=len(programs) > 1)
    return edge.to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=plan, do_quant_fusion_and_const_prop=True)
    )


#: A token and its place.
TOKEN = (torch.tensor([[3]]), torch.tensor([0]))


@case(
    guards="a decoder in 8da4w by two partitioners, its cache a state of the program",
    imprecise={"built": FAR},
    sqnr={"built": FOUR_BITS},
)
def decoder_8da4w(build: Build) -> ExecutorchProgramManager:
    model = build.method(build.data.fill(Decoder()), TOKEN)
    return lowered({"forward": (build.quantized(in_8da4w(model)), TOKEN)})


def in_four_bits(build: Build, decoder: nn.Module) -> ExecutorchProgramManager:
    model = build.method(build.data.fill(decoder), TOKEN)
    quantized = build.quantized(in_8da4w(with_quantized_embeddings(model)))
    return lowered({"forward": (quantized, TOKEN)})


@case(
    guards="a decoder whose embedding has four-bit groups as well, fused into a kernel of its own",
    imprecise={"built": FAR},
    sqnr={"built": FOUR_BITS},
)
def decoder_int4_embedding(build: Build) -> ExecutorchProgramManager:
    return in_four_bits(build, Decoder())


@case(
    guards="embeddings in two, four and eight bits, by rows and in groups, become the kernels of their width and dtype",
    sqnr={"built": 5},
)
def quantized_embeddings(build: Build) -> ExecutorchProgramManager:
    rows = (torch.tensor([[3, 0, 7]]),)
    widths = (2, 4, 8)
    model = Embeddings(len(widths))
    build.data.fill(model)
    for pair in model.in_pairs():
        pair[1].half()
    build.method(model, rows)
    for pair, bits in zip(model.in_pairs(), widths, strict=True):
        with_quantized_embeddings(pair, bits, by_rows=bits == 8)
    return lowered({"forward": (build.quantized(model), rows)})


@case(
    guards="the custom attention of language models finds what it wrote into its cache",
    imprecise={"built": FAR},
    sqnr={"built": FOUR_BITS},
)
def decoder_custom_sdpa(build: Build) -> ExecutorchProgramManager:
    # Registers torch.ops.llama.
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401

    return in_four_bits(build, Decoder(CustomAttention))


@case(
    guards="the custom attention alone, between an embedding and logits in four bits",
    imprecise={"built": FAR},
    sqnr={"built": FOUR_BITS},
)
def custom_attention(build: Build) -> ExecutorchProgramManager:
    # As above.
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401

    return in_four_bits(build, Attending(CustomAttention))


@case(guards="a prefill and its decodes, methods of one program, share weights and cache")
def prefill_and_decode(build: Build) -> ExecutorchProgramManager:
    decoder = build.data.fill(Decoder())
    prompt = (torch.tensor([[5, 1, 4, 7]]), torch.arange(4))
    token = (torch.tensor([[2]]), torch.tensor([4]))
    methods = {
        "prefill": (build.method(Last(decoder), prompt, "prefill"), prompt),
        "decode": (build.method(Every(decoder), token, "decode"), token),
    }
    build.in_order("prefill", "decode")
    return lowered(methods)
