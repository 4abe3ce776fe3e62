"""Cases that are files: exported programs, and the parts of them that are not read."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim

from executorch_goldens.artifact import Cell, Failure, Lowered
from executorch_goldens.exporting import archives
from executorch_goldens.exporting.data import example_of
from executorch_goldens.exporting.entry import export
from executorch_goldens.exporting.files import cases_of
from executorch_goldens.judging import comparison, verdict
from executorch_goldens.judging.rightness import wrongs
from executorch_goldens.registry import Case, ZooError, load
from executorch_goldens.settings import config
from tests import REPOSITORY
from tests.support.making import outcome

pytestmark = pytest.mark.usefixtures("own_flatc")

#: The zoo's ``linear``, lowered for XNNPACK by 1.1.0.
PROGRAM = REPOSITORY / "tests" / "data" / "payloads" / "xnnpack-fp32-linear-1.1.0.pte"


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.by = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x: torch.Tensor, states: dict[str, torch.Tensor], times: int) -> torch.Tensor:
        return torch.relu(self.norm(self.linear(x))) * self.by + states["h"] * times


BATCH = Dim("batch", min=2, max=8)
FLOATS = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return FLOATS.standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``layer.pt2`` and ``layer.npz``."""
    folder = tmp_path_factory.mktemp("saved")
    inputs = (torch.from_numpy(drawn(3, 4)), {"h": torch.from_numpy(drawn(3, 4))}, 2)
    dynamic = {"x": {0: BATCH}, "states": {"h": {0: BATCH}}, "times": None}
    program = torch.export.export(Layer().eval(), inputs, dynamic_shapes=dynamic)
    torch.export.save(program, folder / "layer.pt2")
    arrays = {
        f"{name}/{key}": drawn(size, 4)
        for name, size in (("one", 3), ("two", 5))
        for key in ("x", "states.h")
    }
    np.savez(folder / "layer.npz", **arrays)
    return folder


def stated(folder: Path, *lines: str) -> list[Case]:
    """Return the cases of a table."""
    (folder / "pyproject.toml").write_text("\n".join(("[[tool.goldens.cases]]", *lines)) + "\n")
    found = config.load(folder)
    assert found.zoos(None) == ("executorch_goldens.exporting.files",)
    return list(cases_of(found.root, found.cases))


@pytest.mark.parametrize("target", ["xnnpack-fp32", pytest.param("xnnpack-int8", marks=pytest.mark.slow)])
def test_a_program_that_is_a_file_is_lowered_and_right(target: str, saved: Path) -> None:
    (case,) = stated(saved, 'file = "layer.pt2"', 'inputs = "layer.npz"')
    assert case.name == "layer"
    artifact = export(case, target)
    made = artifact.result
    assert isinstance(made, Lowered), made
    names = [sample.name for sample in made.samples]
    assert names[0] == "example"
    assert {"layer/two", "least", "largest"} <= set(names)
    assert "; recorded: layer/two" in comparison.numerics_line(artifact)
    with np.load(saved / "layer.npz") as arrays:
        (given,) = (sample for sample in made.samples if sample.name == "layer/two")
        assert given.outputs[0].shape == arrays["two/x"].shape
    assert verdict.objection(Cell(target, "layer"), [outcome(artifact, Cell(target, "layer"))]) is None


def test_a_folder_has_a_case_for_each_program(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    for name in ("a_b.pt2", "c.pt2", "c.npz"):
        (tmp_path / "some" / name).write_bytes((saved / f"layer{Path(name).suffix}").read_bytes())
    found = stated(tmp_path, 'folder = "some"', 'targets = ["xnnpack-fp32", "tosa-bf16"]')
    assert [case.name for case in found] == ["a-b", "c"]
    assert found[0].backends == ("xnnpack-fp32", "tosa-bf16")
    assert found[0].also == ("tosa-bf16",)
    # Without a file of inputs it is called as it was exported.
    assert example_of(found[0]).inputs[2] == 2
    assert not example_of(found[0]).recordings


def test_the_program_itself_is_lowered(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = stated(saved, 'file = "layer.pt2"', 'inputs = "layer.npz"')

    def none(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("it is exported again")

    monkeypatch.setattr("executorch_goldens.exporting.export.export_program", none)
    assert isinstance(export(case, "xnnpack-fp32").result, Lowered)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['file = "no.pt2"'], "there is no file no.pt2 in"),
        (['file = "layer.pt2"', 'inputs = "no.npz"'], "there is no file no.npz in"),
        (['file = "layer.npz"'], "layer.npz is no .pt2 file"),
        (['folder = "layer.pt2"', 'file = "layer.pt2"'], "each has either file or folder"),
        (['name = "some"'], "each has either file or folder"),
        (['folder = "."', 'name = "some"'], "a folder has no name and no inputs"),
        (['folder = "no"'], "there is no .pt2 file in"),
    ],
)
def test_files_that_are_not_there_are_one_clear_error(lines: list[str], said: str, saved: Path) -> None:
    with pytest.raises(ZooError) as error:
        stated(saved, *lines)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [(['fil = "a"'], "fil"), (['file = "a"', "targets = 5"], "targets"), (["file = 5"], "file")],
)
def test_a_table_of_another_form_is_one_clear_error(lines: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(config.ConfigError, match="cases") as error:
        stated(tmp_path, *lines)
    assert said in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + b"\0" * 18])
def test_a_damaged_archive_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "some.pt2").write_bytes(content)
    with pytest.raises(ZooError, match=r"some\.pt2 cannot be read as an exported program: ") as error:
        archives.read(tmp_path / "some.pt2")
    assert "\n" not in str(error.value)


# Archives that would run something


class Obeyed:
    """Makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.file),))


def changed(source: Path, target: Path, change: Callable[[str, bytes], bytes], **added: bytes) -> None:
    """Write an archive again, with other entries."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w") as after:
        top = before.namelist()[0].partition("/")[0]
        for name in before.namelist():
            after.writestr(name, change(name.partition("/")[2], before.read(name)))
        for name, content in added.items():
            after.writestr(f"{top}/{name}", content)


def saved_by_torch(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


HOSTILE = ("inputs", "weight", "constant", "script object", "opaque object", "older layout")


def hostile(kind: str, saved: Path, file: Path, obeyed: Path) -> str:
    """Write an archive with an entry that makes a file where it is unpickled; return the entry's name."""
    source, evil = saved / "layer.pt2", Obeyed(obeyed)
    if kind == "older layout":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("version", "8.8")
            archive.writestr("serialized_exported_program.json", "{}")
            for name in ("serialized_state_dict", "serialized_constants", "serialized_example_inputs"):
                archive.writestr(f"{name}.pt", saved_by_torch(evil))
        return "serialized_state_dict.pt"
    if kind == "inputs":
        changed(source, file, lambda name, was: saved_by_torch(evil) if "sample_inputs" in name else was)
        return "data/sample_inputs/model.pt"
    of_weights = kind == "weight"
    table = "model_weights_config.json" if of_weights else "model_constants_config.json"
    path = {
        "weight": "weight_0",
        "constant": "tensor_0",
        "script object": "custom_obj_0",
        "opaque object": "opaque_obj_0",
    }[kind]
    content = saved_by_torch(evil) if kind in ("weight", "constant") else pickle.dumps(evil)

    def change(name: str, was: bytes) -> bytes:
        if name.endswith(table):
            entries = json.loads(was)
            for entry in entries["config"].values():
                entry.update(path_name=path, use_pickle=True)
            return json.dumps(entries).encode()
        return content if name.endswith(f"/{path}") else was

    there = [name.rpartition("/")[2] for name in zipfile.ZipFile(source).namelist()]
    folder = "data/weights" if of_weights else "data/constants"
    changed(source, file, change, **({} if path in there else {f"{folder}/{path}": content}))
    return f"{folder}/{path}"


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_a_hostile_archive_runs(kind: str, saved: Path, tmp_path: Path) -> None:
    file, obeyed = tmp_path / "evil.pt2", tmp_path / "obeyed"
    entry = hostile(kind, saved, file, obeyed)
    with pytest.raises(ZooError) as error:
        archives.read(file)
    assert not obeyed.exists()
    assert str(error.value).startswith("evil.pt2 cannot be read as an exported program: ")
    if kind != "opaque object" or "opaque" in str(error.value):
        assert entry in str(error.value)


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind not in ("script object", "opaque object")])
def test_torch_itself_runs_it(kind: str, saved: Path, tmp_path: Path) -> None:
    file, obeyed = tmp_path / "evil.pt2", tmp_path / "obeyed"
    hostile(kind, saved, file, obeyed)
    with contextlib.suppress(Exception):
        torch.export.load(file)
    if kind != "older layout":
        assert obeyed.exists()


def test_compiled_code_is_refused(saved: Path, tmp_path: Path) -> None:
    changed(
        saved / "layer.pt2",
        tmp_path / "x.pt2",
        lambda _, was: was,
        **{"data/aotinductor/model/a.so": b"code"},
    )
    with pytest.raises(ZooError, match=r"x\.pt2 cannot .*data/aotinductor/model/a\.so is compiled code"):
        archives.read(tmp_path / "x.pt2")


def test_an_expression_of_sizes_is_not_evaluated_as_python(saved: Path, tmp_path: Path) -> None:
    obeyed = tmp_path / "obeyed"

    def change(name: str, was: bytes) -> bytes:
        text = was.decode("utf-8", "replace")
        found = text.partition('"expr_str": "')[2].partition('"')[0] if name == "models/model.json" else ""
        evil = f"__import__('os').mkdir('{obeyed}')"
        return text.replace(f'"expr_str": "{found}"', f'"expr_str": "{evil}"').encode() if found else was

    changed(saved / "layer.pt2", tmp_path / "x.pt2", change)
    with pytest.raises(ZooError, match="is no expression of sizes"):
        archives.read(tmp_path / "x.pt2")
    assert not obeyed.exists()


@pytest.mark.parametrize(
    "text", ["a.b", "s0.real", "f(1)", "'a'", "s0[0]", "__import__", "lambda: 1", "exec"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(archives.RefusedError):
        archives.require_size(text)


def test_reading_leaves_torch_as_it_was(saved: Path) -> None:
    import sympy  # type: ignore[import-untyped]

    before = (torch.load, sympy.sympify, pickle.loads)
    archives.read(saved / "layer.pt2")
    assert before == (torch.load, sympy.sympify, pickle.loads)


# Programs that are files


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a folder with a ``.pte``, its inputs and its outputs."""
    example = example_of(load(("models",))["linear"])
    (tmp_path / "linear.pte").write_bytes(PROGRAM.read_bytes())
    np.savez(tmp_path / "in.npz", *(tensor.numpy() for tensor in example.inputs))
    with torch.no_grad():
        np.savez(tmp_path / "out.npz", example.module(*example.inputs).numpy())
    return tmp_path


PTE = ('file = "linear.pte"', 'inputs = "in.npz"', 'outputs = "out.npz"')


def test_a_program_that_is_a_file_is_run_and_right(program: Path) -> None:
    (case,) = stated(program, *PTE, "bound = 0.001")
    assert (case.name, case.is_build) == ("linear", True)
    made = export(case, "built").result
    assert isinstance(made, Lowered), made
    assert made.pte == PROGRAM.read_bytes()
    assert [sample.name for sample in made.samples] == ["recorded"]
    assert list(wrongs(made)) == []


def test_a_program_that_gives_something_else_than_it_did_is_wrong(program: Path) -> None:
    with np.load(program / "out.npz") as arrays:
        np.savez(program / "out.npz", arrays["arr_0"] + 1.0)
    (case,) = stated(program, *PTE)
    made = export(case, "built").result
    assert isinstance(made, Lowered)
    assert next(wrongs(made)).startswith("output 0 (recorded) float32")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (PTE[:2], "linear.pte has no outputs: name an .npz file"),
        ((*PTE[:2], 'outputs = "other.npz"'), "there is no file other.npz in "),
        ((*PTE, 'targets = ["xnnpack-fp32"]'), "linear.pte is lowered: it has no targets and no backends"),
        (('file = "linear.pt2"', 'outputs = "out.npz"'), "outputs is of a .pte file alone"),
    ],
)
def test_what_does_not_fit_a_program_is_one_error(program: Path, lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(ZooError, match=re.escape(said)):
        stated(program, *lines)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("in.npz", b"no archive", "in.npz cannot be read as an .npz file"),
        ("linear.pte", b"ET12 and not much", "its bytes are no program (.pte)"),
    ],
)
def test_a_damaged_file_of_a_program_is_one_error(
    program: Path, name: str, content: bytes, said: str
) -> None:
    (program / name).write_bytes(content)
    (case,) = stated(program, *PTE)
    made = export(case, "built").result
    assert isinstance(made, Failure)
    assert said in made.message
