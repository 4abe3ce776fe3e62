"""The object form as plain values for ``json.dump``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from executorch_goldens.decode.constant import Constant
from executorch_goldens.decode.decoded import Attribute, Decoded, Delegated, Graph, Operator, Value
from executorch_goldens.decode.text import WRITTEN_OUT, attribute_text, number_texts


def json_form(decoded: Decoded) -> dict[str, Any]:
    """Return a payload as dicts, lists, strings and numbers.

    Constants are given by type, shape and SHA-256, with their numbers up to 64 of them, as text: JSON has no
    NaN, no infinities, and readers round. Opaque bytes are given as ``{"hex": ...}``.
    """
    return {
        "kind": decoded.kind,
        "size": decoded.size,
        "facts": _attributes(decoded.facts),
        "graphs": [_graph(graph) for graph in decoded.graphs],
        "data": {name: _constant(blob) for name, blob in decoded.blobs.items()},
        "delegates": [_delegate(delegate) for delegate in decoded.delegates],
        "unread": [{"offset": stray.offset, "hex": stray.data.hex()} for stray in decoded.unread],
    }


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "attributes": _attributes(graph.attributes),
        "values": [_value(value) for value in graph.values.values()],
        "operators": [_operator(operator) for operator in graph.operators],
    }


def _value(value: Value) -> dict[str, Any]:
    form: dict[str, Any] = {
        "name": value.name,
        "dtype": value.dtype,
        "shape": None if value.shape is None else list(value.shape),
        "attributes": _attributes(value.attributes),
    }
    if value.constant is not None:
        form["constant"] = _constant(value.constant)
    return form


def _operator(operator: Operator) -> dict[str, Any]:
    form: dict[str, Any] = {
        "type": operator.type,
        "inputs": list(operator.inputs),
        "outputs": list(operator.outputs),
        "attributes": _attributes(operator.attributes),
    }
    if operator.input_roles or operator.output_roles:
        form["input_roles"] = list(operator.input_roles)
        form["output_roles"] = list(operator.output_roles)
    return form


def _delegate(delegate: Delegated) -> dict[str, Any]:
    return {
        "name": delegate.name,
        "backend": delegate.backend,
        "attributes": _attributes(delegate.attributes),
        "payload": json_form(delegate.decoded) if delegate.decoded is not None else None,
    }


def _constant(constant: Constant) -> dict[str, Any]:
    form: dict[str, Any] = {
        "dtype": constant.dtype,
        "shape": list(constant.shape),
        "sha256": constant.sha256(),
    }
    if constant.size <= WRITTEN_OUT and constant.codec.name != "bytes":
        form["values"] = number_texts(constant)
    return form


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    return {name: _attribute(value) for name, value in attributes.items()}


def _attribute(value: Attribute) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Constant):
        return _constant(value)
    if isinstance(value, tuple):
        return [_attribute(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else attribute_text(value)
    return value
