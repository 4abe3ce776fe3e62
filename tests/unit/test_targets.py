"""The table of targets, and additions of an installed distribution: targets, patches and payload formats."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import extensions
from executorch_goldens.artifact import Cell
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.running import selection
from executorch_goldens.running.selection import require_extensions
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens.toolchains.installed import Installed
from executorch_goldens.zoo import targets
from executorch_goldens.zoo.registry import Case
from executorch_goldens.zoo.targets import BUILD, TARGETS, Quantization, TargetError, UnknownTargetError
from tests.support.extending import distribution, path_with, python
from tests.support.runner import Runner
from tests.support.screens import screen

ZOO = """\
import torch

from executorch_goldens import Data, Example, case


@case(guards="GELU's approximation after a linear layer", also=("example-int8",), run_on=("example",))
def smooth(data: Data) -> Example:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    return Example(model, (data.tensor("x", 3, 4),))


@case(guards="GELU's approximation is not the exact GELU", backends=("example-operators",))
def gelu(data: Data) -> Example:
    return Example(torch.nn.GELU(approximate="tanh"), (data.tensor("x", 3, 4),))
"""


# The table


def test_every_target_is_called_by_its_name() -> None:
    assert {name: target.name for name, target in TARGETS.items()} == {name: name for name in TARGETS}


def test_an_unknown_target_is_named_with_those_there_are_and_the_way_to_add_one() -> None:
    with pytest.raises(UnknownTargetError, match=r"'tosa-fp8'.*tosa-fp, .*executorch_goldens\.targets"):
        targets.find("tosa-fp8")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "a/b", "name"),
        ("backend", "npu", "partitioner"),
        ("runs", "device", "'device'"),
        ("runs", "runtime", "reference-model"),
        ("runs", "eager", "reference-model"),
        ("simulator", "a:b", "only where runs is 'eager'"),
        ("lower", "a.b", "module:function"),
        *(("bound", bound, "bound") for bound in (float("nan"), 1e30, -1.0, True)),
        ("dtype", "fp16", "'fp16'"),
        ("specification", "", "specification"),
        ("quantizer", "a:b", "at most one"),
        ("partitioner", "a.b", "module:function"),
        ("quantization", Quantization(modules=("Linear",)), "torch.nn"),
    ],
)
def test_a_target_that_does_not_hold_together_is_refused(field: str, value: object, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        dataclasses.replace(TARGETS["tosa-int"], **{field: value})


def test_importing_the_table_imports_neither_torch_nor_executorch(installed: Path) -> None:
    code = "import sys; from executorch_goldens import patches; from executorch_goldens.zoo import targets; "
    code += "print(*targets.available(), *patches.available()); "
    code += "assert not {'torch', 'executorch'} & set(sys.modules)"
    made = python(code, installed)
    assert made.stdout.split() == [
        *(*TARGETS, BUILD, "example-int8", "example-operators"),
        *("partition-order", "unique-outputs", "list-qparams", "output-aliases"),
        *("folded-scales", "example-gelu"),
    ], made.stderr


# Entry points that are wrong


ASK = {
    "targets": "from executorch_goldens.zoo import targets; targets.available()",
    "patches": "from executorch_goldens import patches; patches.select('broken', [])",
    "decoders": "from executorch_goldens.decode import decode; decode(bytes(4) + b'NONE' + bytes(8))",
}
TARGET = """
import dataclasses
from executorch_goldens.zoo.targets import TARGETS
THING = dataclasses.replace(TARGETS["tosa-fp"], name={!r})
"""
FORMAT = "from executorch_goldens.decode import Format\nTHING = Format({!r}, {!r}, 'broken', None)\n"


@pytest.mark.parametrize(
    ("group", "name", "module", "facts"),
    [
        ("targets", "broken", "import no_such_module", ["cannot be imported", "no_such_module"]),
        ("targets", "broken", "OTHER = 1", ["cannot be imported", "THING"]),
        (
            "targets",
            "broken",
            "THING = 7",
            ["is of type int, not a Target of executorch_goldens.zoo.targets"],
        ),
        ("targets", "broken", TARGET.format("other"), ["'other'", "one name"]),
        ("targets", "broken", TARGET.format("Broken!"), ["'Broken!'", "name"]),
        ("targets", "tosa-fp", TARGET.format("tosa-fp"), ["one of the harness's own"]),
        (
            "patches",
            "broken",
            "THING = None",
            ["is of type NoneType, not a Patch of executorch_goldens.patches.patch"],
        ),
        ("decoders", "broken", "THING = len", ["not a Format of executorch_goldens.decode.formats"]),
        ("decoders", "broken", FORMAT.format("broken", b"TOSA1"), ["b'TOSA1'", "tosa of tosa-tools"]),
    ],
)
def test_a_broken_entry_point_is_one_error_with_its_distribution_and_the_way_out(
    tmp_path: Path, group: str, name: str, module: str, facts: list[str]
) -> None:
    place = distribution(tmp_path, group, name, "broken:THING", module)
    made = python(ASK[group], place)
    last = made.stderr.splitlines()[-1]
    assert last.startswith("executorch_goldens.extensions.ExtensionError: "), made.stderr
    for fact in (
        *facts,
        repr(name),
        "broken:THING",
        "broken 2.0",
        f"executorch_goldens.{group}",
        "uninstall broken",
    ):
        assert fact in last


def test_a_name_that_two_distributions_give_is_refused_with_both(tmp_path: Path) -> None:
    one = distribution(tmp_path, "targets", "broken", "broken:THING", TARGET.format("broken"))
    two = distribution(tmp_path, "targets", "broken", "broken:THING", TARGET.format("broken"))
    (two / "broken-2.0.dist-info").rename(two / "twin-3.0.dist-info")
    metadata = two / "twin-3.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("broken", "twin").replace("2.0", "3.0"))
    last = python(ASK["targets"], one, two).stderr.splitlines()[-1]
    assert "broken 2.0" in last
    assert "twin 3.0" in last


def test_what_is_not_asked_for_is_not_imported(tmp_path: Path) -> None:
    place = distribution(tmp_path, "targets", "broken", "broken:THING", "raise SystemError")
    code = "from executorch_goldens import patches; from executorch_goldens.zoo import targets; targets.find('tosa-fp')"
    code += "; patches.select('list-qparams', [])"
    assert python(code, place).returncode == 0


def test_an_exporting_environment_without_the_extension_is_refused(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Installed.probe(default_interpreter())
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(installed))
        extensions.points.cache_clear()
        cell = Cell("example-operators", "smooth")
        said = "example-extension 1.0.*the environment of .*install it there"
        with pytest.raises(UsageError, match=f"'example-operators' comes from {said}"):
            require_extensions(there, default_interpreter(), [cell], ())
        with pytest.raises(UsageError, match=f"'example-gelu' comes from {said}"):
            require_extensions(there, default_interpreter(), [], ["example-gelu"])
        require_extensions(there, default_interpreter(), [Cell("tosa-fp", "smooth")], ["list-qparams"])
    extensions.points.cache_clear()


# What the installed example adds


@pytest.mark.slow
def test_targets_and_a_patch_from_outside_are_exported_recorded_and_named(
    installed: Path, runner: Runner
) -> None:
    (runner.folder / "outside.py").write_text(ZOO)
    paths = path_with(runner.folder, installed)
    asked = ("--models", "outside", "--variations", "0,4", "--cell", "example-*/*")
    stock = runner(*asked, PYTHONPATH=paths)
    assert stock.verdicts() == {
        "example-operators/smooth": "new",
        "example-operators/gelu": "corrupt",
        "example-int8/smooth": "new",
    }, stock.output
    asked += ("--patches", "example-gelu", "--snapshot-update")
    patched = runner(*asked, PYTHONPATH=paths)
    assert set(patched.verdicts().values()) == {"new"}, patched.output
    assert runner.recorded() == set(patched.verdicts())
    texts = golden.read(golden.file_of(runner.root, Cell("example-operators", "smooth")))
    assert "patches: example-gelu\n" in texts.texts()["manifest"]
    # Two linear layers, the first with its ReLU: XNNPACK's partitioner as it comes makes one delegate of them.
    assert len([name for name in texts.texts() if re.fullmatch(r"delegate_\d.xnnpack", name)]) == 2


@pytest.mark.parametrize("also", ["tosa-fp", "tosa-bf16"])
def test_a_target_that_a_case_asks_for_in_vain_is_said(also: str, snapshot: SnapshotAssertion) -> None:
    case = Case("bold", "words", "asks for more", lambda data: None, backends=("tosa-fp",), also=(also,))  # type: ignore[arg-type, return-value]
    matrix = releases.load()
    with pytest.raises(UsageError) as raised:
        selection.cells_of([case], matrix.release(matrix.default))
    assert screen(str(raised.value)) == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("own_flatc")
def test_a_format_from_outside_is_decoded_and_without_it_the_known_ones_are_named(
    installed: Path, tmp_path: Path
) -> None:
    (flat_tensor,) = flat_tensors(tmp_path)
    command = (
        f"from executorch_goldens.cli import main; raise SystemExit(main(['decode', {str(flat_tensor)!r}]))"
    )
    known = python(command, installed)
    assert known.stdout.startswith(f"flat-tensor {flat_tensor.stat().st_size} bytes\n"), known.stderr
    assert "tensors = 2" in known.stdout
    unknown = python(command)
    assert unknown.returncode == 2
    assert "one of b'TOSA' (tosa), b'XH00' (xnnpack), b'ET12' (pte) expected, b'FT01' found" in unknown.stderr


def flat_tensors(folder: Path) -> list[Path]:
    """Export a linear layer whose weight and bias are kept apart from the program, and return the files of them."""
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge

    exported = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(1, 4),), strict=True)
    program = to_edge(exported).to_executorch(ExecutorchBackendConfig(external_constants=True))
    program.write_tensor_data_to_file(str(folder))
    return sorted(folder.glob("*.ptd"))


def test_a_broken_target_is_not_blamed_on_the_matrix_of_releases(tmp_path: Path) -> None:
    place = distribution(tmp_path, "targets", "broken", "broken:THING", "THING = 7")
    made = python("from executorch_goldens.settings import releases; releases.load()", place)
    last = made.stderr.splitlines()[-1]
    assert last.startswith("executorch_goldens.extensions.ExtensionError: entry point 'broken'"), made.stderr
    assert "releases.toml" not in last
