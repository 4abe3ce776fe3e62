"""Reads exported programs, ``.pt2``, without running any of their code.

torch's own reader unpickles, loads compiled code, and has sympy evaluate what an archive says of its sizes
(``torch/export/pt2_archive/_package.py``, ``torch/_export/serde/serialize.py``; all five releases). Here it reads
tensors only (``weights_only``), and what needs more is refused with the name of the entry.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import operator
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import sympy  # type: ignore[import-untyped]
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, TensorArgument
from torch.utils import _pytree as pytree

from executorch_goldens.exporting.calls import Call
from executorch_goldens.exporting.data import Example
from executorch_goldens.exporting.recorded import Inputs
from executorch_goldens.registry import ZooError

#: Folder of compiled code, which would be loaded.
COMPILED = "data/aotinductor/"
#: Names in the expressions of sizes: symbols, and functions of torch.utils._sympy.functions and sympy.
SYMBOL = re.compile(r"[a-z_]{1,20}\d{1,9}")
FUNCTION = re.compile(
    r"Max|Min|Mod|PythonMod|FloorDiv|CeilDiv|CleanDiv|IntTrueDiv|FloatTrueDiv|ModularIndexing|Abs|Pow|PowByNatural"
    r"|FloatPow|floor|ceiling|ToFloat|TruncToInt|FloorToInt|CeilToInt|RoundToInt|Identity|Where|Eq|Ne|Lt|Le|Gt|Ge|And"
    r"|Or|Not|True|False|oo|int_oo|IntInfinity|NegativeIntInfinity|Integer|Rational|Float|Symbol|Add|Mul"
    r"|integer|positive|nonnegative|negative|real|finite|extended_real|commutative|precision"
)
#: A symbol, as sympy's ``srepr`` begins it.
NAMED = re.compile(r"Symbol\('[a-z_]{1,20}\d{1,9}'")
EXPRESSION = re.compile(r"[\w\s+\-*/%(),.<>=&|~]{0,1000}")
#: Beside operators of torch: what computes sizes.
SIZES = (operator, math)


class RefusedError(Exception):
    """An archive that asks for more than reading."""


def read(file: Path) -> torch.export.ExportedProgram:
    """Return the program of an archive; raise `ZooError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if COMPILED in name:
                    raise RefusedError(f"{name} is compiled code")
            _require_tensors(archive)
        with _only_reading():
            program = torch.export.load(file)
        _require_operators(program)
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ZooError(f"{file.name} cannot be read as an exported program: {first}") from None
    return program


def _require_tensors(archive: zipfile.ZipFile) -> None:
    """Refuse entries of the older layout that hold more than tensors; torch's reader does not say which it reads."""
    for name in archive.namelist():
        if name.endswith(".pt") and "/" not in name:
            with archive.open(name) as entry:
                _load_tensors(name, entry)


#: Is called with ``weights_only`` alone.
_LOAD: Callable[..., Any] = torch.load  # noqa: TID251


def _load_tensors(name: str, *args: Any, **kwargs: Any) -> Any:
    try:
        return _LOAD(*args, **{**kwargs, "weights_only": True})
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RefusedError(f"{name} holds more than tensors, or is damaged: {first}") from error


@contextlib.contextmanager
def _only_reading() -> Iterator[None]:
    """While it is entered, torch's reader unpickles tensors only and evaluates expressions of sizes only."""
    package = importlib.import_module("torch.export.pt2_archive._package")
    entries: list[tuple[str, bytes]] = []
    sympify, read_bytes = sympy.sympify, package.PT2ArchiveReader.read_bytes

    def noted(self: Any, name: str) -> bytes:
        content = bytes(read_bytes(self, name))
        entries.append((name, content))
        return content

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise RefusedError(f"{entries[-1][0]} is an object of Python")

    def tensors(buffer: io.BytesIO, *args: Any, **kwargs: Any) -> Any:
        # Some are read at once, and loaded after others.
        whole = buffer.getvalue()
        name = next((name for name, content in reversed(entries) if content == whole), "an entry")
        return _load_tensors(name, buffer, *args, **kwargs)

    def parsed(expression: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(expression, str):
            require_size(expression)
        return sympify(expression, *args, **kwargs)

    with contextlib.ExitStack() as replaced:
        for owner, name, replacement in (
            (package.PT2ArchiveReader, "read_bytes", noted),
            (package, "_load_aoti", refused),
            (torch._C, "_pickle_load_obj", refused),
            (importlib.import_module("pickle"), "loads", refused),
            (torch, "load", tensors),
            (sympy, "sympify", parsed),
        ):
            replaced.enter_context(mock.patch.object(owner, name, replacement))
        yield


def require_size(expression: str) -> None:
    """Raise `RefusedError` unless the text is an expression of sizes: sympy evaluates it as Python.

    >>> require_size("2*s0 + Max(1, s27)"), require_size("Mul(Integer(2), Symbol('s24', positive=True))")
    (None, None)
    >>> require_size("print(1)")
    Traceback (most recent call last):
    executorch_goldens.exporting.archives.RefusedError: 'print(1)' is no expression of sizes
    """
    plain = NAMED.sub("Symbol(", expression)
    names = re.findall(r"[A-Za-z_]\w*", plain)
    known = all(FUNCTION.fullmatch(name) or SYMBOL.fullmatch(name) for name in names)
    # A point is of a number: what has attributes is no size.
    if not known or not EXPRESSION.fullmatch(plain) or re.search(r"\.(?!\d)|(?<!\d)\.", plain):
        raise RefusedError(f"{expression[:100]!r} is no expression of sizes")


def _require_operators(program: torch.export.ExportedProgram) -> None:
    """Refuse a graph that calls anything but operators of torch and arithmetic on sizes."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.op == "call_function" and not _is_operator(node.target):
                raise RefusedError(f"its graph calls {node.target!r}")


def _is_operator(target: Any) -> bool:
    if isinstance(target, torch._ops.OperatorBase):
        return True
    named = str(getattr(target, "__name__", ""))
    if target is getattr(torch, named, None) and named.startswith("sym_"):
        return True
    return any(target is getattr(module, named, None) for module in SIZES)


def example_in(file: Path) -> Example:
    """Return the example of an archive: its program, and inputs of ones where it does not bring its own."""
    program = read(file)
    if program.example_inputs is not None:
        args, kwargs = program.example_inputs
    else:
        args, kwargs = _made_up(program)
    call = Call.of(tuple(args), kwargs)
    return Example(
        program.module(check_guards=False),
        tuple(args),
        fill=False,
        kwargs=kwargs,
        dynamic_shapes=_dynamic_shapes(program, call),
        program=program,
    )


def _made_up(program: torch.export.ExportedProgram) -> tuple[tuple[Any, ...], dict[str, Any]]:
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    leaves: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            continue
        if isinstance(spec.arg, ConstantArgument):
            leaves.append(spec.arg.value)
        elif isinstance(spec.arg, TensorArgument):
            value = values[spec.arg.name]
            sizes = [size if isinstance(size, int) else size.node.hint for size in value.shape]
            leaves.append(torch.ones(sizes, dtype=value.dtype))
        else:
            raise ZooError(f"its input {spec.arg.name} is a number that may change: only tensors may")
    assert program.call_spec.in_spec is not None
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs


def _dynamic_shapes(program: torch.export.ExportedProgram, call: Call) -> Any:
    """Return ``dynamic_shapes`` for ``torch.export``; None where no dimension may change."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    dims: dict[str, Any] = {}
    shapes = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            tensor = values.get(spec.arg.name) if isinstance(spec.arg, TensorArgument) else None
            sizes = tensor.shape if isinstance(tensor, torch.Tensor) else ()
            changing = {
                at: _dim(program, size, dims) for at, size in enumerate(sizes) if not isinstance(size, int)
            }
            shapes.append(changing or None)
    if not any(shapes):
        return None
    args, kwargs = pytree.tree_unflatten(shapes, call.spec)
    return (*args, *kwargs.values())


def _dim(program: torch.export.ExportedProgram, size: Any, dims: dict[str, Any]) -> Any:
    symbol = size.node.expr
    if not isinstance(symbol, sympy.Symbol):
        return torch.export.Dim.AUTO
    limits = program.range_constraints[symbol]
    most = int(limits.upper) if limits.upper.is_Integer and limits.upper < (1 << 60) else None
    return dims.setdefault(str(symbol), torch.export.Dim(str(symbol), min=int(limits.lower), max=most))


def example_of_files(folder: Path, file: Path, inputs: Path | None) -> Example:
    """Return the example of a case that is files: the first set of inputs is its example, the others are recorded.

    Raises
    ------
    ZooError
        For a file that cannot be read, or inputs that do not fit the program.
    """
    example = example_in(folder / file)
    if inputs is None:
        if example.program is not None and example.program.example_inputs is None:
            raise ZooError(f'{file} brings no inputs: name a file of them, inputs = "{file.stem}.npz"')
        return example
    recorded = Inputs(str(file), example, folder).recorded(inputs)
    first, *others = recorded.items()
    return replace(example.with_tensors(first[1]), recordings=dict(others))
