"""Reads the text of a lowered graph, as torch prints it, back into its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from executorch_goldens.goldens.record import Record

#: The name and the operator of the line that ends a graph.
RETURN = "return"
GETITEM = "operator.getitem"

_NODE = re.compile(r"\s*%(?P<name>\w+) : .*? = (?P<op>\w+)\[target=(?P<target>[^\]]+)\](?P<arguments>.*)")
_RETURN = re.compile(r"\s*return (?P<arguments>.*)")
_READ = re.compile(r"%(\w+)")
_WORD = re.compile(r"\w+")
_ITEM = re.compile(r"\(%\w+, (\d+)\)")
_DELEGATE = re.compile(r"delegate (?P<number>\d+)")


@dataclass(frozen=True)
class LoweredNode:
    """A node of a lowered graph.

    Attributes
    ----------
    op
        Kind in torch.fx: ``placeholder``, ``get_attr``, ``call_function``; `RETURN` for what the program returns.
    arguments
        The rest of its line.
    read
        Names of the nodes that it reads, in order.
    """

    name: str
    op: str
    target: str
    arguments: str
    read: tuple[str, ...]

    @property
    def calls_delegate(self) -> bool:
        return self.target.endswith("executorch_call_delegate")

    @property
    def short(self) -> str:
        """The name of the operator without its module.

        >>> LoweredNode("a", "call_function", "executorch.exir.dialects.edge._ops.aten.max.default", "", ()).short
        'aten.max.default'
        """
        return ".".join(self.target.split(".")[-3:])

    @property
    def item(self) -> int:
        """The index of a ``getitem``."""
        found = _ITEM.search(self.arguments)
        return int(found[1]) if found else 0


def nodes(graph: str) -> Iterator[LoweredNode]:
    """Yield the nodes of a graph's text, without nested graphs; its return comes last."""
    for line in graph.splitlines()[1:]:
        if end := _RETURN.fullmatch(line):
            read = tuple(_WORD.findall(end["arguments"]))
            yield LoweredNode(RETURN, RETURN, "", end["arguments"], read)
            return
        if node := _NODE.match(line):
            read = tuple(_READ.findall(node["arguments"]))
            yield LoweredNode(node["name"], node["op"], node["target"], node["arguments"].strip(), read)


def delegates(record: Record) -> Mapping[str, int]:
    """Return the number of each delegate of a golden, by the name that the lowered graph has for it."""
    return {
        value.split()[0]: int(found["number"])
        for name, value in record.facts.items()
        if (found := _DELEGATE.fullmatch(name))
    }
