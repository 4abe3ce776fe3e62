"""Shortcuts: the same bytes for less, nothing kept from one export for another, and a refusal where they do not fit."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from executorch_goldens import patches, releases
from executorch_goldens.artifact import Artifact, Cell, Failure, Lowered, Outcome
from executorch_goldens.patches import guard, shortcuts
from executorch_goldens.patches.guard import GuardError
from executorch_goldens.patches.shortcuts import SHORTCUTS, lazy_code
from executorch_goldens.patches.shortcuts.shortcut import by_release
from executorch_goldens.settings.exports import (
    EXPORT_TIMEOUT,
    Settings,
    default_interpreter,
    worker_environment,
)
from lab.shortcuts.command import Pair, pairs
from tests import REPOSITORY
from tests.support.runner import Runner

#: A cell of each family of targets, small ones; the last fails in each release, and grows as no other does.
CELLS = (
    *("tosa-fp/permute-sum", "tosa-int/linear", "tosa-int16/piecewise-units", "xnnpack-fp32/upsample"),
    *("xnnpack-int8/conv-bn-relu", "xnnpack-dynamic/linear", "tosa-fp+cf/condition", "xnnpack-fp32/lstm"),
)

#: 2**20 bytes that an export with shortcuts may take beyond one without: what its template keeps for all is in it.
MEMORY = 128


@pytest.fixture(scope="module")
def compared(release: str) -> list[Pair]:
    """Real exports with and without shortcuts."""
    names = patches.select("auto", releases.load().release(release).patches)
    settings = Settings(default_interpreter(), ("models",), names, 2, EXPORT_TIMEOUT)
    return list(pairs([Cell(*cell.split("/")) for cell in CELLS], (0,), settings))


@pytest.mark.slow
def test_exports_with_and_without_shortcuts_have_the_same_bytes(compared: list[Pair]) -> None:
    assert {str(pair.cell): pair.differing for pair in compared} == dict.fromkeys(CELLS, ())
    made = [pair.shortened.result for pair in compared]
    assert all(isinstance(artifact, Artifact) and artifact.shortcuts == tuple(SHORTCUTS) for artifact in made)
    assert all(
        isinstance(pair.without.result, Artifact) and not pair.without.result.shortcuts for pair in compared
    )


@pytest.mark.slow
def test_exports_with_shortcuts_are_cheaper_and_take_little_more_memory(compared: list[Pair]) -> None:
    before = sum(pair.without.core_seconds for pair in compared)
    assert sum(pair.shortened.core_seconds for pair in compared) < 0.85 * before
    for pair in compared:
        assert pair.shortened.peak_mb < pair.without.peak_mb + MEMORY


def test_any_difference_of_two_exports_is_named(artifacts: Mapping[str, tuple[Artifact, ...]]) -> None:
    (artifact, *_), (failed, *_) = artifacts["steady"], artifacts["does-not-lower"]
    made, failure, watched = artifact.result, failed.result, artifact.watched
    assert isinstance(made, Lowered)
    assert isinstance(failure, Failure)
    assert watched is not None
    renamed = replace(watched.passes[0], beyond="other names")
    others = {
        "graph": replace(artifact, result=replace(made, graph=made.graph + " ")),
        "pte": replace(artifact, result=replace(made, pte=made.pte + b" ")),
        "delegate 0": replace(artifact, result=replace(made, delegates=())),
        "outputs": replace(artifact, result=replace(made, samples=made.samples[1:])),
        "trace": replace(artifact, watched=replace(watched, passes=(renamed, *watched.passes[1:]))),
        "visitors": replace(artifact, watched=replace(watched, visitors=())),
    }
    for name, other in others.items():
        assert pair(artifact, other).differing == (name,)
    assert pair(artifact, replace(artifact, seconds=9.0)).differing == ()
    elsewhere = replace(failed, result=replace(failure, message="another"))
    assert pair(failed, elsewhere).differing == ("failure",)


def pair(one: Artifact, other: Artifact) -> Pair:
    cell = Cell("xnnpack-fp32", "steady")
    outcomes = [Outcome(cell, "seed0-heap0", artifact, 1.0, 100.0) for artifact in (one, other)]
    return Pair(cell, *outcomes)


@pytest.mark.slow
def test_an_export_is_the_same_whatever_was_exported_before_it_in_the_process(release: str) -> None:
    program = """
        from executorch_goldens.artifact import Lowered
        from lab.shortcuts.command import facts
        from executorch_goldens.exporting import compat, shortcuts, worker
        from executorch_goldens.exporting.entry import export
        from executorch_goldens.registry import load

        worker.set_kernels(1, False)
        zoo = load(("models",))
        shortcuts.install(tuple(shortcuts.SHORTCUTS), compat.installed_release())
        # The first export imports passes that the watch does not see before.
        worker.warm_up(["tosa-int", "xnnpack-fp32", "xnnpack-int8"])
        first = export(zoo["conv-bn-relu"], "xnnpack-int8")
        for case, target in (("linear", "tosa-int"), ("pads", "xnnpack-int8"), ("linear", "xnnpack-fp32")):
            export(zoo[case], target)
        assert isinstance(first.result, Lowered), first.result
        assert facts(first) == facts(export(zoo["conv-bn-relu"], "xnnpack-int8"))
    """
    run = subprocess.run(
        [default_interpreter(), "-c", textwrap.dedent(program)],
        cwd=REPOSITORY,
        env=worker_environment(default_interpreter(), 0),
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stderr[-3000:]


# Names and refusals


def test_every_shortcut_fits_the_release_that_is_installed(release: str) -> None:
    for shortcut in SHORTCUTS.values():
        guard.verify(guard.SHORTCUT, shortcut.name, shortcut.fits, release, shortcut.unguarded)


def test_every_shortcut_knows_every_release() -> None:
    for shortcut in SHORTCUTS.values():
        assert set(shortcut.fits) == (set() if shortcut.unguarded else set(releases.load().releases))


def test_every_shortcut_guards_functions_of_every_release_or_says_why_it_need_not() -> None:
    for shortcut in SHORTCUTS.values():
        guarded = {frozenset(functions) for functions in shortcut.fits.values()}
        # The same functions for each release: none is left out where a digest was forgotten.
        assert len(guarded) == (0 if shortcut.unguarded else 1), shortcut.name
        assert frozenset() not in guarded, shortcut.name


@pytest.mark.slow
def test_the_command_prints_every_digest_of_shortcuts_as_recorded_for_the_installed_release(
    release: str,
) -> None:
    command = [sys.executable, "-m", "executorch_goldens.patches"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    shown = {tuple(line.split()[1:4]) for line in printed if line.startswith("shortcut ")}
    assert shown == {
        (shortcut.name, *recorded)
        for shortcut in SHORTCUTS.values()
        for recorded in shortcut.fits.get(release, {}).items()
    }


def test_a_shortcut_fits_the_releases_that_every_function_has_a_digest_for() -> None:
    fits = by_release({"a:f": {"1": "1.5.1 9.9.9", "2": "1.4.1"}, "a:g": {"3": "1.4.1 9.9.9"}})
    assert fits == {"1.4.1": {"a:f": "2", "a:g": "3"}, "9.9.9": {"a:f": "1", "a:g": "3"}}


def test_what_names_no_function_and_says_why_fits_every_release() -> None:
    guard.verify(guard.SHORTCUT, "any", {}, "9.9.9", unguarded="it replaces nothing")


def unfit(known: dict[str, dict[str, str]], installed: list[str]) -> shortcuts.Shortcut:
    return shortcuts.Shortcut("unfit", "does not fit", known, lambda: installed.append("unfit"))


@pytest.mark.parametrize(
    ("known", "facts"),
    [
        ({}, ["not written for ExecuTorch 1.4.1"]),
        # No reason says why it names no function.
        ({"1.4.1": {}}, ["not written for ExecuTorch 1.4.1"]),
        ({"1.4.1": {"json:dumps": "0" * 64}}, ["json:dumps", "0" * 64]),
        ({"1.4.1": {"json:no_such": "0" * 64}}, ["json:no_such", "does not have"]),
    ],
    ids=["release", "no function", "digest", "missing"],
)
def test_a_shortcut_that_does_not_fit_is_refused_and_none_is_installed(
    known: dict[str, dict[str, str]], facts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []
    fits = shortcuts.Shortcut(
        "fits", "fits", {"1.4.1": {}}, lambda: installed.append("fits"), unguarded="it replaces nothing"
    )
    monkeypatch.setattr(shortcuts, "SHORTCUTS", {"fits": fits, "unfit": unfit(known, installed)})
    with pytest.raises(GuardError) as raised:
        shortcuts.install(("fits", "unfit"), "1.4.1")
    assert installed == []
    assert (raised.value.kind, raised.value.name) == (guard.SHORTCUT, "unfit")
    for fact in ("'unfit'", "1.4.1", "--no-shortcuts", *facts):
        assert fact in str(raised.value)


@pytest.mark.slow
def test_a_run_whose_release_has_another_source_is_one_clear_error(runner: Runner) -> None:
    runner.zoo("zoo_edited", "alpha")
    with (runner.folder / "zoo_edited.py").open("a") as module:
        # Every process that exports imports it.
        module.write(
            "from executorch_goldens.patches.shortcuts import SHORTCUTS\n"
            "for known in SHORTCUTS['lazy-code'].fits.values():\n"
            "    known['torch.fx.graph_module:GraphModule.recompile'] = 'another'\n"
        )
    options = ("--models", "zoo_edited", "--cell", "xnnpack-fp32/*", "--variations", "1")
    facts = ("'lazy-code'", "GraphModule.recompile", runner.release, "--no-shortcuts")
    runner(*options).refused(*facts)
    # Without it, the case itself is what fails: it has no model.
    without = runner(*options, "--no-shortcuts")
    assert without.verdicts() == {"xnnpack-fp32/alpha": "failed"}


# composite-operators, composite-overrides


@pytest.fixture
def collect(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Any]]:
    """The release's function that collects composite operators; what replaces it is taken out again."""
    from torch._export import utils
    from torch.export import decomp_utils, exported_program

    upstream = utils._collect_all_valid_cia_ops
    for module in (utils, decomp_utils, exported_program):
        monkeypatch.setattr(module, "_collect_all_valid_cia_ops", upstream)
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", utils._materialize_cpp_cia_ops)
    return upstream


@pytest.mark.usefixtures("collect")
def test_operators_are_looked_up_again_only_where_one_was_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._export import utils

    lookups = []
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", lambda: lookups.append("looked up"))
    SHORTCUTS["composite-operators"].install()
    known = utils._collect_all_valid_cia_ops()
    known.clear()
    assert utils._collect_all_valid_cia_ops()
    assert len(lookups) == 1
    library = torch.library.Library("test_shortcuts", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    utils._collect_all_valid_cia_ops()
    assert len(lookups) == 2


def test_operators_that_became_composite_are_collected(collect: Callable[[], set[Any]]) -> None:
    from torch._export import utils

    SHORTCUTS["composite-operators"].install()
    library = torch.library.Library("test_shortcuts", "FRAGMENT")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CPU")
    op = torch.ops.test_shortcuts.thrice.default
    assert op not in utils._collect_all_valid_cia_ops()
    op.py_impl(torch._C.DispatchKey.CompositeImplicitAutograd)(lambda x: x * 3)
    assert op in utils._collect_all_valid_cia_ops()
    library.define("thrice.more(Tensor x, int more) -> Tensor")
    library.impl("thrice.more", lambda x, more: x * more, "CompositeImplicitAutograd")
    assert torch.ops.test_shortcuts.thrice.more in utils._collect_all_valid_cia_ops() == collect()
    del op.py_kernels[torch._C.DispatchKey.CompositeImplicitAutograd]
    assert op not in utils._collect_all_valid_cia_ops()


Overriding = Callable[[Mapping[Any, Any]], contextlib.AbstractContextManager[None]]


@pytest.fixture
def overriding(monkeypatch: pytest.MonkeyPatch) -> tuple[Overriding, Overriding]:
    """The context manager that replaces composite operators' kernels: the release's, and the shortcut's."""
    from torch.export import exported_program

    upstream = exported_program._override_composite_implicit_decomp
    monkeypatch.setattr(exported_program, "_override_composite_implicit_decomp", upstream)
    SHORTCUTS["composite-overrides"].install()
    return upstream, exported_program._override_composite_implicit_decomp


def kernels(operators: Mapping[Any, Any]) -> dict[str, list[tuple[str, str]]]:
    """Return the Python kernels of `operators` in order, by their maker: each call makes other functions."""
    from torch._subclasses.fake_impls import op_implementations_dict

    return {
        op.name(): [
            *((str(key), described(kernel)) for key, kernel in op.py_kernels.items()),
            ("fake", str(op in op_implementations_dict)),
        ]
        for op in operators
    }


def described(kernel: Any) -> str:
    function = getattr(kernel, "func", kernel)
    return f"{function.__qualname__} {getattr(kernel, 'keywords', None)}"


def test_composite_kernels_are_those_of_the_release_and_are_taken_out_again(
    overriding: tuple[Overriding, Overriding],
) -> None:
    from torch._export.utils import _collect_all_valid_cia_ops

    upstream, shortened = overriding
    decompositions = dict.fromkeys(_collect_all_valid_cia_ops(), kernels)
    assert len(decompositions) > 300
    with upstream(decompositions):
        pass
    # From its first time on, the release has no rules for fake tensors of composite operators.
    before = kernels(decompositions)
    with upstream(decompositions):
        during = kernels(decompositions)
    for _ in range(2):
        with shortened(decompositions):
            assert kernels(decompositions) == during != before
        assert kernels(decompositions) == before


def test_an_operators_own_kernel_that_came_since_is_not_replaced(
    overriding: tuple[Overriding, Overriding],
) -> None:
    _, shortened = overriding
    op, key = torch.ops.aten.linear.default, torch._C.DispatchKey.CPU
    with shortened({op: kernels}):
        first = op.py_kernels[key]
    op.py_impl(key)(described)
    try:
        with shortened({op: kernels}):
            assert op.py_kernels[key] is described is not first
        assert op.py_kernels == {key: described}
    finally:
        del op.py_kernels[key]
        op._dispatch_cache.clear()


# quantize-shapes


def test_quantized_tensors_are_computed_once_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    ran = []
    dispatch = FakeTensorMode._dispatch_impl

    def counting(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        ran.append(func.name())
        return dispatch(self, func, types, args, kwargs)

    monkeypatch.setattr(FakeTensorMode, "_validate_cache_key", FakeTensorMode._validate_cache_key)
    monkeypatch.setattr(FakeTensorMode, "_dispatch_impl", counting)
    SHORTCUTS["quantize-shapes"].install()
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default

    def quantized(mode: FakeTensorMode, x: torch.Tensor, dtype: torch.dtype = torch.int8) -> torch.Tensor:
        with mode:
            made: torch.Tensor = quantize(mode.from_tensor(x), 0.5, 0, -128, 127, dtype)
        return made

    x = torch.zeros(61, 3, 5, 7)
    first = quantized(FakeTensorMode(), x)
    assert ran.count(quantize.name()) == 1
    again = quantized(FakeTensorMode(), x)
    assert ran.count(quantize.name()) == 1
    assert (again.dtype, again.shape, again.stride()) == (first.dtype, first.shape, first.stride())
    assert again is not first
    last = quantized(FakeTensorMode(), x.to(memory_format=torch.channels_last))
    assert last.stride() == (105, 1, 21, 3) != first.stride()
    assert quantized(FakeTensorMode(), x, torch.uint8).dtype is torch.uint8
    # What it refuses, it refuses each time.
    for _ in range(2):
        with pytest.raises(AssertionError, match="float32"):
            quantized(FakeTensorMode(), x.to(torch.int32))


# qat-patterns


def with_batch_norm(*operators: Any) -> torch.fx.GraphModule:
    """Return a graph of a batch norm and then `operators`, each of one argument, with a submodule that nothing uses."""
    graph = torch.fx.Graph()
    x, *states = (graph.placeholder(name) for name in ("x", "mean", "variance"))
    made = graph.call_function(
        torch.ops.aten.batch_norm.default, (x, None, None, *states, False, 0.1, 1e-5, True)
    )
    for operator in operators:
        made = graph.call_function(operator, (made,))
    graph.output(made)
    module = torch.fx.GraphModule({}, graph)
    module.add_submodule("unused", torch.nn.ReLU())
    return module


@pytest.mark.slow
def test_a_graph_without_training_patterns_is_left_as_the_release_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torchao.quantization.pt2e import qat_utils

    upstream = qat_utils._fold_conv_bn_qat_helper
    asked: list[Any] = []

    def counted(m: Any, conv_fn: Any, example_inputs: Any, is_cuda: bool) -> Any:
        asked.append(conv_fn)
        return upstream(m, conv_fn, example_inputs, is_cuda)

    def noted(m: Any, conv_fn: Any, example_inputs: Any, is_cuda: bool) -> Any:
        asked.append(conv_fn)
        return m

    monkeypatch.setattr(qat_utils, "_fold_conv_bn_qat_helper", counted)
    expected = qat_utils._fold_conv_bn_qat(with_batch_norm(torch.ops.aten.relu.default))
    assert len(asked) == 4
    asked.clear()
    SHORTCUTS["qat-patterns"].install()
    made = qat_utils._fold_conv_bn_qat(with_batch_norm(torch.ops.aten.relu.default))
    assert asked == []
    assert str(made.graph) == str(expected.graph)
    assert made.code == expected.code
    assert (
        [name for name, _ in made.named_modules()] == [name for name, _ in expected.named_modules()] == [""]
    )
    # Where there may be one, the release looks for it.
    both = (torch.ops.aten.sqrt.default, torch.ops.aten.conv2d.default)
    monkeypatch.setattr(qat_utils, "_fold_conv_bn_qat_helper", noted)
    SHORTCUTS["qat-patterns"].install()
    qat_utils._fold_conv_bn_qat(with_batch_norm(*both))
    assert asked == [torch.nn.functional.conv2d]


# no-debugger


def test_the_reference_model_finds_no_debugger_and_lowering_finds_flatc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tosa_reference_model

    seen: list[str | None] = []

    def run(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        seen.append(shutil.which("gdb"))
        raise ValueError("refused")

    (tmp_path / "gdb").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    before = os.environ["PATH"]
    monkeypatch.setattr(tosa_reference_model, "run", run)
    assert shutil.which("gdb") is not None
    SHORTCUTS["no-debugger"].install()
    with pytest.raises(ValueError, match="refused"):
        tosa_reference_model.run(b"")
    assert seen == [None]
    assert os.environ["PATH"] == before


# lazy-code


@pytest.fixture
def lazily(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Graph modules are compiled when someone calls them; generated code is listed."""
    from torch.export import _trace
    from torch.fx import Graph, GraphModule

    for owner, name in (
        (GraphModule, "recompile"),
        (GraphModule, "__reduce__"),
        (_trace, "_export_to_torch_ir"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    generated: list[str] = []
    upstream = Graph.python_code

    def python_code(self: Graph, *args: Any, **kwargs: Any) -> Any:
        generated.append(str(self))
        return upstream(self, *args, **kwargs)

    monkeypatch.setattr(Graph, "python_code", python_code)
    SHORTCUTS["lazy-code"].install()
    yield generated
    for name in lazy_code.OF_CODE:
        delattr(GraphModule, name)


class Model(torch.nn.Module):
    # Without annotations: pickled graph modules must not have any that are strings.
    def forward(self, x):  # type: ignore[no-untyped-def]
        return torch.relu(x) + 1


def traced() -> torch.fx.GraphModule:
    return torch.fx.symbolic_trace(Model())


def double(module: torch.fx.GraphModule) -> None:
    """Let `module` return twice its value, in its graph."""
    *_, output = module.graph.nodes
    with module.graph.inserting_before(output):
        output.args = (module.graph.call_function(torch.mul, (output.args[0], 2)),)


def test_code_is_generated_once_when_it_is_called_or_read(lazily: list[str]) -> None:
    x = torch.tensor([1.0, -1.0])
    for use in (lambda module: module(x), lambda module: module.code, lambda module: type(module).forward):
        lazily.clear()
        module = traced()
        module.recompile()
        copied = copy.deepcopy(module)
        assert lazily == []
        use(module)
        assert module(x).tolist() == [2.0, 1.0]
        assert len(lazily) == 1
        assert copied(x).tolist() == [2.0, 1.0]


def test_lazy_code_is_what_the_release_generates(release: str, lazily: list[str]) -> None:
    module = traced()
    code, lines, globals_ = module.code, module._lineno_map, module.recompile().globals
    generated = module.graph.python_code("self")
    assert (code, lines, globals_) == (generated.src, generated._lineno_map, generated.globals)
    assert code in str(module)


def test_an_edit_that_was_not_compiled_is_not_run(lazily: list[str]) -> None:
    x = torch.tensor([1.0, -1.0])
    module = traced()
    code = traced().code
    double(module)
    assert module(x).tolist() == [2.0, 1.0]
    assert module.code == code
    module.recompile()
    assert module(x).tolist() == [4.0, 2.0]
    erased = traced()
    *_, last, output = erased.graph.nodes
    output.args = (last.args[0],)
    erased.graph.erase_node(last)
    assert erased(x).tolist() == [2.0, 1.0]


def test_a_module_that_was_not_compiled_is_pickled_and_exported(lazily: list[str]) -> None:
    x = torch.tensor([1.0, -1.0])
    assert pickle.load(io.BytesIO(pickle.dumps(traced())))(x).tolist() == [2.0, 1.0]
    program = torch.export.export(traced(), (x,), strict=True)
    assert program.module()(x).tolist() == [2.0, 1.0]


# annotation-patterns


def test_a_pattern_is_exported_once_and_each_matcher_gets_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer_utils as room

    asked = []

    def upstream(
        pattern: Any, example_inputs: tuple[Any, ...], is_cuda: bool = False
    ) -> torch.fx.GraphModule:
        asked.append(pattern)
        return traced()

    def pattern_of(function: Any) -> Any:
        def pattern(x: torch.Tensor) -> torch.Tensor:
            return function(x)  # type: ignore[no-any-return]

        return room.WrapperModule(pattern)

    monkeypatch.setattr(room, "_get_aten_graph_module_for_pattern", upstream)
    SHORTCUTS["annotation-patterns"].install()
    get, x = room._get_aten_graph_module_for_pattern, torch.ones(2)
    first = get(pattern_of(torch.relu), (x,), False)
    double(first)
    second = get(pattern_of(torch.relu), (x,), False)
    assert len(asked) == 1
    assert str(second.graph) == str(traced().graph) != str(first.graph)
    get(pattern_of(torch.abs), (x,), False)
    get(pattern_of(torch.relu), (torch.ones(3),), False)
    assert len(asked) == 3
