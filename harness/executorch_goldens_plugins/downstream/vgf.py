"""The facts of a VGF file: its module and resource tables, as the VGF library reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from executorch_goldens.errors import HarnessError
from executorch_goldens_plugins.downstream.stream import digest


class TablesError(HarnessError, ValueError):
    """Tables of a VGF file that differ from the library's; the message says what is missing."""


def facts(made: bytes, dump: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a VGF file; raise `TablesError`.

    Parameters
    ----------
    made
        The file.
    dump
        Output of ``vgf_dump`` of the VGF library, with digests: see `vgf_driver.tables`.
    """
    try:
        yield "vgf", digest(made)
        yield "version", ".".join(str(dump["header"][part]) for part in ("major", "minor", "patch"))
        for module in dump["modules"]:
            code = (
                f"SPIR-V of {module['bytes']} bytes sha256 {module['sha256']}" if "sha256" in module else "-"
            )
            yield (
                f"module {module['index']}",
                f"{module['type']} {module['name']} {module['entry_point']}, {code}",
            )
        for resource in dump["resources"]:
            yield f"resource {resource['index']}", _resource(resource)
        for constant in dump["constants"]:
            where = f"resource {constant['mrt_index']}, sparse in dimension {constant['sparsity_dimension']}"
            yield (
                f"constant {constant['index']}",
                f"{where}, {constant['bytes']} bytes sha256 {constant['sha256']}",
            )
        for number, segment in enumerate(dump["model_sequence"]["segments"]):
            yield f"segment {number}", _segment(segment)
        for what in ("inputs", "outputs"):
            yield f"model {what}", _bindings(dump["model_sequence"][what])
    except (KeyError, TypeError) as error:
        raise TablesError(f"the VGF library's tables have no {error}") from error


def _resource(resource: Mapping[str, Any]) -> str:
    shape, stride = json.dumps(resource["shape"]), json.dumps(resource["stride"])
    kind = f"{resource['vk_format']} {resource['vk_descriptor_type']}"
    return f"{resource['category']} {shape}, stride {stride}, {kind}"


def _segment(segment: Mapping[str, Any]) -> str:
    constants = json.dumps(segment["constants"])
    given = f"inputs {_bindings(segment['inputs'])}, outputs {_bindings(segment['outputs'])}"
    shape = json.dumps(segment["dispatch_shape"])
    return f"{segment['type']} of module {segment['module_index']}, {given}, constants {constants}, shape {shape}"


def _bindings(bindings: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(f"{each['binding']}:{each['mrt_index']}" for each in bindings) or "none"
