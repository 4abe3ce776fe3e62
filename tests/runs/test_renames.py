"""Cells that differ from their goldens in names alone: red, or allowed by a repository; one cause."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from executorch_goldens.goldens import golden
from executorch_goldens.goldens.record import MANIFEST
from executorch_goldens.results import merging, proposals
from tests.conftest import Artifacts
from tests.support.making import lowered_by, renamed, with_graph, with_texts
from tests.support.runner import Finished, Runner

UPDATE = "--snapshot-update"
CALL = "executorch_call_delegate"
OTHERWISE = "delegated"


Settings = Callable[[str], Runner]


@pytest.fixture
def repository(runner: Runner, artifacts: Artifacts) -> Settings:
    """Write the settings of a repository of one case on two targets, whose goldens are recorded."""
    own = replace(runner, directory=runner.folder)
    own.zoo("own_zoo", "alpha", "beta")

    def settings(text: str) -> Runner:
        targets = 'targets = ["tosa-fp", "xnnpack-fp32"]'
        table = f'[tool.goldens]\nmodels = ["own_zoo"]\n{targets}\nvariations = "0,4"\n{text}\n'
        (own.folder / "pyproject.toml").write_text(table)
        return own

    own.answers({"*": artifacts["steady"][0]})
    finished = settings("")("--cell", "*/*", UPDATE)
    assert set(finished.verdicts().values()) == {"new"}, finished.output
    return settings


def counted(finished: Finished) -> str:
    """Return what the line of a run that counts its verdicts has of them."""
    (line,) = re.findall(r"^ExecuTorch \S+: ([^;\n]*)", finished.output, re.MULTILINE)
    return str(line)


@pytest.mark.slow
def test_a_renamed_cell_is_red_and_one_cause_whatever_the_pass(
    repository: Settings, artifacts: Artifacts
) -> None:
    steady = artifacts["steady"][0]
    own = repository("")
    cells = len(own.recorded())
    own.answers({"alpha": renamed(steady), "*": steady})
    before = own.files()
    finished = own()
    assert finished.code == 1
    assert finished.verdicts()["xnnpack-fp32/alpha"] == "renamed"
    many = sum(verdict == "renamed" for verdict in finished.verdicts().values())
    assert many == cells / 2 > 1
    assert counted(finished) == f"{many} renamed, {cells - many} stable"
    assert f"1. names alone: {many} cells, as {CALL} -> {OTHERWISE}; {many} renamed\n" in finished.output
    assert f"differs from its golden in 1 name alone, as {CALL} -> {OTHERWISE}\n" in finished.output
    assert 'allow = ["renames"] under [tool.goldens]' in finished.output
    assert own.files() == before
    assert len(list(proposals.find(own.folder / "sweeps"))) == many
    # It is accepted as any change.
    assert own(UPDATE).code == 0
    assert set(own().verdicts().values()) == {"stable"}


@pytest.mark.slow
def test_a_repository_may_allow_renames_and_its_goldens_stay(
    repository: Settings, artifacts: Artifacts
) -> None:
    steady = artifacts["steady"][0]
    own = repository('allow = ["renames"]')
    own.answers({"alpha": renamed(steady), "*": steady})
    before = own.files()
    for words in ((), (UPDATE,)):
        finished = own(*words, "-v")
        assert finished.code == 0, finished.output
        many = len(own.recorded()) // 2
        assert counted(finished) == f"{many} allowed renames, {many} stable"
        said = (
            rf"allowed rename: \S+/alpha differs from its golden in 1 name alone, as {CALL} -> {OTHERWISE}\n"
        )
        assert len(re.findall(said, finished.output)) == many, finished.output
        row = finished.rows["xnnpack-fp32/alpha"]
        assert (row["verdict"], row["accepted"], row["recorded"]) == ("renamed", True, False)
        assert own.files() == before
        assert not list(proposals.find(own.folder / "sweeps"))
        assert not list(own.sweeps.glob("*/alpha"))
        (part,) = merging.find([own.folder / "sweeps"]).values()
        assert not [row for each in part for row in each.rows if not row.accepted]
    own = repository("allow = []")
    assert own().code == 1


@pytest.mark.parametrize("allow", ["", 'allow = ["renames"]'])
def test_an_input_renamed_is_changed_whatever_is_allowed(
    repository: Settings, artifacts: Artifacts, allow: str
) -> None:
    own = repository(allow)
    steady = artifacts["steady"][0]
    own.answers({"*": with_graph(steady, re.sub(r"\binput_1\b", "input_2", lowered_by(steady).graph))})
    finished = own()
    assert finished.code == 1
    assert set(finished.verdicts().values()) == {"changed"}


@pytest.mark.parametrize(
    ("to", "verdict"), [(f"{CALL}_7", "order-only"), (OTHERWISE, "unstable")], ids=["number", "name"]
)
def test_variations_that_differ_in_names_alone_disagree_whatever_is_allowed(
    repository: Settings, artifacts: Artifacts, to: str, verdict: str
) -> None:
    own = repository('allow = ["renames"]')
    steady = artifacts["steady"][0]
    own.answers({"*": (steady, renamed(steady, to=to))})
    finished = own("--explain", "off")
    assert finished.code == 1
    assert set(finished.verdicts().values()) == {verdict}
    assert "names alone" not in finished.output


def test_a_golden_of_another_torch_differs_in_more_than_names(
    repository: Settings, artifacts: Artifacts
) -> None:
    own = repository('allow = ["renames"]')
    for path in own.root.glob("*/*"):
        texts = golden.read(path)
        manifest = re.sub(r"^torch: .*", "torch: 2.0.0", texts.texts()[MANIFEST], flags=re.MULTILINE)
        golden.write(path, with_texts(texts, {MANIFEST: manifest}))
    own.answers({"*": renamed(artifacts["steady"][0])})
    assert set(own().verdicts().values()) == {"changed"}


@pytest.mark.slow
def test_a_real_pass_that_names_nodes_otherwise_renames(runner: Runner) -> None:
    asked = ("--models", "tests.support.zoo_renames", "--cell", "tosa-fp/units", "--variations", "0,4")
    recorded = runner(*asked, "--patches", "none", UPDATE)
    assert recorded.code == 0, recorded.output
    finished = runner(*asked, "--patches", "names")
    assert finished.code == 1
    assert finished.verdicts() == {"tosa-fp/units": "renamed"}, finished.output
    assert "-> inner_tosa_" in finished.output
    assert " alone, as " in finished.output
