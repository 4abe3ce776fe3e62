"""``goldens show``: a payload, a program or a cell as text."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from executorch_goldens import plugins
from executorch_goldens.cli import SAME
from executorch_goldens.commands.payload_files import (
    STANDARD,
    add_schemas,
    decode_named,
    is_cell,
    read_payload,
)
from executorch_goldens.decode import Decoded
from executorch_goldens.diff.brief import brief
from executorch_goldens.errors import CommandError
from executorch_goldens.goldens.outline import outline
from executorch_goldens.goldens.record import CONTENTS, FAILURE, GRAPH, MANIFEST, Record
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import Forms, share

#: The forms of the command, and the options of each.
FILE, TENSOR, CELL = "a file", "--tensor", "a cell"
OPTIONS = {
    FILE: ("--short", "--schemas"),
    TENSOR: (TENSOR, "--output", "--schemas"),
    CELL: ("--short", "--release", "--sweeps", "--goldens"),
}
EXAMPLES = """\
examples:
  goldens show model.pte
  goldens show --short payload.tosa
  goldens show payload.tosa --tensor conv_weight --output weight.npy
  goldens show - --schemas envs/1.4.1/lib/python3.11/site-packages < delegate.bin
  goldens show tosa-int/cat-h-v --release 1.2.0
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "show",
        description="Print a TOSA payload, an XNNPACK payload or a .pte as text: its kind is recognized by its bytes. "
        "For a cell, print its golden, or a newer result of a run.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", metavar="FILE|TARGET/CASE", help="the payload, - for standard input; or the cell"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--short", action="store_true", help="print the operators only, and the constants after them"
    )
    form.add_argument(TENSOR, metavar="NAME", help="write one constant as .npy instead")
    parser.add_argument(
        "--output", metavar="FILE", help="where --tensor writes; NAME.npy by default, - for standard output"
    )
    add_schemas(parser)
    cell = parser.add_argument_group("of a cell")
    share(
        cell.add_argument,
        "--release",
        help="on this release (default: the installed one, else the newest)",
    )
    share(cell.add_argument, "--sweeps")
    share(cell.add_argument, "--goldens")
    further = plugins.forms("show")
    for each in further.values():
        each.add_to(parser)
    options = OPTIONS | {name: each.OPTIONS for name, each in further.items()}
    parser.set_defaults(run=run, forms=Forms(options, form_of))


def form_of(arguments: argparse.Namespace) -> str:
    """Return which form applies: a name of a cell's form that is neither a file nor in a folder is a cell."""
    for name, form in plugins.forms("show").items():
        if form.takes(arguments):
            return name
    if arguments.tensor is not None:
        return TENSOR
    return CELL if is_cell(arguments.what) else FILE


def run(arguments: argparse.Namespace) -> int:
    """Decode a file and print it, or print a cell."""
    form = form_of(arguments)
    if form in (further := plugins.forms("show")):
        code: int = further[form].run(arguments)
        return code
    if form == CELL:
        print("\n".join(_of_cell(arguments)))
        return SAME
    decoded = decode_named(read_payload(arguments.what), arguments.what, arguments.schemas)
    if arguments.tensor is not None:
        _write_tensor(decoded, arguments)
    elif arguments.short:
        print("\n".join(brief(outline(decoded))))
    else:
        sys.stdout.writelines(line + "\n" for line in decoded.lines())
    return SAME


def _of_cell(arguments: argparse.Namespace) -> Iterator[str]:
    # A payload does not wait for what reads goldens and runs.
    from executorch_goldens.artifact import Cell
    from executorch_goldens.results import proposals

    repository = config.load()
    cell = Cell(*arguments.what.split("/"))
    goldens, sweeps = arguments.goldens or repository.goldens, arguments.sweeps or repository.sweeps
    source, found = proposals.latest(cell, arguments.release, goldens, sweeps)
    yield f"{cell}: {source}"
    # Of a result, the whole text of the program is at hand.
    shown = _brief_of_cell(found) if arguments.short else found.beside(found).texts()
    if not arguments.short:
        shown[MANIFEST] += f"{CONTENTS}: sha256 {found.digest}\n"
    for file, text in shown.items():
        yield from ("", f"==> {file} <==", text.rstrip("\n"))


def _brief_of_cell(found: Record) -> dict[str, str]:
    """Return the short form of the sections that have operators, and a failure as it is."""
    payloads = {name: "\n".join(brief(payload)) for name, payload in found.delegates.items()}
    return {name: found.sections[name] for name in (GRAPH, FAILURE) if name in found.sections} | payloads


def _write_tensor(decoded: Decoded, arguments: argparse.Namespace) -> None:
    constants = decoded.constants()
    constant = constants.get(arguments.tensor)
    if constant is None:
        names = ", ".join(list(constants)[:8]) or "none"
        more = ", ..." if len(constants) > 8 else ""
        raise CommandError(f"{arguments.what} has no constant {arguments.tensor}; it has {names}{more}")
    target = arguments.output or re.sub(r"[^\w.%-]+", "_", arguments.tensor) + ".npy"
    if target == STANDARD:
        np.save(sys.stdout.buffer, constant.array(), allow_pickle=False)
        return
    try:
        with Path(target).open("wb") as file:
            np.save(file, constant.array(), allow_pickle=False)
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror}") from error
    print(f"{target}: {constant.dtype}{list(constant.shape)}", file=sys.stderr)
