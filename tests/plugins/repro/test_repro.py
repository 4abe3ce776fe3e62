"""A script runs alone and shows its defect; a minimized one still does, and has nothing to spare."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import itertools
import os
import re
import sys
import sysconfig
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from executorch_goldens.artifact import (
    Altered,
    Casualty,
    Cell,
    Delegate,
    Exited,
    Failure,
    Killed,
    Lowered,
    Sample,
    Tensor,
    TimedOut,
)
from executorch_goldens.cli import ERROR, main
from executorch_goldens.decode import Schemas
from executorch_goldens.exporting.eager import FLOAT8
from executorch_goldens.exporting.numerics.quantizing import export_program
from executorch_goldens.plugins import Hint
from executorch_goldens.settings import releases
from executorch_goldens.settings.exports import default_interpreter
from executorch_goldens.toolchains.toolchain import Toolchain
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens_plugins.repro import reproduction
from executorch_goldens_plugins.repro.defect import Defect, NotShownError, find, fragment, signature
from executorch_goldens_plugins.repro.edited import EditedPackage
from executorch_goldens_plugins.repro.hints import hint
from executorch_goldens_plugins.repro.program import LISTED, GraphProgram, NoProgramError, literal
from executorch_goldens_plugins.repro.script import quantization, script
from executorch_goldens_plugins.repro.shrink import shrink
from tests import DATA
from tests.exports.test_nested_inputs import Rows, rows
from tests.support.commands import ended
from tests.support.making import failure, lowered, outcome, tosa
from tests.support.verdicts import verdict

PAYLOADS = DATA / "payloads"
CELL = Cell("tosa-fp", "two-delegates")
BOUNDS = 'torch.export.Dim("batch", min=2, max=6)'
SCHEMAS = tuple(map(str, Schemas.installed().places))

Refused = Callable[..., str]


def program(module: torch.nn.Module, *inputs: torch.Tensor, dynamic_shapes: Any = None) -> GraphProgram:
    exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic_shapes, strict=True)
    return GraphProgram.from_module(exported.module(check_guards=False), inputs, dynamic_shapes or ())


def calls(of: GraphProgram) -> list[str]:
    nodes = of.module.graph.nodes
    return [node.target.overloadpacket.__name__ for node in nodes if node.op == "call_function"]


class Chain(torch.nn.Module):
    """Operators after each other, a weight whose memory they share between elements, and a branch beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.1, 0.7, 3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inner = torch.sigmoid(torch.relu(x) * self.weight.expand(2, 3))
        return torch.neg(torch.tanh(inner)), torch.cat((inner, y), 1), torch.abs(y)


@functools.cache
def chain() -> GraphProgram:
    return program(
        Chain(), torch.linspace(-0.3, 0.4, 6).reshape(2, 3), torch.linspace(0.5, 0.9, 4).reshape(2, 2)
    )


# Minimizing


@pytest.mark.parametrize("needed", [{"sigmoid"}, {"relu", "neg"}, {"mul", "cat"}, {"relu", "tanh", "abs"}])
def test_what_is_minimized_keeps_the_calls_that_matter_and_no_other(needed: set[str]) -> None:
    small = shrink(chain(), lambda candidate: needed <= set(calls(candidate)))
    assert sorted(calls(small)) == sorted(needed)
    assert small.nodes < chain().nodes
    small.module(*small.inputs)


def test_a_call_and_what_it_feeds_are_not_torn_apart_where_that_matters() -> None:
    def shows(candidate: GraphProgram) -> bool:
        made = [node for node in candidate.module.graph.nodes if node.op == "call_function"]
        return any("tanh" in str(node.target) and node.args[0] in made for node in made)

    before, last = calls(shrink(chain(), shows))
    assert (before in ("sigmoid", "mul", "relu", "expand"), last) == (True, "tanh")


def test_inputs_of_one_kind_are_merged_and_values_become_plain() -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    small = shrink(
        program(Sum(), torch.rand(2, 3), torch.rand(2, 3)), lambda candidate: "add" in calls(candidate)
    )
    assert (len(small.inputs), small.nodes) == (1, 3)
    assert "inputs = (torch.ones(2, 3),)" in small.source()


def test_what_depends_on_no_input_becomes_a_constant() -> None:
    class Made(torch.nn.Module):
        def forward(self) -> torch.Tensor:
            return torch.linspace(0.0, 1.0, 4).reshape(2, 2).neg() + torch.ones(3, 1, 1).expand(3, 2, 2)

    small = shrink(
        program(Made()), lambda tried: len(calls(tried)) > 0 and tried.module(*tried.inputs)[0].dim() == 3
    )
    assert (len(calls(small)), small.nodes) == (1, 3)


class Product(torch.nn.Module):
    """A product whose shape neither factor has, and a computation on a weight alone."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(7, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.tanh(x @ self.weight).reshape(6), torch.neg(self.weight)


def test_a_cut_off_call_whose_result_nothing_replaces_becomes_an_input() -> None:
    def shows(candidate: GraphProgram) -> bool:
        return "tanh" in calls(candidate) and candidate.module(*candidate.inputs)[0].numel() == 6

    small = shrink(program(Product(), torch.ones(2, 7)), shows)
    assert (calls(small), small.nodes, small.inputs[0].shape) == (["tanh"], 3, (2, 3))


def test_only_programs_that_run_are_judged_none_twice_and_all_with_an_input() -> None:
    asked: list[str] = []

    def shows(candidate: GraphProgram) -> bool:
        asked.append(candidate.source())
        candidate.module(*candidate.inputs)
        assert candidate.inputs
        return {"neg", "reshape"} <= set(calls(candidate)) and "weight" in candidate.constants()

    small = shrink(program(Product(), torch.ones(2, 7)), shows)
    assert set(calls(small)) == {"neg", "reshape"}
    assert len(asked) == len(set(asked)) > 1


def test_a_graph_that_needs_no_input_keeps_one() -> None:
    whole = program(Product(), torch.ones(2, 7))
    graph = copy.deepcopy(whole.module.graph)
    (output,) = graph.find_nodes(op="output")
    output.args = (output.args[0][1:],)
    small = whole.with_graph(graph)
    assert (calls(small), small.names()) == (["neg"], ["x"])


def test_what_shows_nothing_smaller_stays_as_it_is() -> None:
    assert shrink(chain(), lambda candidate: False).source() == chain().source()


# Writing programs


def tensors() -> list[torch.Tensor]:
    large = torch.randn(LISTED + 1, generator=torch.Generator().manual_seed(0))
    return [
        *(torch.tensor(0.1), torch.tensor([0.1, -0.0, torch.inf, -torch.inf, torch.nan])),
        *(torch.zeros(2, 3), torch.full((2, 3), -0.0), torch.zeros(0, 3), torch.tensor([[1, -2], [3, 4]])),
        *(
            torch.tensor([True, False]),
            torch.ones(2, dtype=torch.bool),
            torch.tensor([1, 2], dtype=torch.int8),
        ),
        *(torch.tensor([0.1, 0.2], dtype=torch.float64), torch.tensor([0.1, 3.0], dtype=torch.bfloat16)),
        *(large, large.to(torch.bfloat16), large > 0, (torch.arange(40) % 17 / 8 - 1).reshape(4, 10)),
        *(torch.tensor([0.1, -0.0, 3.0]).to(torch.float8_e4m3fn), large.to(torch.float8_e5m2)),
        torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last),
        # One channel: only the strides tell.
        torch.arange(20.0).reshape(1, 4, 5, 1).permute(0, 3, 1, 2),
        torch.arange(6.0).reshape(2, 3).T,
    ]


@pytest.mark.parametrize("tensor", tensors(), ids=lambda tensor: f"{tensor.dtype}{list(tensor.shape)}")
def test_a_tensor_is_read_back_to_the_last_bit_and_in_its_layout(tensor: torch.Tensor) -> None:
    import base64
    import zlib

    names = {"torch": torch, "inf": torch.inf, "nan": torch.nan, "base64": base64, "zlib": zlib}
    back = eval(literal(tensor), names)
    assert (back.dtype, back.shape, back.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
    # torch replaces no NaN of float8.
    back, tensor = (x.float() if x.dtype in FLOAT8 else x for x in (back, tensor))
    assert torch.equal(back.isnan(), tensor.isnan())
    assert torch.equal(back.nan_to_num(7.0), tensor.nan_to_num(7.0))
    assert torch.equal(back.signbit(), tensor.signbit())


class Many(torch.nn.Module):
    """A parameter in a module, a buffer that changes and one whose name is taken, several results, an infinity."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int32))
        self.half_ = torch.ones(3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.calls.add_(1)
        first, second = torch.split(torch.cat((self.inner(x), y, self.half_.expand(2, 3))), [2, 4])
        return first + self.calls, second.to(torch.float64), torch.full((1,), float("inf"))


def test_the_model_that_is_written_computes_what_the_exported_one_does() -> None:
    module, inputs = Many(), (torch.randn(2, 3), torch.randn(3, 2).T)
    written: dict[str, Any] = {}
    exec(program(module, *inputs).file(), written)
    for _ in range(2):
        outputs = zip(written["Model"]()(*written["inputs"]), Many.forward(module, *inputs), strict=True)
        assert all(one.dtype == other.dtype and torch.equal(one, other) for one, other in outputs)
        module.calls.zero_()
    assert [name for name, _ in written["Model"]().named_parameters()] == ["inner_weight", "inner_bias"]


def test_a_long_assignment_is_broken_where_python_allows_it() -> None:
    large = torch.nn.Linear(30, 7)
    written: dict[str, Any] = {}
    exec(program(large, torch.ones(1, 30)).file(), written)
    assert torch.equal(written["Model"]().weight, large.weight)


def test_a_linear_layer_is_traced_from_the_function_that_partitioners_know() -> None:
    source = program(torch.nn.Linear(3, 3), torch.ones(2, 3)).source()
    assert "torch.nn.functional.linear(" in source


def test_dynamic_dimensions_are_written() -> None:
    batch = torch.export.Dim("batch", min=1, max=8)
    source = program(torch.nn.ReLU(), torch.ones(2, 3), dynamic_shapes=({0: batch},)).source()
    assert 'dynamic_shapes = ({0: torch.export.Dim("batch", min=1, max=8)},)' in source


def test_control_flow_is_refused_and_named() -> None:
    class Choice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with pytest.raises(NoProgramError, match="control flow"):
        program(Choice(), torch.ones(2))


# Writing scripts

DEFECTS = (
    *(
        Defect("raises", "failed", "E: no", stage, "E", 'a "part"')
        for stage in ("quantize", "lower", "emit", "run")
    ),
    Defect("follows-seed", "order-only", "they differ", seeds=(0, 4)),
    Defect("outputs", "corrupt", "output 0 is wrong", tolerances=(1e-5,)),
    Defect("slots", "corrupt", "one name in two slots"),
    Defect("alters", "corrupt", "lowering changed mask"),
    Defect("crashes", "crashed", "killed by SIGABRT", stage="run"),
)


@pytest.mark.parametrize("target", TARGETS)
def test_a_script_imports_what_it_uses_and_nothing_of_the_harness(target: str) -> None:
    release = releases.load().release("1.2.0")
    for defect, settings in itertools.product(DEFECTS, ("symmetric", "snorm-int8")):
        tree = ast.parse(script(chain(), defect, release, target, quantization(target, settings), ""))
        named = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        imported = {(name.asname or name.name).partition(".")[0] for node in named for name in node.names}
        loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        made = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        made |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        made |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        made |= {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name} | {"__file__"}
        assert imported <= loaded <= imported | made | set(dir(builtins))
        assert not {getattr(node, "module", None) for node in named} & {"executorch_goldens", "models"}


def test_settings_that_name_a_part_of_the_model_are_refused() -> None:
    with pytest.raises(NotShownError, match="int8-head"):
        quantization("tosa-int16", "int8-head")


# What is wrong with a cell


def giving(got: float = 1.0, *delegates: Delegate) -> Lowered:
    expected, actual = (Tensor.from_array(np.array([0.5, number], np.float32)) for number in (1.0, got))
    samples = (Sample("example", (expected,), (expected,)), Sample("zeros", (expected,), (actual,)))
    return lowered("graph", *delegates, pte=b"", samples=samples, bound=1e-5)


def test_the_same_program_with_different_outputs_is_nothing_that_two_seeds_show() -> None:
    found = [outcome(giving(got), CELL, f"seed{seed}-heap0") for seed, got in enumerate((1.0, 2.0))]
    with pytest.raises(NotShownError, match=r"is unstable .the same program gives different outputs"):
        find(CELL, found)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (giving(), "right under seed0-heap0: there is nothing to show"),
        (failure("no", "model"), "no exported graph"),
        (failure("no", "export"), "no exported graph"),
        (TimedOut(180.0, 180.1, 190.0, 0.0), "is timed-out"),
        (Exited(0), "is crashed"),
    ],
)
def test_what_no_script_can_show_is_refused(result: Lowered | Failure | Casualty, said: str) -> None:
    with pytest.raises(NotShownError, match=said):
        find(CELL, [outcome(result, CELL)])


def test_two_programs_follow_the_seeds_that_part() -> None:
    found = find(
        CELL,
        [
            outcome(lowered(graph), CELL, f"seed{seed}-heap0")
            for graph, seed in (("graph", 0), ("graph", 1), ("other", 4))
        ],
    )
    assert (found.kind, found.verdict, found.seeds) == ("follows-seed", "unstable", (0, 4))


def test_wrong_outputs_name_the_inputs_that_show_it() -> None:
    found = find(CELL, [outcome(giving(2.0), CELL)])
    assert (found.kind, found.sample, found.tolerances) == ("outputs", "zeros", (1e-5,))


def test_doubled_outputs_of_a_delegate_and_signals_are_found() -> None:
    payload = (PAYLOADS / "equal-buffers-1.2.0.tosa").read_bytes()
    found = find(CELL, [outcome(giving(1.0, tosa(payload)), CELL)])
    assert (found.kind, found.reason.endswith("is in 2 output slots")) == ("slots", True)
    found = find(CELL, [outcome(Killed("SIGABRT", tail=("last words",)), CELL)])
    assert (found.kind, found.reason, found.seeds) == ("crashes", "killed by SIGABRT", (0,))


def test_what_lowering_changed_of_the_model_is_found() -> None:
    before, after = (Tensor.from_array(np.float32([number])) for number in (-np.inf, -255.0))
    changed = replace(lowered(), altered=(Altered("mask", before, after, "SomePass"),))
    found = find(CELL, [outcome(changed, CELL)])
    assert (found.kind, found.verdict) == ("alters", "corrupt")
    assert found.reason == "lowering changed the model that it was given, in SomePass"


def test_a_failure_that_names_another_node_under_another_seed_is_one() -> None:
    messages = ["constant data node 'a_1' is tagged twice", "constant data node 'b_2' is tagged twice"]
    failures = [failure(message, type="executorch.SomeError") for message in messages]
    found = find(CELL, [outcome(each, CELL, f"seed{seed}-heap0") for seed, each in enumerate(failures)])
    assert (found.kind, found.type, found.fragment) == ("raises", "SomeError", "constant data node")


def test_reasons_are_compared_without_names_and_numbers() -> None:
    one = "RuntimeError: Output node 'aten_permute_copy_default' is in [a, b_1] 3 times"
    assert signature(one) == signature("RuntimeError: Output node 'x' is in [] 12 times")
    assert signature(one) != signature("RuntimeError: Input node 'x' is in [] 12 times")
    assert fragment("node 'a' must not be called at line 3") == "must not be called at line"
    assert fragment("'a' in 'b'") == ""


# The command


@pytest.fixture
def refused(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refused:
    """Run the command; return the one line that it refuses with, after a look that it wrote nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["models"]\n')

    def run(*arguments: str) -> str:
        before = {path: path.read_bytes() for path in tmp_path.glob("*") if path.is_file()}
        assert main(["repro", *arguments]) == ERROR
        assert before == {path: path.read_bytes() for path in tmp_path.glob("*") if path.is_file()}
        captured = capfd.readouterr()
        # torch warns of itself, in processes that import it again.
        (_,) = (line for line in captured.err.splitlines() if not re.match(r"W\d{4} ", line))
        assert not captured.out
        return captured.err

    return run


def test_a_toolchain_that_is_another_release(refused: Refused, release: str) -> None:
    other = next(version for version in releases.load().releases if version != release)
    said = refused(other, "tosa-fp/add", "--toolchain", sys.executable)
    assert f"is ExecuTorch {release}, and not {other}" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("0.9 tosa-fp/add", "'0.9' is not in releases.toml: it knows 1.1.0"),
        ("RELEASE tosa-fp", ": 'tosa-fp' is not TARGET/CASE"),
        ("RELEASE tosa/two-delegates", "unknown target 'tosa'"),
        ("RELEASE tosa-fp/two-delegate", "did you mean two-delegates"),
        ("RELEASE tosa-fp/two-*", "cells; name one"),
        ("RELEASE CELL --variations 0,x", "'x'"),
        ("RELEASE CELL --toolchain /nowhere/python", "/nowhere/python"),
        ("RELEASE CELL --models nothing_here", "nothing_here"),
        ("RELEASE CELL -o nowhere/script.py", "nowhere"),
        ("RELEASE CELL -o mine.py", "mine.py exists"),
    ],
)
def test_a_command_that_cannot_be_followed(
    refused: Refused, release: str, tmp_path: Path, arguments: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text("mine")
    assert said in refused(*arguments.replace("RELEASE", release).replace("CELL", str(CELL)).split())


def test_the_command_runs_in_the_environment_of_the_release(
    refused: Refused, release: str, tmp_path: Path
) -> None:
    venv.create(tmp_path / "other")
    (there,) = (tmp_path / "other").glob("lib/python*/site-packages")
    (there / "ours.pth").write_text(sysconfig.get_path("purelib"))
    (there / "only_there.py").write_text("")
    (tmp_path / "other" / "bin" / "flatc").touch()
    arguments = ["-t", str(tmp_path / "other" / "bin" / "python"), "--models", "only_there"]
    assert "only_there: no case is registered there" in refused(release, str(CELL), *arguments)


#: Scripts that do not show the same each time, as those do that read what was freed.
COUNTED = "import pathlib, sys\nfile = pathlib.Path({file!r})\nfile.write_text(file.read_text() + '.')\n"
EVERY_OTHER_TIME = (
    "odd = len(file.read_text()) % 2\nprint('shown' if odd else 'not reproduced')\nsys.exit(odd)"
)
SOMETHING_ELSE = (
    "print('output 0 is wrong' if len(file.read_text()) < 5 else 'killed by SIGABRT')\nsys.exit(1)"
)


def test_a_script_is_run_five_times_before_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    file.touch()
    text = COUNTED.format(file=str(file)) + "print(f'output {len(file.read_text())} is wrong')\nsys.exit(1)"
    assert reproduction.confirm(text, default_interpreter()) == "output 1 is wrong"
    assert file.read_text() == "....."


def test_a_script_holds_the_program_for_as_long_as_it_runs() -> None:
    release = releases.load().release("1.4.1")
    text = script(chain(), DEFECTS[5], release, "xnnpack-fp32", quantization("xnnpack-fp32", "symmetric"), "")
    assert "_from_buffer(buffer)" in text
    assert "_from_buffer(edge" not in text
    # Not kernels that an import of something else may bring.
    assert text.index('pybindings.portable_lib",\n') < text.index('executorch.kernels.quantized",\n')


def test_a_script_of_an_edited_release_carries_the_edit_and_refuses_another_executorch(
    tmp_path: Path,
) -> None:
    base, head = (tmp_path / name for name in ("1.4.1-ab", "1.4.1-ab-cd"))
    for folder in (base, head):
        (folder / "lib/python3.11/site-packages/executorch/exir").mkdir(parents=True)
    own, was = (folder / "lib/python3.11/site-packages/executorch/exir" for folder in (head, base))
    (was / "same.py").write_text("same\n")
    os.link(was / "same.py", own / "same.py")
    (was / "scale.py").write_text("scale = 1\nzero = 0\n")
    (own / "scale.py").write_text("scale = 2\nzero = 0\n")
    release = releases.load().release("1.4.1")
    toolchain = Toolchain("any", head / "bin" / "python", own, release)
    assert EditedPackage.from_toolchain(toolchain, "") is None
    edited = EditedPackage.from_toolchain(toolchain, "/sources at 0123456789ab")
    assert list(edited.files) == ["exir/scale.py"]
    settings = quantization("xnnpack-fp32", "symmetric")
    text = script(chain(), DEFECTS[5], release, "xnnpack-fp32", settings, "", edited)
    assert text.startswith('"""ExecuTorch 1.4.1 with the sources of /sources at 0123456789ab, xnnpack-fp32: ')
    assert "\n#| --- a/exir/scale.py\n" in text
    assert "\n#| -scale = 1\n#| +scale = 2\n" in text
    (tmp_path / "script.py").write_text(text)
    done = ended([sys.executable, tmp_path / "script.py"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "not tried: exir/scale.py of this ExecuTorch is not that of /sources at 0123456789ab\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('not reproduced')", "ends with 0 and says: not reproduced"),
        ("raise ValueError('not this')", "ends with 1 and says: ValueError: not this"),
        ("while True: pass", r"still running after 1\S* s of processor time"),
        (EVERY_OTHER_TIME, "ends with 0 and says after it showed the defect 1 times: not reproduced"),
        (SOMETHING_ELSE, r"says different things: output 0 is wrong \| killed by SIGABRT"),
    ],
)
def test_a_script_that_shows_nothing_by_itself_is_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, said: str
) -> None:
    monkeypatch.setattr(reproduction, "SCRIPT_LIMIT", 1.0 if "while" in text else 60.0)
    (tmp_path / "runs").touch()
    if "file." in text:
        text = COUNTED.format(file=str(tmp_path / "runs")) + text
    with pytest.raises(NotShownError, match=said):
        reproduction.confirm(text, default_interpreter())


def finished(script: Path) -> tuple[int, str]:
    """Run a script as its reader would, with nothing of this project in reach."""
    run = ended([sys.executable, "-I", script], script.parent, env={"PATH": "/usr/bin"})
    return run.returncode, run.stdout.strip()


@pytest.mark.slow
def test_a_script_shows_that_lowering_follows_the_hash_seed(tmp_path: Path, release: str) -> None:
    output = tmp_path / "script.py"
    assert main(["repro", release, str(CELL), "-o", str(output)]) == 0
    assert f"executorch=={release} " in output.read_text()
    # Seeds 0 and 1 give one order; that 0 and 4 do not was seen before the script was written.
    output.write_text(output.read_text().replace('("0", "4")', '("0", "1")'))
    assert finished(output) == (0, "not reproduced")


@pytest.mark.slow
def test_a_report_has_its_script_the_verdict_and_the_environment(tmp_path: Path, release: str) -> None:
    output = tmp_path / "issue.md"
    assert (
        main(["repro", release, "xnnpack-fp32/permute-contiguous-cumsum", "--issue", "-o", str(output)]) == 0
    )
    issue = output.read_text()
    assert issue.startswith("xnnpack-fp32: an export fails\n")
    assert "- Verdict of executorch-goldens: `failed`, RuntimeError: Output node" in issue
    stack = releases.load().releases[release].stack()
    assert all(f"- {name} {version}\n" in issue for name, version in stack.items())
    assert str(tmp_path) not in issue
    script = tmp_path / "script.py"
    script.write_text(issue.partition("````python\n")[2].partition("````\n")[0])
    code, seen = finished(script)
    assert code == 1
    assert f"  ```\n  {seen}\n  ```\n" in issue


@pytest.mark.slow
def test_a_minimized_script_shows_that_lowering_raises(
    tmp_path: Path, release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "script.py"
    cell = "xnnpack-fp32/permute-contiguous-cumsum"
    assert main(["repro", release, cell, "--minimize", "-o", str(output)]) == 0
    printed = capsys.readouterr().err
    assert "minimized from 6 nodes to 4" in printed
    assert "the script by itself: RuntimeError: Output node" in printed
    # One output less, and nothing is wrong.
    text = output.read_text()
    output.write_text(re.sub(r"return \((\w+), \w+\)", r"return (\1,)", text))
    assert output.read_text() != text
    assert finished(output) == (0, "not reproduced")


def test_a_target_made_by_a_function_has_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = replace(TARGETS["xnnpack-fp32"], name="outside", partitioner="a:b")
    monkeypatch.setattr("executorch_goldens.zoo.targets.available", lambda: {**TARGETS, "outside": outside})
    with pytest.raises(NotShownError, match=r"'outside' is made by a:b.*there is no script"):
        quantization("outside", "symmetric")


def test_a_script_calls_its_model_with_tensors() -> None:
    example = reproduction.taking_tensors(rows())
    assert example.call.is_plain
    assert torch.equal(example.module(*example.tensors), rows().call.run(Rows(), example.tensors))
    module = export_program(example.module, example).module(check_guards=False)
    program = GraphProgram.from_module(
        module, example.tensors, example.call.shapes(example.module, example.dynamic_shapes)
    )
    assert len(program.names()) == 6
    assert len(program.shapes()) == 6
    assert program.shapes()[3:] == ["None", "{0: " + BOUNDS + "}", "(" + BOUNDS + ", None,)"]


def test_a_corrupt_cell_proposes_the_command_with_its_toolchain() -> None:
    judged = verdict("corrupt", cell=Cell("tosa-int", "some-case"))
    command = "goldens repro 1.4.1 tosa-int/some-case"
    assert hint(judged, "1.4.1", ("goldens", "run")) == Hint(
        "repro", command, f"if it is a defect: {command} writes a script for an issue"
    )
    found = hint(judged, "1.4.1", ("goldens", "run", "-t", "1.4.1 + ../executorch"))
    assert found.command == f"{command} -t '1.4.1 + ../executorch'"


@pytest.mark.parametrize(("target", "name"), [("built", "corrupt"), ("tosa-int", "unstable")])
def test_other_cells_propose_none(target: str, name: str) -> None:
    assert hint(verdict(name, cell=Cell(target, "some-case")), "1.4.1", ()) is None
