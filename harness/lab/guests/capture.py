"""Runs upstream's tests up to where they hand a model and its inputs to a tester, and takes these."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import random
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from executorch_goldens.exporting.data import Example, in_mode
from executorch_goldens.exporting.eager import Float8InFloat32
from executorch_goldens.exporting.numerics.programs import flatten
from executorch_goldens.zoo.registry import ZooError
from executorch_goldens.zoo.targets import DTYPES
from lab.guests import GuestZoo
from lab.guests.tests import Test, tests_of

#: Packages of upstream's tests, whose imports may draw random numbers.
TEST_PACKAGES = re.compile(r"executorch\.backends\.(\w+\.)?test\b")
#: The fixture of the suite's tests, and the method of it that they call.
RUNNER = "test_runner"


class CaptureError(ZooError):
    """A test that hands no model over; the message is the reason."""


class _Ended(BaseException):
    """Ends a test that has passed on its model, or never will; no handler of the test's own catches it."""


@dataclass
class HandedOver:
    """The arguments that a test passes to a tester.

    Attributes
    ----------
    digest
        Of the model and the inputs as they were then: equal for two that make the same.
    quantized
        Whether the test then asks for quantization; None where the tester does both.
    """

    module: torch.nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any
    digest: str
    quantized: bool | None = False


@dataclass
class Recorder:
    """Captures the arguments of one test.

    Attributes
    ----------
    wanted
        Number of the one that ends the test; None takes all.
    """

    wanted: int | None
    taken: list[HandedOver] = field(default_factory=list)

    def take(
        self,
        module: torch.nn.Module,
        inputs: Any,
        dynamic_shapes: Any,
        training: bool = False,
        quantized: bool | None = False,
    ) -> HandedOver:
        in_mode(module, training)
        given = tuple(inputs)
        # Where only one is wanted nobody compares it.
        digest = digest_of(module, given, dynamic_shapes) if self.wanted is None else ""
        self.taken.append(HandedOver(module, given, dynamic_shapes, digest, quantized))
        if self.wanted is not None and len(self.taken) > self.wanted:
            raise _Ended
        return self.taken[-1]


class Idle:
    """Replaces a tester that has received its model: each of its stages does nothing."""

    _handed_over: HandedOver

    def __getattr__(self, name: str) -> Callable[..., Idle]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "quantize":
            self._handed_over.quantized = True

        def stage(*_: object, **__: object) -> Idle:
            return self

        stage.__name__ = name
        return stage


class Runner:
    """Replaces the suite's fixture: captures the model instead of lowering it."""

    _flow = SimpleNamespace(quantize=False)

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def lower_and_run_model(
        self, model: torch.nn.Module, inputs: Any, dynamic_shapes: Any = None, **_: object
    ) -> None:
        self.recorder.take(model, inputs, dynamic_shapes, quantized=None)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Let every tester that is made hand its model to `recorder`, and do nothing more."""
    from executorch.backends.test.harness.tester import Tester
    from torch.export import _trace

    def take(
        self: Any,
        module: torch.nn.Module,
        example_inputs: Any,
        stage_classes: object = None,
        dynamic_shapes: Any = None,
        training: bool = False,
    ) -> None:
        self._handed_over = recorder.take(module, example_inputs, dynamic_shapes, training)
        # Further setup of subclasses.
        self.original_module, self.example_inputs = module, example_inputs
        self.stages, self.pipeline, self.cur = {}, {}, None
        self.__class__ = Idle

    def end(*_: object, **__: object) -> None:
        raise _Ended("exports by itself")

    # Whatever a test exports by itself, it hands to no tester.
    with replaced((Tester, "__init__", take), (_trace, "_export", end)):
        yield


@contextlib.contextmanager
def seeded(text: str) -> Iterator[None]:
    """Seed random numbers inside by `text` alone, and restore the state afterwards.

    Memory that nobody writes to is filled: some tests hand over ``torch.IntTensor(5)``.
    """
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
    before = random.getstate(), np.random.get_state(), torch.random.get_rng_state()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.random.set_rng_state(before[2])
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


class _SeededImports(importlib.abc.MetaPathFinder):
    """Lets each module of upstream's tests draw the same at import, whichever other imports it, or has before."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not TEST_PACKAGES.match(name):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def seeded_execute(module: ModuleType) -> None:
            with seeded(name):
                execute(module)

        spec.loader.exec_module = seeded_execute  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def replaced(*values: tuple[Any, str, Any]) -> Iterator[None]:
    """Give attributes another value while it is open: the owner of each, its name, the value."""
    before = [getattr(owner, name) for owner, name, _ in values]
    try:
        for owner, name, value in values:
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name, _), value in zip(values, before, strict=True):
            setattr(owner, name, value)


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Let every connection fail at once: a model that needs a network is left out."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("needs a network")

    def refuse_hub(*_: object, **__: object) -> None:
        # It would try five times, with growing pauses.
        raise OSError("needs a network: a file of a hub")

    hub: list[tuple[Any, str, Any]] = []
    if importlib.util.find_spec("huggingface_hub") is not None:
        from huggingface_hub import file_download

        hub.append((file_download, "get_hf_file_metadata", refuse_hub))
    with replaced((socket, "getaddrinfo", refuse), (socket, "create_connection", refuse), *hub):
        yield


class Untrained(dict[str, torch.Tensor]):
    """Takes the place of trained weights: a model that loads it keeps the weights that it was made with."""


@contextlib.contextmanager
def untrained() -> Iterator[None]:
    """Let models whose trained weights torchvision or timm would download keep those that they draw."""
    loading = torch.nn.Module.load_state_dict

    @functools.wraps(loading)
    def load(module: torch.nn.Module, state_dict: Any, *arguments: Any, **options: Any) -> Any:
        # An incompatible architecture stays an error: nothing but what was not downloaded is passed over.
        return (
            None if isinstance(state_dict, Untrained) else loading(module, state_dict, *arguments, **options)
        )

    values: list[tuple[Any, str, Any]] = [(torch.nn.Module, "load_state_dict", load)]
    if importlib.util.find_spec("torchvision") is not None:
        from torchvision.models import WeightsEnum

        values.append((WeightsEnum, "get_state_dict", lambda *_, **__: Untrained()))
    if importlib.util.find_spec("timm") is not None:
        from timm.models import _builder

        values.append((_builder, "load_pretrained", lambda *_, **__: None))
    with replaced(*values):
        yield


def files_of(zoo: GuestZoo) -> list[str]:
    """Return the files of a zoo that may hold tests, relative to its folder, sorted."""
    import executorch

    (root,) = {Path(place) / zoo.tests for place in executorch.__path__}
    return sorted(
        file.relative_to(root).as_posix() for file in root.rglob("*.py") if file.name != "__init__.py"
    )


def import_file(zoo: GuestZoo, file: str) -> ModuleType:
    """Import a file of a zoo; raise `CaptureError` where it cannot be imported."""
    name = f"executorch/{zoo.tests}/{file}".removesuffix(".py").replace("/", ".")
    # Settings of Arm's conftest.py, which 1.1.0's tests query.
    if not hasattr(pytest, "_test_options"):
        pytest._test_options = {"tosa_version": "1.0"}  # type: ignore[attr-defined]
    if not any(isinstance(finder, _SeededImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, _SeededImports())
    try:
        with offline(), untrained():
            return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CaptureError(reason_of(error)) from error


def run(test: Test, recorder: Recorder, seed: str) -> None:
    """Run `test`, seeded by `seed`, until it ends or has passed on its model.

    Raises
    ------
    CaptureError
        Where it ends for a reason of its own; `recorder` has what it handed over until then.
    """
    if test.skipped:
        raise CaptureError(test.skipped)
    if missing := [name for name in test.fixtures if name != RUNNER]:
        raise CaptureError(f"needs the fixture {missing[0]}")
    fixtures = {RUNNER: Runner(recorder)} if RUNNER in test.fixtures else {}
    try:
        with seeded(seed), offline(), untrained(), recording(recorder):
            made = {name: make() for name, make in test.made.items()}
            test.call(**test.arguments, **made, **fixtures)
    except _Ended as end:
        if not recorder.taken:
            raise CaptureError(str(end)) from end
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CaptureError(reason_of(error)) from error


def example(zoo: GuestZoo, file: str, node: str, number: int, name: str) -> Example:
    """Return a test's model and inputs, seeded by `name`, the case's.

    Raises
    ------
    CaptureError
        Where the installed release has no such test, or it hands nothing over.
    """
    found = [test for test in tests_of(import_file(zoo, file)) if test.node == node]
    if not found:
        raise CaptureError(f"{zoo.tests}/{file} has no test {node} in the installed release")
    recorder = Recorder(number)
    run(found[0], recorder, name)
    if len(recorder.taken) <= number:
        raise CaptureError(f"{zoo.tests}/{file}::{node} hands over {len(recorder.taken)} models")
    with seeded(name):
        draw_unwritten(recorder.taken[number].module)
    return as_example(recorder.taken[number])


def draw_unwritten(module: torch.nn.Module) -> None:
    """Draw the floating weights and buffers of a model that nobody wrote to, which `seeded` fills with NaN.

    Upstream's Llama leaves the weights of its norms as they are: what memory holds, mostly zeros.
    """
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point() and bool(tensor.isnan().all()):
                tensor.copy_(torch.rand(tensor.shape) + 0.5)


def not_running(given: HandedOver) -> str:
    """Return why a model does not run on its test's inputs, or has outputs that no case may have; else empty."""
    try:
        example = as_example(given)
    except CaptureError as error:
        return str(error)
    why = ""
    # torch has few kernels for float8.
    narrow = Float8InFloat32()  # type: ignore[no-untyped-call]
    for mode in (contextlib.nullcontext(), narrow):
        try:
            with seeded(given.digest), torch.no_grad(), mode:
                flatten(example.module(*example.inputs))
        except Exception as error:
            why = why or f"does not run on its inputs: {reason_of(error)}"
        else:
            return ""
    return why


class Held(torch.nn.Module):
    """A model that takes tensors alone, and holds the rest of its inputs: lists, numbers, None.

    Parameters
    ----------
    inputs
        Of the model, of whatever structure.
    """

    def __init__(self, module: torch.nn.Module, inputs: Any) -> None:
        super().__init__()
        self.module = module
        self.parts = _parts(inputs, [])

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.module(*_filled(self.parts, tensors))


def _parts(value: Any, tensors: list[torch.Tensor]) -> tuple[str, Any]:
    """Return the parts of a value, tensors by their number: plain tuples, which `torch.export` traces through."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return "tensor", len(tensors) - 1
    if isinstance(value, dict):
        return "dict", tuple((key, _parts(each, tensors)) for key, each in value.items())
    if type(value) in (list, tuple):
        return type(value).__name__, tuple(_parts(each, tensors) for each in value)
    if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value)):
        raise CaptureError(f"has an input of type {type(value).__name__} that holds tensors")
    return "value", value


def _filled(part: tuple[str, Any], tensors: Sequence[torch.Tensor]) -> Any:
    kind, held = part
    if kind == "tensor":
        return tensors[held]
    if kind == "value":
        return held
    if kind == "dict":
        return {key: _filled(each, tensors) for key, each in held}
    parts = [_filled(each, tensors) for each in held]
    return parts if kind == "list" else tuple(parts)


def as_example(given: HandedOver) -> Example:
    """Return a test's model as a case's example; parameters are the module's own."""
    tensors: list[torch.Tensor] = []
    _parts(given.inputs, tensors)
    module = given.module
    if len(tensors) != len(given.inputs) or any(not isinstance(x, torch.Tensor) for x in given.inputs):
        if given.dynamic_shapes is not None:
            raise CaptureError("has dynamic shapes and inputs that are no tensors")
        module = Held(module, given.inputs)
    # A tensor that is given twice stays one tensor.
    detached = {id(tensor): tensor.detach() for tensor in tensors}
    inputs = tuple(detached[id(tensor)] for tensor in tensors)
    return Example(module, inputs, fill=False, dynamic_shapes=given.dynamic_shapes)


def digest_of(module: torch.nn.Module, inputs: Sequence[Any], dynamic_shapes: Any) -> str:
    """Return a digest of a model and its inputs that follows the computation, not memory addresses."""
    digest = hashlib.sha256()
    for fact in _facts(module, inputs, dynamic_shapes):
        digest.update(fact if isinstance(fact, bytes) else f"{fact}\n".encode())
    return digest.hexdigest()


def _facts(module: torch.nn.Module, inputs: Sequence[Any], dynamic_shapes: Any) -> Iterator[str | bytes]:
    for name, part in module.named_modules():
        yield f"{name}: {type(part).__qualname__}({part.extra_repr()}) {part.training}"
        for key, value in sorted(vars(part).items()):
            if not key.startswith("_"):
                yield key
                yield from _of_value(value)
    for name, state in module.state_dict(keep_vars=True).items():
        yield name
        yield from _of_value(state)
    yield from _of_value(tuple(inputs))
    yield f"dynamic {_plain(dynamic_shapes)}"


def _of_value(value: Any) -> Iterator[str | bytes]:
    leaves, structure = pytree.tree_flatten(value)
    yield str(structure)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            yield f"{leaf.dtype} {tuple(leaf.shape)} {leaf.layout}"
            if leaf.layout is torch.strided and leaf.device.type == "cpu":
                yield str(leaf.stride())
                flat = leaf.detach().contiguous().as_strided((leaf.numel(),), (1,))
                yield flat.view(torch.uint8).numpy().tobytes()
        elif isinstance(leaf, FunctionType):
            yield leaf.__qualname__
            yield from _of_code(leaf.__code__)
            for cell in leaf.__closure__ or ():
                yield _plain(cell.cell_contents)
        else:
            yield _plain(leaf)


def _of_code(code: CodeType) -> Iterator[str | bytes]:
    yield code.co_code
    yield f"{code.co_names} {[each for each in code.co_consts if not isinstance(each, CodeType)]}"


def _plain(value: object) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def reason_of(error: BaseException) -> str:
    """Say in one line why a test hands nothing over."""
    links: list[BaseException] = [error]
    while (link := links[-1].__cause__ or links[-1].__context__) is not None and link not in links:
        links.append(link)
    for link in links:
        if isinstance(link, ModuleNotFoundError) and link.name:
            return f"needs the package {link.name.partition('.')[0]}"
        if "needs a network" in str(link):
            return "needs a network"
    line = re.sub(r"(/[\w.+-]+)+/", "…/", (str(error).strip().splitlines() or [""])[0])
    return " ".join(f"{type(error).__name__}: {line}"[:120].removesuffix(": ").split())


def narrow_dtype(given: HandedOver) -> str:
    """Return the dtype of a model's tensors or inputs, as `targets.DTYPES` names it, if there is one."""
    leaves = [*given.module.state_dict().values(), *pytree.tree_leaves(given.inputs)]
    found = {str(x.dtype).removeprefix("torch.") for x in leaves if isinstance(x, torch.Tensor)}
    narrow = sorted(found.intersection(DTYPES))
    return narrow[0] if len(narrow) == 1 else ""
