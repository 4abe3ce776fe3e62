"""``goldens decode``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from executorch_goldens.cli import SAME, CommandError
from executorch_goldens.commands.payload_files import STANDARD, add_schemas, decode_named, read
from executorch_goldens.decode import Decoded
from executorch_goldens.decode.json_form import json_form

EXAMPLES = """\
examples:
  goldens decode model.pte
  goldens decode --json payload.tosa | jq '.graphs[0].operators[].type'
  goldens decode payload.tosa --tensor conv_weight --output weight.npy
  goldens decode - --schemas envs/1.4.1/lib/python3.11/site-packages < delegate.bin
"""


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "decode",
        help="print a TOSA payload, an XNNPACK payload or a .pte as text",
        description="Print a TOSA payload, an XNNPACK payload or a .pte as text. "
        "The kind is recognized by its bytes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the payload; - for standard input")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the object form as JSON")
    form.add_argument("--tensor", metavar="NAME", help="write one constant as .npy instead")
    parser.add_argument(
        "--output", metavar="FILE", help="where --tensor writes; NAME.npy by default, - for standard output"
    )
    add_schemas(parser)
    parser.set_defaults(run=run)


def load(name: str, schemas: str | None) -> Decoded:
    """Read and decode a file; raise `CommandError` if that is not possible."""
    return decode_named(read(name), name, schemas)


def run(arguments: argparse.Namespace) -> int:
    """Decode a file and print it."""
    decoded = load(arguments.file, arguments.schemas)
    if arguments.tensor is not None:
        _write_tensor(decoded, arguments)
    elif arguments.json:
        json.dump(json_form(decoded), sys.stdout, indent=1)
        print()
    else:
        sys.stdout.writelines(line + "\n" for line in decoded.lines())
    return SAME


def _write_tensor(decoded: Decoded, arguments: argparse.Namespace) -> None:
    constants = decoded.constants()
    constant = constants.get(arguments.tensor)
    if constant is None:
        names = ", ".join(list(constants)[:8]) or "none"
        more = ", ..." if len(constants) > 8 else ""
        raise CommandError(f"{arguments.file} has no constant {arguments.tensor}; it has {names}{more}")
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
