"""``goldens diff FILE.pte TARGET/CASE``: whether a program that is about to ship is the golden's."""

from __future__ import annotations

import argparse
import sys

from executorch_goldens import patches
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.commands.payload_files import STANDARD, decode_named, read_payload, schemas_of
from executorch_goldens.decode import Decoded, Schemas
from executorch_goldens.errors import CommandError
from executorch_goldens.running.selection import load_cells, require_flatc, select
from executorch_goldens.settings import config
from executorch_goldens.settings.exports import cores
from executorch_goldens.toolchains import handing
from executorch_goldens.toolchains.toolchain import chosen
from executorch_goldens_plugins.shipping import checking, kernels
from executorch_goldens_plugins.shipping.builds import BuildSettings, builds, capabilities, made
from executorch_goldens_plugins.shipping.checking import Found


def run(arguments: argparse.Namespace) -> int:
    """Print whether the file is the golden, and how it differs."""
    name: str = arguments.before
    if arguments.rebuild and name == STANDARD:
        raise CommandError(
            "--rebuild goes on in a toolchain's Python, which needs a file, and not standard input"
        )
    root = arguments.goldens or config.load().goldens
    found = checking.find(Cell.named(arguments.after), root, arguments.release)
    pte = read_payload(name)
    listed = arguments.kernels
    selected = kernels.read(read_payload(listed), listed) if listed is not None else None
    identical = found.has_bytes(pte)
    if arguments.rebuild and not identical:
        handing.over_if_needed(arguments, ["diff", *arguments.forwarded])
    is_decoded = not identical or selected is not None
    if is_decoded and not arguments.schemas:
        arguments.schemas = schemas_of(arguments.toolchain or found.release)
    decoded = _program(pte, name, arguments.schemas) if is_decoded else None
    same = True
    if decoded is None or identical:
        recorded = found.record.facts["patches"].removeprefix("none")
        print(f"{name} is {found.name}, byte for byte: {BuildSettings.pinned(tuple(recorded.split()))}")
    else:
        same = _differences(found, pte, decoded, arguments)
    if decoded is not None and selected is not None:
        same &= _kernels(decoded, selected, arguments.kernels)
    if arguments.rebuild and not identical:
        print(_rebuilt(found.cell, pte, arguments))
    return SAME if same else DIFFERENT


def _program(pte: bytes, name: str, schemas: str | None) -> Decoded:
    """Decode a program; raise CommandError for anything else."""
    decoded = decode_named(pte, name, schemas)
    if decoded.kind != "pte":
        raise CommandError(f"{name} is a {decoded.kind} payload and no .pte")
    return decoded


def _differences(found: Found, pte: bytes, decoded: Decoded, arguments: argparse.Namespace) -> bool:
    """Print how a program with other bytes differs from a golden; return whether its content is the same."""
    name = arguments.before
    schemas = Schemas.under(arguments.schemas) if arguments.schemas else Schemas.default()
    if found.has_layout(pte, decoded, schemas):
        print(f"{name} has the content of {found.name}, in a byte layout that the serializer leaves open")
        return True
    differences = list(found.differences(decoded))
    if not differences:
        print(f"{name} has the content of {found.name}, in a different byte layout")
        return True
    print(f"{name} is not {found.name}", f"A: {found.name}", f"B: {name}", sep="\n")
    for text, each in differences:
        if each is None:
            print(f"{text}: only in {'A' if text in found.record.sections else 'B'}")
            continue
        print(text)
        for line in each.lines(arguments.limit):
            print(line)
    return False


def _kernels(decoded: Decoded, selected: kernels.Selection, file: str) -> bool:
    """Print the kernels that a program needs outside its delegates; return whether a build has all of them."""
    needed = kernels.needs(decoded)
    missing = 0
    print("kernels outside delegates:" if needed else "kernels outside delegates: none")
    for operator, dtypes in needed.items():
        lacking = selected.lacks(operator, dtypes)
        missing += lacking is not None
        end = "" if lacking is None else f"; missing{''.join(f' {dtype}' for dtype in lacking)}"
        print(f"  {operator} {' '.join(sorted(dtypes))}{end}")
    print(f"{file} lacks {missing} of {len(needed)}")
    return not missing


def _rebuilt(cell: Cell, pte: bytes, arguments: argparse.Namespace) -> str:
    """Export a cell again until a build makes these bytes; return in words which does."""
    toolchain = chosen(arguments.toolchain)
    require_flatc(toolchain.python)
    models = config.load().zoos(arguments.models)
    select(load_cells(models, toolchain.release), [str(cell)])
    settings = toolchain.settings(models, 1, arguments.export_timeout)
    of_release = patches.select("auto", toolchain.release.patches)
    tried = builds(capabilities(toolchain.python), cores(), settings.patches, of_release)
    failures = []
    for number, (build, program) in enumerate(made(cell, settings, tried), 1):
        if program == pte:
            release = toolchain.release.version
            return f"{arguments.before} equals the export of {cell} by ExecuTorch {release} with {build}"
        said = program if isinstance(program, str) else "different bytes"
        failures += [said] if isinstance(program, str) else []
        print(f"build {number} of {len(tried)}: {build}: {said}", file=sys.stderr, flush=True)
    if len(failures) == len(tried):
        raise CommandError(
            f"no build of {cell} on ExecuTorch {toolchain.release.version} makes a program: {failures[0]}"
        )
    return f"unknown: none of {len(tried)} builds on ExecuTorch {toolchain.release.version} makes these bytes"
