"""Files of a run in the form that Arm's adapters for Model Explorer read: TOSA payloads, and the program.

An adapter reads a payload before the server starts, so that one that it cannot read is named at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from model_explorer import Adapter
from model_explorer.graph_builder import Graph, GraphNode

from executorch_goldens.goldens.record import Record
from executorch_goldens_plugins.explorer import lowered

#: Modules of the adapters, by what they read. The adapter of programs hands VGF in them to the one for VGF.
PROGRAM, TOSA = "pte_adapter_model_explorer", "tosa_adapter_model_explorer"
#: Backends whose payload is a TOSA flatbuffer.
TOSA_BACKENDS = ("TOSABackend",)


@dataclass(frozen=True)
class Adapted:
    """The graphs that an adapter makes of a file.

    Attributes
    ----------
    name
        Name of the file and the adapter.
    delegate
        Number of the delegate; None for a program.
    graphs
        Empty where it cannot read the file.
    why
        Its message then.
    """

    name: str
    delegate: int | None
    graphs: list[Graph]
    why: str = ""

    def makers(self) -> Iterator[tuple[Graph, GraphNode, str]]:
        """Yield every node with the names of its results."""
        for graph in self.graphs:
            for node in graph.nodes:
                yield from ((graph, node, result.id) for result in node.outputsMetadata)


def adapted(folder: Path, record: Record) -> Iterator[Adapted]:
    """Yield the adapters' graphs of one variation's files.

    Parameters
    ----------
    record
        The artifact of the variation.
    """
    program = folder / "program.pte"
    if program.is_file():
        yield _read(program, program.name, None, PROGRAM)
    for number in lowered.delegates(record).values():
        backend = record.facts[f"delegate {number}"].split()[1]
        payload = folder / f"delegate_{number}.bin"
        if backend in TOSA_BACKENDS and payload.is_file():
            yield _read(payload, f"delegate_{number}.tosa", number, TOSA)


def _read(file: Path, name: str, delegate: int | None, module: str) -> Adapted:
    named = f"{name} by {module.partition('_')[0]} adapter"
    try:
        converted: dict[str, Any] = _adapter(module).convert(str(file), {})
    # An adapter may raise anything for a file that it does not know.
    except Exception as error:
        return Adapted(named, delegate, [], f"{type(error).__name__}: {error}")
    graphs = converted.get("graphs") or [
        graph for collection in converted.get("graphCollections", ()) for graph in collection.graphs
    ]
    return Adapted(named, delegate, graphs, "" if graphs else "it shows no graph of it")


def _adapter(module: str) -> Adapter:
    found = vars(import_module(f"{module}.main")).values()
    return next(
        each()
        for each in found
        if isinstance(each, type) and issubclass(each, Adapter) and each is not Adapter
    )
