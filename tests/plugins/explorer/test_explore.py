"""A cell in Model Explorer: its server is started on results of real runs, and asked for graphs and overlays.

Model Explorer and Arm's adapters have an environment of their own (``nox -s explore``); `PYTHON` names its Python.
Where it is not set, the tests that need it are skipped and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from executorch_goldens import cli
from tests import DATA, REPOSITORY
from tests.support.commands import ended
from tests.support.runner import Runner

#: Each starts a server.
pytestmark = pytest.mark.slow

PYTHON = "EXECUTORCH_GOLDENS_EXPLORE_PYTHON"
STOCK = DATA / "report_results" / "stock"
PAYLOADS = DATA / "payloads"
#: The transpose of the concatenation in 1.2.0.
TRANSPOSED = "ToTosaMemoryFormatPass"
#: An operator of a cell, and what made it.
MADE = {
    "tosa-int/linear": ("CONV2D", "RewriteConvPass"),
    "xnnpack-fp32/linear": ("XNNFullyConnected", "exported"),
}
MAIN = "import sys; from executorch_goldens.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def python() -> str:
    """The Python of the environment that has Model Explorer."""
    if not os.environ.get(PYTHON):
        pytest.skip(f"{PYTHON} names no Python that has Model Explorer: nox -s tests does")
    return os.environ[PYTHON]


def command(python: str, *words: object) -> list[str]:
    return [python, "-u", "-c", MAIN, "show", "--explore", *map(str, words)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


class Page:
    """The page of Model Explorer: the server's answer for each name in its address."""

    def __init__(self, address: str) -> None:
        self.server = address.partition("/?")[0]
        (text,) = parse_qs(urlsplit(address).query)["data"]
        self.data: dict[str, Any] = json.loads(text)

    def graphs(self) -> dict[str, dict[str, Any]]:
        """Return the first graph of each model, by name of the model."""
        found = {}
        for model in self.data["models"]:
            read = self.asked(f"/api/v1/read_text_file?path={quote(model['url'])}")
            collection = json.loads(read["content"])
            found[Path(model["url"]).stem] = collection["graphs"][0]
        return found

    def overlays(self, model: str) -> dict[str, Mapping[str, Any]]:
        """Return the values of each overlay of a model, by node."""
        found = {}
        for index, source in enumerate(self.data["nodeData"]):
            if self.data["nodeDataTargets"][index] == f"{model}.json":
                content = json.loads(self.asked(f"/api/v1/load_node_data?node_data_index={index}")["content"])
                (graph,) = content.values()
                found[source.split("/")[2]] = {key: each["value"] for key, each in graph["results"].items()}
        return found

    def asked(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.server}{path}", timeout=30) as answer:
            return json.load(answer)


@contextmanager
def served(python: str, *words: object) -> Iterator[tuple[Page, str]]:
    """Start the server, yield its page and its output so far, and end it as a person does."""
    port = free_port()
    words = (*words, "--port", port, "--no-browser")
    # The addresses of this machine need no proxy.
    with subprocess.Popen(
        command(python, *words),
        cwd=REPOSITORY,
        env={**environment(), "no_proxy": "localhost"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # What is started in the background of a shell ignores it, and all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            if line.startswith("http://"):
                break
            printed += line
        else:
            pytest.fail(f"no server: {printed}")
        try:
            yield Page(line.strip()), printed
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == cli.SAME


def operators(graph: Mapping[str, Any]) -> list[str]:
    return [node["label"] for node in graph["nodes"] if node["namespace"] and node["label"].isupper()]


def test_a_corrupt_cell_stands_beside_its_golden_with_error_pass_and_what_differs(
    python: str, tmp_path: Path
) -> None:
    shutil.copytree(STOCK / "1.2.0", tmp_path / "1.2.0")
    made = tmp_path / "1.2.0" / "tosa-int" / "cat-h-v" / "seed0-heap0"
    shutil.copy(PAYLOADS / "cat-h-v-1.2.0.tosa", made / "delegate_0.bin")
    with served(python, "tosa-int/cat-h-v", "--sweeps", tmp_path) as (page, _):
        graphs = page.graphs()
        panes = page.data["uiState"]["paneStates"]
        now, golden = page.overlays("now"), page.overlays("golden")
        adapted = page.overlays("delegate_0.tosa by tosa adapter")
    assert [pane["selectedGraphId"] for pane in panes] == ["golden", "now"]
    assert list(graphs) == ["golden", "now", "delegate_0.tosa by tosa adapter"]
    assert operators(graphs["now"]) == operators(graphs["golden"]) == ["CONST", "TRANSPOSE"]
    const, transpose = (node["id"] for node in graphs["now"]["nodes"] if node["namespace"])
    # What is the same has one id on both sides.
    assert [node["id"] for node in graphs["golden"]["nodes"]] == [
        node["id"] for node in graphs["now"]["nodes"]
    ]
    assert now["compared"] == golden["compared"] == {const: "changed", transpose: "same"}
    assert now["pass"] == {const: "FuseConstantArgsPass"}
    assert now["pass of origin"] == {const: "FuseConstantArgsPass", transpose: TRANSPOSED}
    assert golden["pass of origin"] == {transpose: TRANSPOSED}
    assert adapted["pass of origin"] == {"main/op0": "FuseConstantArgsPass", "main/op1": TRANSPOSED}
    # The report of the same results says 94.9 times.
    assert {node: round(used, 1) for node, used in now["part of tolerance"].items()} == {
        "output 0": 94.9,
        const: 94.9,
    }
    assert "part of tolerance" not in golden
    assert adapted["compared"] == {"main/op0": "changed", "main/op1": "same"}
    # From the constant to the output of the program.
    edges = {
        node["id"]: [edge["sourceNodeId"] for edge in node["incomingEdges"]]
        for node in graphs["now"]["nodes"]
    }
    assert edges[transpose] == [const]
    assert transpose in edges[edges["output 0"][0]]


def test_variations_that_disagree_stand_side_by_side(python: str) -> None:
    with served(python, "tosa-fp/two-delegates", "--sweeps", STOCK, "--release", "1.2.0") as (page, _):
        panes = [pane["selectedGraphId"] for pane in page.data["uiState"]["paneStates"]]
        graphs = page.graphs()
    assert panes == list(graphs) == ["seed0-heap0", "seed4-heap1"]
    namespaces = {node["namespace"] for node in graphs["seed0-heap0"]["nodes"]}
    assert namespaces == {"", "delegate_0", "delegate_1"}


def test_a_stable_cell_is_one_graph_with_its_error(python: str) -> None:
    with served(python, "tosa-fp/linear", "--sweeps", STOCK, "--release", "1.2.0") as (page, printed):
        (name,) = page.graphs()
        overlays = page.overlays(name)
    assert name == "golden and run"
    assert list(overlays) == ["part of tolerance"]
    line = "pass of origin: not recorded: goldens run --cell tosa-fp/linear --origins records it\n"
    assert printed.count(line) == 1
    assert 0 <= overlays["part of tolerance"]["output 0"] <= 1


def test_a_cell_that_was_just_exported_is_shown_by_the_adapters_as_well(python: str, runner: Runner) -> None:
    cells = ("tosa-int/linear", "xnnpack-fp32/linear")
    words = ("--models", "models", "--variations", "2", "--origins")
    finished = runner(*words, *(f"--cell={cell}" for cell in cells))
    assert set(finished.verdicts().values()) == {"new"}
    for cell in cells:
        words = (cell, "--sweeps", runner.sweeps.parent, "--goldens", runner.goldens)
        with served(python, *words) as (page, printed):
            graphs = page.graphs()
            made = page.overlays("now")["pass of origin"]
        assert "not shown" not in printed
        assert "not recorded" not in printed
        labels = {node["id"]: node["label"] for node in graphs["now"]["nodes"]}
        operator, maker = MADE[cell]
        assert {made[node] for node, label in labels.items() if label == operator} == {maker}
        # Whatever a delegate holds, its inputs aside.
        assert made.keys() == {
            node["id"] for node in graphs["now"]["nodes"] if node["namespace"] and node["label"] != "input"
        }
        tosa = ["delegate_0.tosa by tosa adapter"] if cell.startswith("tosa") else []
        assert list(graphs) == ["now", "program.pte by pte adapter", *tosa]
        if tosa:
            assert operators(graphs["now"]) == operators(graphs[tosa[0]])


# Refused


def refused(python: str, words: Sequence[object], *facts: object) -> None:
    """Assert that a command is refused by one line that states `facts`."""
    done = ended(command(python, *words), env=environment())
    assert (done.returncode, done.stdout) == (cli.ERROR, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for fact in facts:
        assert str(fact) in done.stderr


def test_bad_input_is_one_error(python: str, tmp_path: Path) -> None:
    refused(python, ["tosa-fp/nothing", "--sweeps", STOCK], "no results of tosa-fp/nothing", "run it")
    refused(python, ["tosa-fp/linear", "--sweeps", STOCK], "on 1.2.0, 1.3.1", "name one with --release")
    words = ["tosa-fp/linear", "--sweeps", STOCK, "--release", "1.5.1"]
    refused(python, words, "no results of tosa-fp/linear on 1.5.1")
    refused(python, ["tosa-fp/linear", "--sweeps", tmp_path], tmp_path, "has no run.json")
    words = ["tosa-int/cat-h-v", "--sweeps", STOCK, "--release", "1.2.0", "--no-browser", "--port"]
    with closing(socket.socket()) as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(python, [*words, port], f"port {port} cannot be used", "name another with --port")
    refused(python, [*words, 99999], "port 99999 cannot be used")


def test_without_model_explorer_the_error_says_what_to_install() -> None:
    code = f"import sys; sys.modules['model_explorer'] = None; {MAIN}"
    words = (sys.executable, "-c", code, "show", "--explore", "tosa-fp/linear")
    done = ended(words, env=environment())
    assert (done.returncode, done.stdout) == (cli.ERROR, "")
    assert "nox -s explore has it, or install 'executorch-goldens[explore]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
