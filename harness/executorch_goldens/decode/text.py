"""The golden text of a decoded payload: one fact a line, made for review.

Layout: two spaces a level; ``name = value`` for facts and attributes; operators without numbers, so that
adding one does not change the lines after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from executorch_goldens.decode.constant import Array, Constant
from executorch_goldens.decode.decoded import DIGITS, Attribute, Decoded, Graph, Operator, Value
from executorch_goldens.decode.numbers import Double, Float32, float32_text
from executorch_goldens.decode.summary import COUNTED, summarize

#: Constants of up to this many numbers are written out; larger ones are summarised (design, *Goldens*).
WRITTEN_OUT = 64
#: Numbers of a summarised constant that are shown at each end.
SHOWN_AT_ENDS = 8
#: Numbers on one line, so that a change of one shows in a narrow window.
NUMBERS_PER_LINE = 16
#: Opaque bytes beyond this are given by their length and SHA-256.
BYTES_WRITTEN_OUT = 256

INDENT = "  "
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.:%/+\-\[\]@$]+")


def lines(decoded: Decoded, *, delegates: bool = True) -> Iterator[str]:
    """Yield the golden text of `decoded`, without line ends."""
    yield f"{decoded.kind} {decoded.size} bytes"
    yield from _attributes(decoded.facts, "")
    for name, blob in decoded.blobs.items():
        yield f"data {quoted(name)}: {blob.type}"
        yield from constant_lines(blob, INDENT)
    for graph in decoded.graphs:
        yield from _graph(graph)
    for delegate in decoded.delegates:
        yield f"delegate {quoted(delegate.name)}: {quoted(delegate.backend)}"
        yield from _attributes(delegate.attributes, INDENT)
        if delegates and delegate.decoded is not None:
            for line in lines(delegate.decoded):
                yield INDENT + line
    for stray in decoded.unread:
        yield f"unread at {stray.offset}: {attribute_text(stray.data)}"


def _graph(graph: Graph) -> Iterator[str]:
    yield f"graph {quoted(graph.name)}"
    yield from _attributes(graph.attributes, INDENT)
    for name in graph.inputs:
        yield f"{INDENT}input {_operand(name, graph.values)}"
    for name in graph.outputs:
        yield f"{INDENT}output {_operand(name, graph.values)}"
    for value in graph.values.values():
        yield f"{INDENT}value {quoted(value.name)}: {value.type}"
        yield from _attributes(value.attributes, 2 * INDENT)
        if value.constant is not None:
            yield from constant_lines(value.constant, 2 * INDENT)
    for operator in graph.operators:
        yield from _operator(operator, graph.values)


def _operator(operator: Operator, values: Mapping[str, Value]) -> Iterator[str]:
    yield f"{INDENT}operator {quoted(operator.type)}"
    for at, name in enumerate(operator.inputs):
        role = operator.input_roles[at] if operator.input_roles else "input"
        yield f"{INDENT * 2}{role} {'none' if name is None else quoted(name)}"
    for at, name in enumerate(operator.outputs):
        role = operator.output_roles[at] if operator.output_roles else "output"
        yield f"{INDENT * 2}{role} {'none' if name is None else _operand(name, values)}"
    yield from _attributes(operator.attributes, INDENT * 2)


def _operand(name: str, values: Mapping[str, Value]) -> str:
    return f"{quoted(name)}: {values[name].type}" if name in values else quoted(name)


def _attributes(attributes: Mapping[str, Attribute], indent: str) -> Iterator[str]:
    for name, value in attributes.items():
        yield f"{indent}{name} = {attribute_text(value)}"


def attribute_text(value: Attribute) -> str:
    """Return an attribute's value on one line, each value differently from any other of its type."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Float32 | Double | int):
        return str(value)
    if isinstance(value, float):
        return str(Double(value))
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return _bytes_text(value)
    if isinstance(value, Constant):
        return f"{value.type} {_contents_text(value)}"
    return f"[{', '.join(attribute_text(each) for each in value)}]"


def quoted(name: str) -> str:
    """Return a name as it is where it cannot be misread, otherwise in quotes with escapes."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def _bytes_text(data: bytes) -> str:
    if len(data) > BYTES_WRITTEN_OUT:
        from hashlib import sha256

        return f"{len(data)} bytes, sha256 {sha256(data).hexdigest()[:DIGITS]}"
    if data and data.isascii() and data.decode().isprintable():
        return repr(data)
    return f"0x{data.hex()}"


def _contents_text(constant: Constant) -> str:
    if constant.size > WRITTEN_OUT or constant.codec.name == "bytes":
        return f"sha256 {constant.sha256()[:DIGITS]}"
    return " ".join(number_texts(constant))


def constant_lines(constant: Constant, indent: str) -> Iterator[str]:
    """Yield the lines of a constant's contents in a golden."""
    yield f"{indent}sha256 {constant.sha256()[:DIGITS]}"
    if constant.codec.name == "bytes":
        return
    if constant.size <= WRITTEN_OUT:
        texts = number_texts(constant)
        for at in range(0, len(texts), NUMBERS_PER_LINE):
            yield f"{indent}values {' '.join(texts[at : at + NUMBERS_PER_LINE])}"
        return
    summary = summarize(constant)
    for name, codes in (("min", summary.minimum), ("max", summary.maximum)):
        for text in code_texts(constant, codes):
            yield f"{indent}{name} {text}"
    if summary.nans:
        yield f"{indent}nans {summary.nans}"
    yield f"{indent}distinct {summary.distinct if summary.exact else f'more than {COUNTED}'}"
    yield f"{indent}first {' '.join(number_texts(constant, 0, SHOWN_AT_ENDS))}"
    yield f"{indent}last {' '.join(number_texts(constant, constant.size - SHOWN_AT_ENDS))}"


def number_texts(constant: Constant, start: int = 0, stop: int | None = None) -> list[str]:
    """Return numbers ``start`` to ``stop`` of a constant as text, different bits as different text."""
    codes = constant.codes(start, stop)
    return code_texts(constant, codes)


def code_texts(constant: Constant, codes: Array) -> list[str]:
    """Return the text of each number given by its stored bits."""
    codec = constant.codec
    numbers = codec.numbers(codes).tolist()
    if codec.name == "bool":
        return ["true" if number else "false" for number in numbers]
    if isinstance(numbers[0] if numbers else None, complex):
        return complex_texts(codec.bits // 2, codes, numbers)
    if codec.name == "f64":
        return [str(Double(number)) for number in numbers]
    if codec.name == "mxi8" or codec.floating:
        digits = (codec.bits + 3) // 4
        pairs = zip(numbers, codes.tolist(), strict=True)
        return [float32_text(number, code, digits) for number, code in pairs]
    return [str(number) for number in numbers]


def complex_texts(bits: int, codes: Array, numbers: list[complex]) -> list[str]:
    """Return the text of complex numbers, ``(real,imaginary)``, each part with that many bits."""
    parts = [part for number in numbers for part in (number.real, number.imag)]
    stored = codes.view(f"<u{bits // 8}").tolist()
    texts = [
        str(Double(part)) if bits == 64 else float32_text(part, code, bits // 4)
        for part, code in zip(parts, stored, strict=True)
    ]
    return [f"({real},{imaginary})" for real, imaginary in zip(texts[::2], texts[1::2], strict=True)]
