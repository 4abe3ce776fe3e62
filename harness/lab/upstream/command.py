"""``python -m lab upstream``: what upstream has reported, and on which releases the zoo shows it, from goldens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_goldens import releases
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import prints_table
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.causes import cause


@dataclass(frozen=True)
class Upstream:
    """Threads of ExecuTorch's tracker about one defect, and where the zoo would show it.

    Attributes
    ----------
    numbers
        Of issues and pull requests in pytorch/executorch.
    what
        The defect, in a line.
    cells
        ``target/case``, each enough to show it.
    sign
        What stands in the pass, type or message of a failure, or in the reason of a known defect, that is this one;
        empty where any wrong program and any failure is.
    """

    numbers: tuple[int, ...]
    what: str
    cells: tuple[str, ...]
    sign: str = ""


#: Beside the four issues, for which `nox -s lab -- stock` makes the table.
UPSTREAM = (
    Upstream((11781,), "equal values of different dtypes fuse", ("tosa-fp/equal-values-two-dtypes",)),
    Upstream(
        (15826, 17138, 17276, 18486, 21730),
        "a delegate's outputs come in another order than the graph's",
        tuple(
            f"tosa-{t}/{case}"
            for t in ("fp", "int")
            for case in ("heads-in-another-order", "pieces-backwards")
        ),
    ),
    Upstream(
        (17166,), "a product with a fused ReLU is serialized wrongly", ("xnnpack-fp32/rectified-product",)
    ),
    Upstream((18191,), "a partition becomes a cycle", ("tosa-int/state-beside-its-update",), "cycle"),
    Upstream(
        (18397,),
        "partitions of a shared dynamic input make a cycle",
        ("xnnpack-dynamic/shared-dynamic-memory",),
    ),
    Upstream(
        (18944,),
        "ChannelsLastTaggedReshapePass fails on list arguments",
        ("xnnpack-dynamic/dynamic-conv-of-cat",),
    ),
    Upstream(
        (18999,), "a change from int8 to int16 is folded through cat", ("tosa-int16/cat-int8-to-int16",)
    ),
    Upstream(
        (19153,),
        "a channels-last convolution with one channel fails at run time",
        ("xnnpack-fp32/one-channel-channels-last", "xnnpack-int8/one-channel-channels-last"),
        "19153",
    ),
    Upstream((19966,), "int16 constants are left unquantized", ("tosa-int16/int16-constant-terms",)),
    Upstream(
        (20376, 21637),
        "lowering succeeds, but NHWC and NCHW are mixed",
        tuple(
            f"{t}/{case}"
            for t in ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")
            for case in ("channel-factors-beside-conv", "two-layouts-meet")
        ),
    ),
    Upstream(
        (20517,),
        "a quantized padding='same' with an even kernel is refused by the runtime",
        ("xnnpack-int8/same-padding-even-kernel",),
        "20517",
    ),
    Upstream(
        (22966,),
        "the pad of padding='same' leaves an int8 tensor undequantized",
        ("tosa-int/same-padding-even-kernel",),
        "22966",
    ),
    Upstream(
        (21041, 21106, 21380),
        "equal constants merge, then the RESCALEs of their users do",
        ("tosa-int/equal-operand-and-bias",),
    ),
    Upstream(
        (21831,),
        "a quantized slice whose output scale differs from its input's is refused",
        ("xnnpack-int8/sliced-halves",),
        "21831",
    ),
    Upstream(
        (22436,),
        "a declared output that no operator writes",
        ("tosa-fp/identity-permute", "tosa-int/identity-permute", "tosa-fp/written-clone"),
        "22436",
    ),
    Upstream(
        (22798,),
        "a constant that two partitions share within lists fails to lower",
        ("tosa-fp/constant-in-two-cats", "xnnpack-fp32/constant-in-two-cats"),
    ),
)


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "upstream",
        description="Print a Markdown table: upstream's threads and the four issues, release by release.",
    )
    prints_table(parser, table)


def table(root: Path) -> Iterator[str]:
    """Yield the Markdown table."""
    matrix = releases.load()
    yield f"| upstream | defect | cells | {' | '.join(matrix.releases)} |"
    yield f"|---|---|---|{'---|' * len(matrix.releases)}"
    for entry in UPSTREAM:
        numbers = " ".join(f"#{number}" for number in entry.numbers)
        states = [state(root / version, release, entry) for version, release in matrix.releases.items()]
        yield f"| {numbers} | {entry.what} | {', '.join(entry.cells)} | {' | '.join(states)} |"


def state(root: Path, release: releases.Release, entry: Upstream) -> str:
    """Return whether the goldens of a release show a defect: ``shows``, ``no``, or why they cannot say."""
    found = [cell_state(root, release, name, entry.sign) for name in entry.cells]
    for prefix in ("shows", "other"):
        if chosen := sorted({text for text in found if text.startswith(prefix)}):
            return "; ".join(chosen)
    return "no" if "no" in found else "; ".join(sorted(set(found)))


def cell_state(root: Path, release: releases.Release, name: str, sign: str) -> str:
    """Return what one cell says."""
    cell = Cell(*name.split("/"))
    if cell.target in release.unsupported:
        return f"cannot be reached: no {cell.target}"
    if defect := release.known.get(name):
        return f"shows ({defect.verdict})" if sign in defect.reason else f"other: {defect.reason}"
    texts = golden.read(golden.directory(root, cell))
    if texts is None:
        return "not recorded"
    if golden.FAILURE not in texts:
        return "no"
    if sign in texts[golden.FAILURE]:
        return "shows (fails)"
    return f"other: {cause(texts[golden.FAILURE]).where} fails"
