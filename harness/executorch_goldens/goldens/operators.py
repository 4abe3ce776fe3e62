"""The table that begins a large golden: how many operators of each kind it has, and where they run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

#: The name of the table in the file.
OPERATORS = "operators"
#: A golden of more operators has the table.
MOST = 300
#: Columns of a number.
WIDTH = 8
_CALLED = re.compile(r"call_function\[target=([\w.]+)\]")
#: Operators that every graph has around its delegates.
_GLUE = ("executorch_call_delegate", "operator.getitem")
_DELEGATE = re.compile(r"delegate_(\d+)\.")
_OPERATOR = re.compile(r"^  operator (.*)", re.MULTILINE)


def outside(graph: str) -> Counter[str]:
    """Return the operators of a lowered graph that are outside of delegates.

    >>> outside("%a : = call_function[target=executorch.exir.dialects.edge._ops.aten.add.Tensor](args = ())")
    Counter({'aten.add.Tensor': 1})
    """
    called = (name for name in _CALLED.findall(graph) if not name.endswith(_GLUE))
    prefixes = ("executorch.exir.dialects.edge._ops.", "torch.ops.")
    return Counter(name.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for name in called)


def table(sections: Mapping[str, str], graph: str) -> str:
    """Return the table of a golden with these sections, of which one is its graph; empty where it needs none."""
    counts = {"outside": outside(sections.get(graph, ""))}
    for name, text in sections.items():
        if delegate := _DELEGATE.match(name):
            counts[delegate[1]] = Counter(_OPERATOR.findall(text))
    every = sum(counts.values(), Counter[str]())
    if every.total() <= MOST:
        return ""
    rows = [("all", *counts, "operator"), (every.total(), *(each.total() for each in counts.values()), "")]
    rows += [(every[name], *(each[name] or "." for each in counts.values()), name) for name in sorted(every)]
    return "".join(f"{_row(*row)}\n" for row in rows)


def _row(*cells: object) -> str:
    """Return a line with the name last, so that a longer one moves nothing."""
    *numbers, name = cells
    return f"{''.join(f'{number:>{WIDTH}}' for number in numbers)}  {name}".rstrip()
