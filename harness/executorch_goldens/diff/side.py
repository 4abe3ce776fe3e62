"""A graph of an outline with its edges: who makes a value, and who reads it."""

from __future__ import annotations

from collections import defaultdict

from executorch_goldens.goldens.outline import OutlineGraph, OutlineValue

#: The role of operands that an instruction of a ``.pte`` may read or write.
EITHER_WAY = "arg"


class GraphSide:
    """One of the two graphs that are compared, with its edges.

    Attributes
    ----------
    producer
        Name of a value to (operator, output port).
    consumers
        Name of a value to (operator, input position), in order.
    """

    def __init__(self, graph: OutlineGraph) -> None:
        self.graph = graph
        self.operators = graph.operators
        self.producer: dict[str, tuple[int, int]] = {}
        self.consumers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._outputs: list[tuple[str, ...]] = []
        for at, operator in enumerate(graph.operators):
            self._outputs.append(self._made_by(at))
            for port, name in enumerate(self._outputs[at]):
                self.producer.setdefault(name, (at, port))
            for position, (_, name) in enumerate(operator.inputs):
                if self.producer.get(name, (None, 0))[0] != at:
                    self.consumers[name].append((at, position))
        self.input_index = {name: at for at, name in enumerate(graph.inputs)}

    def outputs(self, at: int) -> tuple[str, ...]:
        """Return the names of an operator's outputs."""
        return self._outputs[at]

    def _made_by(self, at: int) -> tuple[str, ...]:
        operator = self.operators[at]
        if operator.outputs:
            return tuple(name for _, name in operator.outputs)
        return tuple(name for role, name in operator.inputs if self.is_made_by(at, role, name))

    def is_made_by(self, at: int, role: str, name: str) -> bool:
        """Return whether an instruction writes an operand: the first to touch a value that has no contents yet does."""
        value = self.graph.values.get(name)
        if role != EITHER_WAY or value is None or "[" not in value.type or value.contents is not None:
            return False
        if name in self.graph.inputs or value.attributes.get("location") == "EXTERNAL":
            return False
        return self.producer.get(name, (at, 0))[0] == at

    def operand(self, at: int, position: int) -> tuple[int, int] | None:
        """Return the operator and port an input comes from; None for a leaf of the graph."""
        found = self.producer.get(self.operators[at].inputs[position][1])
        return None if found is None or found[0] == at else found

    def label(self, at: int) -> str:
        """Return the label of an operator: its type and its first output."""
        outputs = self.outputs(at)
        return f"{self.operators[at].type} {outputs[0]}" if outputs else self.operators[at].type

    def value(self, name: str) -> OutlineValue | None:
        """Return a value by name, if the graph describes it."""
        return self.graph.values.get(name)
