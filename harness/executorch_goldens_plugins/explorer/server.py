"""Model Explorer's server, with graphs and overlays that are made already."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote

import model_explorer
from model_explorer.config import ModelExplorerConfig
from model_explorer.graph_builder import Graph, GraphCollection
from model_explorer.node_data_builder import GraphNodeData, ModelNodeData

from executorch_goldens.errors import CommandError

HOST = "localhost"


@dataclass(frozen=True)
class Model:
    """An entry of Model Explorer's list of graphs.

    Attributes
    ----------
    overlays
        Overlays by name, then by id of the graph.
    """

    name: str
    graphs: Sequence[Graph]
    overlays: Mapping[str, Mapping[str, GraphNodeData]] = field(default_factory=dict)


class _Config(ModelExplorerConfig):
    """A configuration that opens the first graphs side by side: only the address of the page can say so."""

    def __init__(self, panes: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.panes = panes

    def to_url_param_value(self) -> str:
        """Return the data in the page's address, as Model Explorer writes it."""
        data = {
            "models": self.model_sources,
            "nodeData": self.node_data_sources,
            "nodeDataTargets": self.node_data_target_models,
        }
        if len(self.panes) > 1:
            states = [
                {
                    "deepestExpandedGroupNodeIds": ["___all___"],
                    "selectedNodeId": "",
                    "selectedGraphId": graph,
                    "selectedCollectionLabel": label,
                    "widthFraction": 1 / len(self.panes),
                }
                for label, graph in self.panes
            ]
            data |= {"uiState": {"paneStates": states}, "sync": {"mode": "match_node_id"}}
        return quote(json.dumps(data))


def config(models: Sequence[Model], panes: int, folder: Path) -> ModelExplorerConfig:
    """Return Model Explorer's configuration.

    Parameters
    ----------
    panes
        Number of models side by side: one or two.
    folder
        Where the graphs are put as files, for as long as they are served.
    """
    made = _Config([(_label(model), model.graphs[0].id) for model in models[:panes]])
    for model in models:
        file = folder / _label(model)
        file.write_text(
            json.dumps(asdict(GraphCollection(_label(model), list(model.graphs)))), encoding="utf-8"
        )
        made.add_model_from_path(str(file))
        for name, of_graphs in model.overlays.items():
            made.add_node_data(name, ModelNodeData(dict(of_graphs)), model_name=file.name)
    return made


def _label(model: Model) -> str:
    return f"{model.name}.json"


def require_free(port: int) -> None:
    """Raise CommandError unless a server can listen on a port: Model Explorer would end, or take another."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise CommandError(f"port {port} cannot be used ({error}): name another with --port") from error


def serve(made: ModelExplorerConfig, port: int, browser: bool) -> None:
    """Serve until a person interrupts it."""
    # Model Explorer takes an interrupt only once it waits, which is a little after it has printed its address.
    with suppress(KeyboardInterrupt):
        model_explorer.visualize_from_config(made, host=HOST, port=port, no_open_in_browser=not browser)
