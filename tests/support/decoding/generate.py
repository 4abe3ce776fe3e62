"""Payloads with every operator, attribute and data type that a schema has, made by flatc from JSON.

Real payloads reach a part of the schemas only. These mean nothing, but are complete.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from executorch_goldens.decode import Schemas
from executorch_goldens.decode.schema import Enum, Scalar, Schema, String, TableRef, Type, Union, Vector
from executorch_goldens.decode.tosa import DTYPES
from tests.support.decoding.oracle import schema_path

#: Lengths of the constants: an odd number of 4-bit numbers, and one that fills no whole byte of 6-bit ones.
SHAPE = [3, 5]
#: Bytes of constants after an XNNPACK graph, paddings among them.
CONSTANT_DATA = 96


class Example:
    """Makes a value for every field of a table."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self.schema = schema
        self.chooser = random.Random(seed)

    def table(self, name: str) -> dict[str, Any]:
        """Return a table with all of its fields but the deprecated ones."""
        made: dict[str, Any] = {}
        for field in self.schema.tables[name]:
            if field.deprecated:
                continue
            if isinstance(field.type, Union):
                label, table = self.chooser.choice(list(field.type.members.values()))
                made[f"{field.name}_type"] = label
                made[field.name] = self.table(table)
            else:
                made[field.name] = self.value(field.type)
        return made

    def value(self, type_: Type) -> Any:
        if isinstance(type_, Scalar):
            return self.number(type_.code)
        if isinstance(type_, Enum):
            return self.chooser.choice(list(type_.names.values()))
        if isinstance(type_, String):
            return self.chooser.choice(["text", 'quoted "text"', "späce ünd\nline", ""])
        if isinstance(type_, TableRef):
            return self.table(type_.name)
        if isinstance(type_, Vector):
            return [self.value(type_.element) for _ in range(self.chooser.randrange(4))]
        raise TypeError(type_)

    def number(self, code: str) -> Any:
        if code == "?":
            return self.chooser.random() < 0.5
        if code in "fd":
            return self.chooser.choice([0.0, 0.1, -1.5, 1e-10, 3e38])
        bits = 8 * struct.calcsize("<" + code)
        low = -(1 << bits - 1) if code.islower() else 0
        return self.chooser.choice(
            [0, 1, low, low + (1 << bits) - 1, self.chooser.randrange(low, low + (1 << bits))]
        )


def tosa_payload(flatc: str, schemas: Schemas, seed: int) -> bytes:
    """Return a TOSA payload with every operator and a constant of every data type."""
    schema = schemas.load("tosa")
    example = Example(schema, seed)
    labels = {
        label.removesuffix("Attribute").lower(): label
        for label, _ in schema.unions["Attribute"].members.values()
    }
    tensors = [
        _tensor(example, at, name) for at, name in enumerate(schema.enums["DType"].names.values()) if at
    ]
    names = [tensor["name"] for tensor in tensors]
    operators = []
    for op in schema.enums["Op"].names.values():
        operator = example.table("TosaOperator") | {"op": op}
        label = labels.get(op.replace("_", "").lower())
        operator["inputs"] = example.chooser.sample(names, 3)
        operator["outputs"] = example.chooser.sample(names, 2)
        if label is None:
            del operator["attribute"], operator["attribute_type"]
        else:
            operator |= {"attribute_type": label, "attribute": example.table(label)}
        operators.append(operator)
    shapes = [{"name": "shape", "rank": 2, "data": [example.chooser.randrange(256) for _ in range(16)]}]
    block = {
        "name": "block",
        "inputs": names[:2],
        "outputs": names[2:4],
        "tensors": tensors,
        "shapes": shapes,
    }
    graph = {
        "version": example.table("Version"),
        "regions": [{"name": "region", "blocks": [block | {"operators": operators}]}],
    }
    if "software_version" in {field.name for field in schema.tables["TosaGraph"]}:
        graph["software_version"] = example.table("SoftwareVersion")
    return binary(flatc, schema_path(schemas, "tosa"), graph)


def _tensor(example: Example, at: int, dtype: str) -> dict[str, Any]:
    bits = DTYPES[dtype].bits * SHAPE[0] * SHAPE[1]
    top = 2 if dtype == "BOOL" else 256
    data = [example.chooser.randrange(top) for _ in range((bits + 7) // 8)]
    if bits % 8:
        data[-1] &= (1 << bits % 8) - 1
    fixed = {"name": f"tensor {at}", "type": dtype, "shape": SHAPE, "data": data, "variable_name": "v"}
    return example.table("TosaTensor") | fixed


def xnnpack_payload(flatc: str, schemas: Schemas, seed: int) -> bytes:
    """Return an XNNPACK payload with every node, data type and kind of quantization parameters."""
    schema = schemas.load("xnnpack")
    example = Example(schema, seed)
    nodes = []
    for label, table in schema.unions["XNodeUnion"].members.values():
        nodes.append(
            example.table("XNode") | {"xnode_union_type": label, "xnode_union": example.table(table)}
        )
    values = []
    for datatype in schema.enums["XNNDatatype"].names.values():
        for label, table in schema.unions["XNNQuantParams"].members.values():
            tensor = _xnnpack_tensor(example, datatype, len(values))
            parameters = example.table(table)
            if "scale_buffer_idx" in parameters:
                parameters |= {"scale_buffer_idx": 2, "num_scales": 2}
            quantized = {"tensor_value": tensor, "quant_params_type": label, "quant_params": parameters}
            values.append({"xvalue_union_type": "XNNQuantizedTensorValue", "xvalue_union": quantized})
        tensor = _xnnpack_tensor(example, datatype, len(values))
        values.append({"xvalue_union_type": "XNNTensorValue", "xvalue_union": tensor})
    constants = [(0, 0), (0, 64), (64, 8), (80, 3)]
    data = [{"offset": offset, "size": size, "named_key": ""} for offset, size in constants]
    data.append({"offset": 0xFFFFFFFFFFFFFFFF, "size": 5, "named_key": "elsewhere"})
    graph = example.table("XNNGraph") | {"xnodes": nodes, "xvalues": values, "constant_data": data}
    graph |= {"input_ids": [0, 1], "output_ids": [2]}
    buffer = binary(flatc, schema_path(schemas, "xnnpack"), graph)
    base = (32 + len(buffer) + 15) // 16 * 16
    header = struct.pack("<4s4sHIIIQ", bytes(4), b"XH00", 30, 32, len(buffer), base, CONSTANT_DATA)
    contents = bytearray(CONSTANT_DATA)
    for offset, size in constants:
        contents[offset : offset + size] = bytes(range(1, size + 1))
    return header + bytes(2) + buffer + bytes(base - 32 - len(buffer)) + bytes(contents)


def _xnnpack_tensor(example: Example, datatype: str, at: int) -> dict[str, Any]:
    computed = any(name in datatype for name in ("invalid", "qdint8", "qpint8", "pfp32"))
    index = 0 if computed else example.chooser.choice([0, 1])
    fixed = {"datatype": datatype, "num_dims": 2, "dims": SHAPE, "constant_buffer_idx": index, "id_out": at}
    return example.table("XNNTensorValue") | fixed


def binary(flatc: str, schema: Path, content: dict[str, Any]) -> bytes:
    """Return the FlatBuffer that flatc makes of a JSON object."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "payload.json"
        source.write_text(json.dumps(content))
        subprocess.run(
            [flatc, "--binary", "-o", folder, str(schema), str(source)], check=True, capture_output=True
        )
        (made,) = [path for path in Path(folder).iterdir() if path.suffix != ".json"]
        return made.read_bytes()
