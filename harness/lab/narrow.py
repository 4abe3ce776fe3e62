"""``python -m lab narrow``: how far the runtime's kernels of bfloat16 and float16 are off, for few and many terms."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.exporting import compat
from executorch_goldens.exporting.numerics import narrow
from executorch_goldens.files import durable
from lab import REPOSITORY, markdown
from lab.pages import Part

TABLE = REPOSITORY / "harness/executorch_goldens/exporting/numerics/narrow.toml"
#: Terms that are added up.
FEW, MANY = 64, 1024


def models() -> Mapping[str, tuple[Any, Any]]:
    """Return by operator its function, and the shapes of what it takes for a number of terms."""
    import torch
    from torch.nn import functional as F  # noqa: N812 - as everyone names it

    return {
        "mm": (torch.mm, lambda n: [(4, n), (n, 8)]),
        "bmm": (torch.bmm, lambda n: [(2, 4, n), (2, n, 8)]),
        "addmm": (torch.addmm, lambda n: [(8,), (4, n), (n, 8)]),
        "convolution": (F.conv2d, lambda n: [(1, n // 4, 6, 6), (4, n // 4, 2, 2)]),
        "sum": (lambda x: x.sum(1), lambda n: [(32, n)]),
        "mean": (lambda x: x.mean(1), lambda n: [(32, n)]),
        "var": (lambda x: x.var(1), lambda n: [(32, n)]),
        "prod": (lambda x: (x.sign() * 0.1171875 + 1.0078125).prod(1), lambda n: [(32, n)]),
        "cumsum": (lambda x: x.cumsum(1), lambda n: [(32, n)]),
        "avg_pool2d": (lambda x: F.avg_pool2d(x, (4, x.shape[-1] // 2)), lambda n: [(1, 4, 8, n // 2)]),
        "_adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), lambda n: [(1, 4, 8, n // 2)]),
        "_softmax": (lambda x: x.softmax(1), lambda n: [(32, n)]),
        "_log_softmax": (lambda x: x.log_softmax(1), lambda n: [(32, n)]),
        "native_layer_norm": (lambda x: F.layer_norm(x, x.shape[1:]), lambda n: [(32, n)]),
        "native_group_norm": (lambda x: F.group_norm(x, 2), lambda n: [(4, 4, n // 2)]),
        "_native_batch_norm_legit_no_training": (
            lambda x, mean, var: F.batch_norm(x, mean, var.abs().clamp(0.5)),
            lambda n: [(4, n), (n,), (n,)],
        ),
        "upsample_bilinear2d": (
            lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
            lambda n: [(1, 1, 8, n // 8)],
        ),
        "grid_sampler_2d": (
            lambda x, at: F.grid_sample(x, at.clamp(-1, 1), align_corners=False),
            lambda n: [(1, 4, 8, n // 8), (1, 8, 8, 2)],
        ),
        "gelu": (F.gelu, lambda n: [(n,)]),
        "elu": (F.elu, lambda n: [(n,)]),
        "sigmoid": (lambda x: x.sigmoid(), lambda n: [(n,)]),
        "tanh": (lambda x: x.tanh(), lambda n: [(n,)]),
        "exp": (lambda x: x.exp(), lambda n: [(n,)]),
        "log": (lambda x: x.abs().log(), lambda n: [(n,)]),
        "sin": (lambda x: x.sin(), lambda n: [(n,)]),
        "sqrt": (lambda x: x.abs().sqrt(), lambda n: [(n,)]),
        "rsqrt": (lambda x: x.abs().rsqrt(), lambda n: [(n,)]),
        "pow": (lambda x: x.abs() ** 1.5, lambda n: [(n,)]),
        "add": (lambda x, y: torch.add(x, y, alpha=0.5), lambda n: [(n,), (n,)]),
        "mul": (torch.mul, lambda n: [(n,), (n,)]),
        "div": (lambda x, y: x / y.abs().clamp(0.5), lambda n: [(n,), (n,)]),
    }


def errors(names: Sequence[str], terms: int, dtype: Any) -> Iterator[tuple[str, float]]:
    """Yield by operator the error of its kernel, in units in the last place of the largest value.

    What eager gives in float32, and rounds once, is right. All operators are one program, halved where that fails.
    """
    import torch
    from executorch.exir import to_edge
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    known = models()
    shapes = [known[name][1](terms) for name in names]
    generator = torch.Generator().manual_seed(terms)
    given = [torch.randn(shape, generator=generator).to(dtype) for each in shapes for shape in each]

    class All(torch.nn.Module):
        def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            left = iter(given)
            return tuple(
                known[name][0](*(next(left) for _ in each)) for name, each in zip(names, shapes, strict=True)
            )

    try:
        pte = to_edge(torch.export.export(All(), tuple(given))).to_executorch().buffer
        made = _load_for_executorch_from_buffer(pte).run_method("forward", tuple(given))
    except Exception as error:  # whatever a release raises that lacks a kernel
        if len(names) == 1:
            print(f"{names[0]}: no {dtype}: {(str(error).splitlines() or [''])[0]}")
            return
        half = len(names) // 2
        yield from errors(names[:half], terms, dtype)
        yield from errors(names[half:], terms, dtype)
        return
    for name, got, right in zip(names, made, All()(*(x.float() for x in given)), strict=True):
        unit = 2.0 ** math.floor(math.log2(float(right.abs().max()))) * torch.finfo(dtype).eps
        yield name, float((got.float() - right).abs().max()) / unit


def measured() -> dict[str, list[float]]:
    """Return the larger error of the two types, by operator, for `FEW` and for `MANY` terms."""
    import torch

    names = [*models()]
    columns = []
    for terms in (FEW, MANY):
        found = [dict(errors(names, terms, dtype)) for dtype in (torch.bfloat16, torch.float16)]
        columns.append(
            {n: max(each[n] for each in found if n in each) for n in names if any(n in e for e in found)}
        )
    return {name: [round(column[name], 1) for column in columns] for name in names if name in columns[-1]}


def written(table: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the text of `TABLE`."""
    lines = [
        "# Errors of the runtime's kernels of bfloat16 and float16, the larger of both, by release: in units in the",
        f"# last place of the largest value, for {FEW} and {MANY} terms. Written by `python -m lab narrow --update`.",
    ]
    for release, errors in sorted(table.items()):
        lines += ["", f'["{release}"]', *(f"{name} = {list(each)}" for name, each in errors.items())]
    return "\n".join(lines) + "\n"


def lines() -> Iterator[str]:
    """Yield a table of the operators whose error grows with the number of terms on some release."""
    table = narrow.measurements()
    grows = dict.fromkeys(
        name for found in table.values() for name, each in found.items() if each[-1] > narrow.ROUNDED_ONCE
    )
    yield from markdown.head(("operator", *table))
    for name in grows:
        cells = (table[release].get(name) for release in table)
        yield markdown.row(
            (f"`{name}`", *(" to ".join(map(str, each)) if each else "none" for each in cells))
        )


def parts() -> Iterator[Part]:
    """Yield the table of findings/narrow-sums.md."""
    yield Part("findings/narrow-sums.md", "narrow", lines)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("narrow", description=__doc__)
    parser.add_argument(
        "--update", action="store_true", help="write what the installed release gives to the table"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what differs from the table; return 0 where nothing does, or it was written, 1 otherwise."""
    release = compat.installed_release()
    found = measured()
    table = dict(narrow.measurements())
    if options.update:
        durable.replace(TABLE, written({**table, release: found}))
        return SAME
    for name in {**found, **table.get(release, {})}:
        was, now = table.get(release, {}).get(name), found.get(name)
        if was != now:
            print(f"{name}: {was} in the table, {now} measured")
    return SAME if table.get(release) == found else DIFFERENT
