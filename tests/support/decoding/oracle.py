"""Compares decoded payloads with other readers of the same bytes, field by field.

TOSA and XNNPACK: ``flatc --json`` with the release's own schema. ``.pte``: ExecuTorch's deserializer. Run over any
number of payloads in the environment of a release:

    python -m tests.support.decoding.oracle FOLDER...
"""

from __future__ import annotations

import json
import math
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from executorch_goldens.decode import Constant, Decoded, Graph, Operator, Schemas, Value, decode
from executorch_goldens.decode.flatbuffer import Node, Table
from executorch_goldens.decode.numbers import Double, Float32
from executorch_goldens.decode.schema import NOT_IN_SCHEMA
from executorch_goldens.decode.schemas import PLACES

#: flatc prints floats with six digits after the point. Read as an unsigned integer of the same size, a float shows all
#: of its bits.
FLOAT_TYPES = (
    (re.compile(r":\s*\[?float\b"), "float", "uint"),
    (re.compile(r":\s*\[?double\b"), "double", "ulong"),
)
#: Suffixes of files that may hold payloads.
SUFFIXES = (".bin", ".tosa", ".xnnpack", ".pte")
NO_VALUE = 0xFFFFFFFF


@dataclass
class Tally:
    """Counts of comparisons and differences."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def expect(self, path: str, found: object, expected: object) -> None:
        self.counts["values"] += 1
        if not _same(found, expected):
            self.problems.append(f"{path}: {found!r} decoded, {expected!r} expected")


def _same(found: object, expected: object) -> bool:
    if isinstance(found, bool) is not isinstance(expected, bool):
        return False
    return found == expected


def schema_path(schemas: Schemas, name: str) -> Path:
    """Return the file of a schema."""
    for place in schemas.places:
        for relative in PLACES[name]:
            if (place / relative).is_file():
                return place / relative
    raise FileNotFoundError(name)


def flatc_json(flatc: str, schema: Path, payload: bytes) -> dict[str, Any]:
    """Return flatc's reading of a FlatBuffer, floats as their bits."""
    with tempfile.TemporaryDirectory() as folder:
        text = schema.read_text()
        for pattern, old, new in FLOAT_TYPES:
            text = pattern.sub(lambda match: match[0].replace(old, new), text)  # noqa: B023 - used at once
        bits_schema = Path(folder) / "schema.fbs"
        bits_schema.write_text(text)
        for included in re.findall(r'include "([^"]+)"', text):
            (Path(folder) / included).write_bytes((schema.parent / included).read_bytes())
        source = Path(folder) / "payload.bin"
        source.write_bytes(payload)
        options = ["--json", "--strict-json", "--defaults-json", "--raw-binary"]
        command = [flatc, *options, "-o", folder, str(bits_schema), "--", str(source)]
        subprocess.run(command, check=True, capture_output=True)
        parsed: dict[str, Any] = json.loads((Path(folder) / "payload.json").read_text())
    return parsed


def check_tree(tally: Tally, path: str, table: Table, expected: Mapping[str, Any]) -> None:
    """Compare a table as read with flatc's object."""
    for name in expected:
        if name not in table.fields:
            tally.problems.append(f"{path}.{name} is not decoded")
    for name, value in table.fields.items():
        _check_node(tally, f"{path}.{name}", value, expected.get(name))


def _check_node(tally: Tally, path: str, node: Node, expected: Any) -> None:
    if isinstance(node, Table):
        tally.counts["tables"] += 1
        check_tree(tally, path, node, expected if isinstance(expected, dict) else {})
    elif isinstance(node, memoryview):
        tally.counts["bytes"] += len(node)
        tally.expect(path, list(node), expected)
    elif isinstance(node, tuple):
        items = expected if isinstance(expected, list) else []
        tally.expect(f"{path} (length)", len(node), len(items))
        for at, (one, other) in enumerate(zip(node, items, strict=False)):
            _check_node(tally, f"{path}[{at}]", one, other)
    elif node is None and path.endswith("_type"):
        tally.expect(path, expected in (None, "NONE"), True)
    elif path.endswith(".scalar_type") and isinstance(expected, int):
        # flatc prints the number of what its schema has in a comment only.
        tally.expect(path, node, NOT_IN_SCHEMA["ScalarType"].get(expected, expected))
    else:
        tally.expect(path, _plain(node), expected)


def check_tosa(tally: Tally, decoded: Decoded, expected: Mapping[str, Any]) -> None:
    """Compare the object form of a TOSA payload with flatc's object."""
    blocks = [
        (f"{region.get('name')}/{block.get('name')}", block)
        for region in expected["regions"]
        for block in region["blocks"]
    ]
    tally.expect("blocks", [graph.name for graph in decoded.graphs], [name for name, _ in blocks])
    for graph, (name, block) in zip(decoded.graphs, blocks, strict=True):
        tally.expect(f"{name} inputs", list(graph.inputs), block.get("inputs", []))
        tally.expect(f"{name} outputs", list(graph.outputs), block.get("outputs", []))
        entries = [*block.get("tensors", []), *block.get("shapes", [])]
        tally.expect(f"{name} values", list(graph.values), [entry["name"] for entry in entries])
        for value, entry in zip(graph.values.values(), entries, strict=True):
            tally.counts["values of graphs"] += 1
            _check_tosa_value(tally, f"{name} {value.name}", value, entry)
        operators = block.get("operators", [])
        tally.expect(f"{name} operators", len(graph.operators), len(operators))
        for at, (operator, entry) in enumerate(zip(graph.operators, operators, strict=True)):
            _check_tosa_operator(tally, f"{name} operator {at}", operator, entry)


def _check_tosa_value(tally: Tally, path: str, value: Value, entry: dict[str, Any]) -> None:
    tally.expect(f"{path} type", value.dtype, entry.get("type", "SHAPE"))
    shape = [entry["rank"]] if "rank" in entry else entry.get("shape")
    tally.expect(f"{path} shape", None if value.shape is None else list(value.shape), shape)
    stored = list(value.constant.data) if value.constant else []
    surplus = value.attributes.get("data_beyond_shape", b"")
    tally.counts["bytes"] += len(stored)
    tally.expect(
        f"{path} data", stored + list(surplus if isinstance(surplus, bytes) else b""), entry.get("data", [])
    )
    for name in ("variable", "is_unranked", "variable_name", "offset", "size"):
        tally.expect(f"{path} {name}", value.attributes.get(name) or None, entry.get(name) or None)


def _check_tosa_operator(tally: Tally, path: str, operator: Operator, entry: dict[str, Any]) -> None:
    tally.counts["operators"] += 1
    tally.counts[f"operator {operator.type}"] += 1
    tally.expect(f"{path} op", operator.type, entry["op"])
    tally.expect(f"{path} inputs", list(operator.inputs), entry.get("inputs", []))
    tally.expect(f"{path} outputs", list(operator.outputs), entry.get("outputs", []))
    attributes = dict(operator.attributes)
    for name, expected in entry.get("attribute", {}).items():
        tally.counts["attributes"] += 1
        tally.expect(f"{path} {name}", _plain(attributes.pop(name, None)), expected)
    tally.expect(
        f"{path} location", attributes.pop("location.text", ""), entry.get("location", {}).get("text", "")
    )
    left = {name: value for name, value in attributes.items() if value is not None}
    tally.expect(f"{path} other attributes", left, {})


def _plain(value: Any) -> Any:
    if isinstance(value, Double):
        return int.from_bytes(struct.pack("<d", value), "little")
    if isinstance(value, Constant):
        return list(value.data)
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.bits if isinstance(value, Float32) else value


def check_xnnpack(tally: Tally, decoded: Decoded, expected: Mapping[str, Any]) -> None:
    """Compare the object form of an XNNPACK payload with flatc's object."""
    (graph,) = decoded.graphs
    tally.expect("inputs", [int(name[1:]) for name in graph.inputs], expected["input_ids"])
    tally.expect("outputs", [int(name[1:]) for name in graph.outputs], expected["output_ids"])
    tally.expect("version", graph.attributes["version"], expected["version"])
    tally.expect("num_externs", graph.attributes["num_externs"], expected["num_externs"])
    for at, datum in enumerate(expected.get("constant_data", [])):
        tally.expect(f"constant {at} size", decoded.facts[f"constant_data[{at}].size"], datum["size"])
        key = decoded.facts.get(f"constant_data[{at}].named_key", "")
        tally.expect(f"constant {at} key", key, datum.get("named_key", ""))
    for node, operator in zip(expected.get("xnodes", []), graph.operators, strict=True):
        _check_node_of_xnnpack(tally, operator, node)
    for entry, value in zip(expected.get("xvalues", []), graph.values.values(), strict=True):
        tally.counts["values of graphs"] += 1
        _check_value_of_xnnpack(tally, value, entry["xvalue_union"])


def _check_node_of_xnnpack(tally: Tally, operator: Operator, node: dict[str, Any]) -> None:
    tally.counts["operators"] += 1
    tally.counts[f"operator {operator.type}"] += 1
    tally.expect("node", operator.type, node["xnode_union_type"])
    roles = dict(zip(operator.input_roles, operator.inputs, strict=True))
    roles |= dict(zip(operator.output_roles, operator.outputs, strict=True))
    for name, expected in node["xnode_union"].items():
        tally.counts["attributes"] += 1
        if name.endswith("_id"):
            edge = roles[name.removesuffix("_id")]
            tally.expect(f"node {name}", NO_VALUE if edge is None else int(edge[1:]), expected)
        else:
            tally.expect(f"node {name}", _plain(operator.attributes[name]), expected)
    tally.expect("debug_handle", operator.attributes["debug_handle"], node["debug_handle"])
    for name, expected in node.get("output_min_max", {}).items():
        found = _plain(operator.attributes[f"output_min_max.{name}"])
        tally.expect(name, found, expected)


def _check_value_of_xnnpack(tally: Tally, value: Value, entry: dict[str, Any]) -> None:
    tensor = entry.get("tensor_value", entry)
    path = f"value {value.name}"
    tally.expect(f"{path} id", value.name, f"%{tensor['id_out']}")
    tally.expect(f"{path} type", f"xnn_datatype_{value.dtype}", tensor["datatype"])
    tally.expect(f"{path} shape", list(value.shape or ()), tensor.get("dims", []))
    tally.expect(f"{path} rank", value.attributes.get("num_dims", len(value.shape or ())), tensor["num_dims"])
    external = value.attributes["external_id"]
    tally.expect(f"{path} external", NO_VALUE if external is None else external, tensor["external_id"])
    tally.expect(f"{path} flags", value.attributes["flags"], tensor["flags"])
    index = value.attributes.get("constant_data", 0)
    tally.expect(f"{path} constant", index, tensor["constant_buffer_idx"])
    if "tensor_value" in entry:
        tally.expect(f"{path} quantization", value.attributes["quantization"], entry["quant_params_type"])
        for name, expected in entry["quant_params"].items():
            tally.counts["attributes"] += 1
            found = _plain(value.attributes[f"quantization.{name}"])
            tally.expect(f"{path} {name}", found, expected)


def check_pte(tally: Tally, decoded: Decoded, payload: bytes) -> None:
    """Compare a ``.pte`` with ExecuTorch's own reading; needs ExecuTorch."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    restored = deserialize_pte_binary(payload)
    # 1.1.0 returns the program itself, later releases a file with the data outside it.
    program = getattr(restored, "program", restored)
    _check_dataclass(tally, "Program", program, decoded.tree)
    delegates = iter(decoded.delegates)
    for plan in program.execution_plan:
        for stub in plan.delegates:
            found = next(delegates)
            data = program.backend_delegate_data[stub.processed.index].data
            tally.counts["bytes"] += len(data)
            tally.expect(
                f"delegate {found.name}", (found.backend, bytes(found.payload)), (stub.id, bytes(data))
            )
    for plan, graph in zip(program.execution_plan, decoded.graphs, strict=True):
        _check_constants(tally, plan, graph, program.constant_buffer)
    named = getattr(restored, "named_data", None)
    for key, entry in (named.pte_data if named else {}).items():
        data = named.buffers[entry if isinstance(entry, int) else entry.buffer_index]
        blob = decoded.blobs[f"named_data {key}"]
        tally.counts["bytes"] += len(data)
        tally.expect(f"named data {key}", bytes(blob.data), bytes(data))


def _check_constants(tally: Tally, plan: Any, graph: Graph, buffers: Sequence[Any]) -> None:
    for value, entry in zip(graph.values.values(), plan.values, strict=True):
        tensor = entry.val
        index = getattr(tensor, "data_buffer_idx", 0)
        if index and tensor.allocation_info is None and value.constant is not None:
            stored = bytes(buffers[index].storage)
            data = bytes(value.constant.data)
            tally.counts["bytes"] += len(data)
            # The deserializer takes the padding after a constant for a part of it.
            tally.expect(f"constant {value.name}", stored[: len(data)], data)
            tally.expect(f"padding of {value.name}", any(stored[len(data) :]), False)


#: Fields that the deserializer replaces by the data they refer to.
REPLACED = frozenset(
    {
        "constant_buffer",
        "backend_delegate_data",
        "segments",
        "constant_segment",
        "mutable_data_segments",
        "named_data",
        "processed",
    }
)


def _check_dataclass(tally: Tally, path: str, expected: Any, table: Table) -> None:
    tally.counts["tables"] += 1
    names = {one.name for one in fields(expected)}
    for name, value in table.fields.items():
        if name in REPLACED or (name.endswith("_type") and name.removesuffix("_type") in names):
            continue
        if name not in names:
            tally.expect(f"{path}.{name} (unknown to ExecuTorch)", not value, True)
            continue
        _check_field(tally, f"{path}.{name}", value, getattr(expected, name))
    left = names - set(table.fields) - REPLACED
    for name in left:
        tally.problems.append(f"{path}.{name} is not decoded")


def _check_field(tally: Tally, path: str, node: Node, expected: Any) -> None:
    if isinstance(node, Table):
        tally.expect(f"{path} type", node.type, type(expected).__name__)
        _check_dataclass(tally, path, expected, node)
    elif isinstance(node, tuple):
        items = list(expected or ())
        tally.expect(f"{path} (length)", len(node), len(items))
        for at, (one, other) in enumerate(zip(node, items, strict=False)):
            _check_field(tally, f"{path}[{at}]", one, other)
    elif isinstance(node, memoryview):
        tally.expect(path, bytes(node), bytes(expected))
    elif isinstance(expected, Enum):
        is_dtype = path.endswith(".scalar_type")
        # ExecuTorch's exir/scalar_type.py calls complex numbers by their bits, its schema's comment by their parts.
        tally.expect(
            path,
            node,
            NOT_IN_SCHEMA["ScalarType"].get(expected.value, expected.name) if is_dtype else expected.name,
        )
    elif node is None:
        tally.expect(path, not expected or is_dataclass(expected), True)
    elif isinstance(node, float):
        # Up to 1.4.1 the deserializer itself goes through flatc's JSON, which rounds to twelve digits after the
        # point; flatc's own reading, above, is compared bit by bit.
        tally.expect(path, math.isclose(node, expected, rel_tol=0, abs_tol=1e-12), True)
    else:
        tally.expect(path, node, expected)


def check(tally: Tally, payload: bytes, schemas: Schemas, flatc: str, with_executorch: bool) -> None:
    """Decode a payload, and the delegates in it, and compare."""
    decoded = decode(payload, schemas=schemas)
    tally.counts[f"{decoded.kind} payloads"] += 1
    tally.counts[f"{decoded.kind} bytes"] += len(payload)
    tally.expect("unread bytes", decoded.unread, ())
    if decoded.kind == "pte":
        size = decoded.facts.get("header.program_size", len(payload))
        assert isinstance(size, int)
        program = flatc_json(flatc, schema_path(schemas, "program"), payload[:size])
        check_tree(tally, decoded.tree.type, decoded.tree, program)
        if with_executorch:
            check_pte(tally, decoded, payload)
        return
    buffer = payload
    if decoded.kind == "xnnpack":
        start, size = decoded.facts["flatbuffer_offset"], decoded.facts["flatbuffer_size"]
        assert isinstance(start, int)
        assert isinstance(size, int)
        buffer = payload[start : start + size]
    expected = flatc_json(flatc, schema_path(schemas, decoded.kind), buffer)
    check_tree(tally, decoded.tree.type, decoded.tree, expected)
    (check_tosa if decoded.kind == "tosa" else check_xnnpack)(tally, decoded, expected)


def payloads(folders: Sequence[str]) -> Iterator[Path]:
    """Yield the files under folders that may hold payloads."""
    for folder in folders:
        yield from sorted(path for path in Path(folder).rglob("*") if path.suffix in SUFFIXES)


def main(folders: Sequence[str]) -> int:
    """Compare every payload under some folders; print counts and problems."""
    tally = Tally()
    for path in payloads(folders):
        before = len(tally.problems)
        try:
            check(tally, path.read_bytes(), Schemas.installed(), "flatc", with_executorch=True)
        except Exception as error:
            tally.problems.append(f"{type(error).__name__}: {error}")
        for problem in tally.problems[before : before + 3]:
            print(f"{path}: {problem}")
    kinds = {name for name in tally.counts if name.startswith("operator ")}
    for name, count in sorted(tally.counts.items()):
        if name not in kinds:
            print(f"{name}: {count}")
    print(f"operator types: {len(kinds)}")
    print(f"problems: {len(tally.problems)}")
    return bool(tally.problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
