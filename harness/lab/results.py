"""Files that other programs read, field by field, from their structs and docstrings: parts of docs/results.md."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from executorch_goldens.artifact import AnyCasualty, Metric
from executorch_goldens.goldens import findings
from executorch_goldens.goldens.accuracy import Accuracy
from executorch_goldens.goldens.findings import Fault
from executorch_goldens.judging.attribution import Attribution
from executorch_goldens.results.compared import (
    KINDS,
    SAME,
    ComparedCell,
    ComparedReach,
    ComparedSide,
    ComparedSides,
    Tally,
)
from executorch_goldens.results.evidence import SIDES, Evidence, ShownTensor
from executorch_goldens.results.proposals import CellFile, Proposal
from executorch_goldens.results.provenance import Provenance
from executorch_goldens.results.rows import Diverged, Reported, ResultRow
from executorch_goldens.words.kinds import WORDS
from lab import markdown
from lab.args.table import Came, OperatorTable, Step, TableRow, TriedOn
from lab.pages import Part

PAGE = "docs/results.md"
#: What each file holds, and its parts: under the marks of the page.
FILES: dict[str, tuple[type, ...]] = {
    "row": (ResultRow, Diverged, Attribution, Accuracy),
    "run": (Provenance,),
    "cell": (CellFile, Proposal, Evidence, ShownTensor),
    "compare": (ComparedSides, ComparedSide, ComparedCell, Reported, ComparedReach, Tally),
    "operators": (OperatorTable, TriedOn, TableRow, Came, Step),
}
#: Parts of findings.
INSIDE = (
    *(findings.Deviated, findings.TensorType, findings.Element, findings.Frame, findings.Exceeded, Metric),
)
#: Fields that a file does not have.
UNWRITTEN: dict[type, tuple[str, ...]] = {Proposal: ("folder",), ShownTensor: SIDES}


def parts() -> Iterator[Part]:
    """Yield the tables of the page."""
    for mark, classes in FILES.items():
        yield Part(PAGE, mark, functools.partial(_of_classes, classes))
    yield Part(PAGE, "kinds", _kinds)
    yield Part(PAGE, "findings", _of_findings)


def _kinds() -> Iterator[str]:
    """Yield the kinds of difference of a comparison, the worst first."""
    yield ""
    yield from markdown.head(("kind", "is"))
    yield from (markdown.row((f"`{kind}`", WORDS[kind])) for kind in (*KINDS, SAME))
    yield ""


def _of_classes(classes: tuple[type, ...]) -> Iterator[str]:
    """Yield what the first of some classes has, which a file holds, and then each of its parts."""
    whole, *inside = classes
    yield from _table(whole)
    yield from (line for each in inside for line in _part(each))
    yield ""


def _part(each: type) -> Iterator[str]:
    yield from ("", f"`{each.__name__}`: {_first(each)}")
    yield from _table(each)


def _table(each: type) -> Iterator[str]:
    yield ""
    yield from markdown.head(("field", "type", "means"))
    yield from (markdown.row((f"`{name}`", type_, means)) for name, type_, means in fields(each))


def _of_findings() -> Iterator[str]:
    yield ""
    yield from markdown.head(("kind", "fault", "fields", "key", "is"))
    for each in get_args(findings.OneOf):
        fault = each.fault.value if isinstance(each.fault, Fault) else f"{Fault.TOOLCHAIN} or {Fault.HARNESS}"
        yield markdown.row((_kind(each), fault, *_named(each), _first(each)))
    yield from ("", "The field `ended` of `not-finished` is one of these:", "")
    yield from markdown.head(("kind", "fields", "key", "is"))
    yield from (markdown.row((_kind(each), *_named(each), _first(each))) for each in get_args(AnyCasualty))
    yield from (line for each in INSIDE for line in _part(each))
    yield ""


def _kind(each: type[msgspec.Struct]) -> str:
    return f"`{each.__struct_config__.tag}`"


def _named(each: type[msgspec.Struct]) -> tuple[str, str]:
    """Return the names of the fields of a finding, and of those of its key."""
    own, key = [name for name, *_ in fields(each)], findings.KINDS.get(str(each.__struct_config__.tag))
    return _listed(own), "that of what it holds" if key is None else _listed(key)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def fields(each: type) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the type and the meaning of each field in a file."""
    # What has no schema is in no file.
    _, components = msgspec.json.schema_components([each], schema_hook=lambda _: {"type": "string"})
    documented = _documented(each)
    for name, schema in components[each.__name__]["properties"].items():
        if name not in UNWRITTEN.get(each, ()) and "enum" not in schema:
            yield name, written(schema, components), documented.get(name, "")


def written(schema: Mapping[str, Any], components: Mapping[str, Any]) -> str:
    """Return a type as JSON has it, in words.

    Parameters
    ----------
    components
        What a schema refers to, by name.

    >>> written({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}, {})
    'array of (number or null)'
    """
    of = functools.partial(written, components=components)
    if "discriminator" in schema:
        return "finding" if len(schema["anyOf"]) == len(get_args(findings.OneOf)) else "end of an export"
    if "anyOf" in schema:
        return f"({' or '.join(map(of, schema['anyOf']))})"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _listed(components[name]["enum"]) if "enum" in components[name] else f"`{name}`"
    if schema.get("type") == "array":
        items = schema["items"] or schema["prefixItems"][0]
        return f"array of {of(items)}"
    if "additionalProperties" in schema:
        return f"object of {of(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def _documented(each: type) -> dict[str, str]:
    """Return what the docstrings of a class, and of those that it is a kind of, say of each field."""
    found: dict[str, str] = {}
    for of in reversed(each.__mro__):
        _, _, attributes = inspect.cleandoc(of.__doc__ or "").partition("Attributes\n----------\n")
        for names, text in re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?)+)", attributes, flags=re.MULTILINE):
            found |= dict.fromkeys(names.split(", "), _plain(text))
    return found


def _first(each: type) -> str:
    """Return the beginning of a docstring."""
    return _plain(inspect.cleandoc(each.__doc__ or "").partition("\n\n")[0])


def _plain(text: str) -> str:
    """Return words of a docstring as Markdown has them."""
    return re.sub(r"\bNone\b", "null", " ".join(text.split()).replace("``", "`"))
