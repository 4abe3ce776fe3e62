"""The guard of patches and shortcuts: each fits the sources that it was written for, and is refused for any other."""

from __future__ import annotations

import ast
import functools
import gc
import hashlib
import importlib
import inspect
import linecache
import sysconfig
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from executorch_goldens.errors import HarnessError

#: Per release, the functions that are replaced or relied on, as ``module:qualified.name``, and the `digest` of each.
Fits = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Kind:
    """A kind of guarded code, with the words of its messages.

    Attributes
    ----------
    name
        The noun for one.
    usual
        Values of its option instead of names: the release's declaration, or all.
    without
        The way to do without one.
    records
        Where its digests are recorded.
    """

    name: str
    usual: str
    without: str
    records: str


PATCH = Kind(
    "patch",
    "auto",
    "leave it out of --patches",
    "the patch's module (`python -m executorch_goldens.patches` prints them)",
)
SHORTCUT = Kind(
    "shortcut",
    "all",
    "use --shortcuts none, or name those that fit",
    "its module in harness/executorch_goldens/patches/shortcuts (`python -m executorch_goldens.patches` prints them)",
)


class GuardError(HarnessError):
    """A patch or a shortcut does not fit the release that is installed; nothing was replaced.

    Attributes
    ----------
    kind
        `PATCH` or `SHORTCUT`.
    name
        Its name.
    release
        The release that is installed.
    function
        The function in question as ``module:qualified.name``; None when nothing is known about the release.
    expected
        Digest of the source that it was written for.
    found
        Digest of the source that is installed; None when there is no such function, or no Python source of it.
    where
        File and line of what is installed; empty when there is no such function.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        release: str,
        function: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        where: str = "",
    ) -> None:
        super().__init__(kind, name, release, function, expected, found, where)
        self.kind = kind
        self.name = name
        self.release = release
        self.function = function
        self.expected = expected
        self.found = found
        self.where = where

    def __str__(self) -> str:
        named = f"{self.kind.name} {self.name!r}"
        if self.function is None:
            return (
                f"{named} was not written for ExecuTorch {self.release}: {self.kind.without}; or review the functions "
                f"it replaces and record their digests for {self.release} in {self.kind.records}"
            )
        if self.found is None:
            return (
                f"{named} replaces or relies on {self.function}, which the installed {self.release} does not have as "
                f"a function of Python: is a different release installed? Otherwise {self.kind.without}, or revise "
                f"the {self.kind.name}"
            )
        return (
            f"{named} was not written for this source of {self.function} in ExecuTorch {self.release}: its SHA-256 is "
            f"{self.found}, not {self.expected}; it is defined at {self.where}. If something else replaced the "
            f"function, remove that. Otherwise review the new source: if the {self.kind.name} still fits, record the "
            f"new digest in {self.kind.records}; if not, {self.kind.without}"
        )


class UnknownNameError(HarnessError, ValueError):
    """A name that no patch, or no shortcut, has.

    Attributes
    ----------
    kind
        `PATCH` or `SHORTCUT`.
    name
        The name that was asked for.
    fits
        The names there are.
    """

    def __init__(self, kind: Kind, name: str, known: tuple[str, ...]) -> None:
        super().__init__(kind, name, known)
        self.kind = kind
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return (
            f"there is no {self.kind.name} {self.name!r}; known: {', '.join(self.known)} "
            f"(or {self.kind.usual!r}, or 'none' alone)"
        )


def in_order(kind: Kind, names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return `names`, each once, in the order of `known`; raise `UnknownNameError` for one that is not there."""
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(kind, name, tuple(known))
    return tuple(name for name in known if name in wanted)


def resolve(function: str) -> Any:
    """Import and return ``module:qualified.name``; ImportError or AttributeError when it is not there."""
    module, _, name = function.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def digest(function: str) -> str:
    """Return the SHA-256, in hexadecimal, of the source of the function ``module:qualified.name``.

    The hashed text is UTF-8: decorators, comments, docstring and indentation count, line ends are newlines. A
    change of a comment upstream is reviewed like any other. The text is found by the code that runs, for what a
    function says of itself (``__wrapped__``, ``__module__``, ``__qualname__``) may be copied from a different one. A
    decorated function has the text of each function that runs, but for wrappers of the standard library.

    Raises
    ------
    ImportError, AttributeError
        If there is nothing of that name.
    TypeError, OSError
        If it is no function of Python, or its source is not there.
    """
    return hashlib.sha256("".join(_texts(resolve(function))).encode()).hexdigest()


def verify(kind: Kind, name: str, fits: Fits, release: str, unguarded: str | None = None) -> None:
    """Raise `GuardError` unless every function that is known for `release` has the source that is known.

    Parameters
    ----------
    unguarded
        Why no function needs a digest; without a reason, a table that names none is refused. With one, an empty `fits`
        is for every release.
    """
    if unguarded and not fits:
        return
    if release not in fits or not (fits[release] or unguarded):
        raise GuardError(kind, name, release)
    for function, expected in fits[release].items():
        try:
            found = digest(function)
        except (ImportError, AttributeError, TypeError, OSError) as missing:
            raise GuardError(kind, name, release, function, expected) from missing
        if found != expected:
            raise GuardError(kind, name, release, function, expected, found, _where(resolve(function)))


# Running code, and where it is written


def _texts(value: Any) -> Iterator[str]:
    """Yield the source of each function, or of the class, that runs when `value` is called or read."""
    if isinstance(value, type):
        yield from _of_class(value)
        return
    functions = _running(value)
    if not functions:
        raise TypeError(f"{value!r} is no function of Python")
    yield from _bound(value)
    own = [function for function in functions if not _is_of_python(function)]
    yield from map(_text, own or functions)


def _where(value: Any) -> str:
    if isinstance(value, type):
        return f"{inspect.getsourcefile(value)}:{inspect.getsourcelines(value)[1]}"
    code = _running(value)[0].__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _running(value: Any) -> list[FunctionType]:
    """Return the functions that run when `value` is called or read, the outermost first, each once."""
    found: dict[int, FunctionType] = {}
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen or isinstance(each, type) or not _may_run(each):
            continue
        seen.add(id(each))
        if isinstance(each, FunctionType):
            found[id(each)] = each
        waiting += _inside(each)
    return list(found.values())


def _may_run(value: Any) -> bool:
    return callable(value) or hasattr(value, "__get__")


def _inside(value: Any) -> Iterator[Any]:
    """Yield functions that `value` may call and owns: those it closes over, wraps, or holds."""
    yield getattr(value, "__wrapped__", None)
    if isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            # A cell that nothing was put into yet has no contents.
            yield from gc.get_referents(cell)
        return
    yield type(value).__dict__.get("__call__")
    # Wrappers of Python's own (of methods, properties, caches, partial objects) hold what they call, or its arguments.
    any_kind = type(value).__module__ in ("builtins", "functools")
    for held in gc.get_referents(value):
        several = held.values() if isinstance(held, dict) else held if isinstance(held, tuple) else (held,)
        yield from (each for each in several if any_kind or isinstance(each, FunctionType))


def _bound(value: Any) -> Iterator[str]:
    """Yield the constants that partial objects pass on."""
    while isinstance(value, (functools.partial, functools.partialmethod)):
        given = [*enumerate(value.args), *sorted(value.keywords.items())]
        yield f"partial {[(place, each) for place, each in given if not callable(each)]!r}\n"
        value = value.func


def _is_of_python(function: FunctionType) -> bool:
    """Return whether a function is of the standard library, which no release ships."""
    file = Path(function.__code__.co_filename)
    folders = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
    library, *packages = folders
    return file.is_relative_to(library) and not any(map(file.is_relative_to, packages))


def _text(function: FunctionType) -> str:
    """Return the source of a function, with the parts that differ from the source."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        raise OSError(f"the source of {function!r} is not there")
    text = "".join(inspect.getblock(lines))
    if not _is_written(function):
        text += f"its code was replaced: {_content(code)!r}\n"
    return text + "".join(_other_defaults(function, text))


def _is_written(function: FunctionType) -> bool:
    """Return whether a function's code matches its module's file; True where that cannot be told."""
    module = _module(function.__globals__.get("__loader__"), str(function.__globals__.get("__name__")))
    if module is None or module.co_filename != function.__code__.co_filename:
        # Of a different file: its text says so.
        return True
    wanted = _content(function.__code__)
    return any(_content(code) == wanted for code in _codes(module, function.__code__.co_firstlineno))


@functools.cache
def _module(loader: Any, name: str) -> CodeType | None:
    """Return the code of a module, as a rule out of ``__pycache__``."""
    try:
        code = loader.get_code(name)
    except (AttributeError, ImportError, OSError, SyntaxError):
        return None
    return code if isinstance(code, CodeType) else None


def _codes(code: CodeType, line: int) -> Iterator[CodeType]:
    """Yield the code objects inside `code` that begin at a line."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_firstlineno == line:
                yield inner
            yield from _codes(inner, line)


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return the behaviour of a code object; types of constants count, for 1, 1.0 and True are equal."""
    held = tuple(map(_constant, code.co_consts))
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, held, names, counts


def _constant(value: Any) -> Any:
    """Return a constant of a code object as something that two loads of a module agree on.

    A set is sorted: its order is another one where a module was compiled and where it was read from ``__pycache__``.
    """
    if isinstance(value, CodeType):
        return _content(value)
    shown = sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
    return type(value).__name__, shown


def _other_defaults(function: FunctionType, text: str) -> Iterator[str]:
    """Yield the parameters whose default is a literal in the source, and another value in the function."""
    try:
        (written,) = ast.parse(textwrap.dedent(text)).body
    except (SyntaxError, ValueError):
        return
    if not isinstance(written, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    plain = [*written.args.posonlyargs, *written.args.args][-len(written.args.defaults) or None :]
    pairs = [*zip(plain, written.args.defaults, strict=False)]
    pairs += [
        (name, value)
        for name, value in zip(written.args.kwonlyargs, written.args.kw_defaults, strict=True)
        if value
    ]
    has = {
        name: each.default
        for name, each in inspect.signature(function, follow_wrapped=False).parameters.items()
    }
    for argument, value in pairs:
        try:
            literal = ast.literal_eval(value)
        except ValueError:
            continue
        if repr(has.get(argument.arg)) != repr(literal):
            yield f"the default of {argument.arg} was replaced: {has.get(argument.arg)!r}\n"


def _of_class(owner: type) -> Iterator[str]:
    """Yield the source of a class, then that of methods which are not in it: they were put there later."""
    lines, first = inspect.getsourcelines(owner)
    yield "".join(lines)
    file = inspect.getsourcefile(owner)
    for name, value in sorted(vars(owner).items()):
        if isinstance(value, type):
            continue
        for function in _running(value):
            code = function.__code__
            within = code.co_filename == file and first <= code.co_firstlineno < first + len(lines)
            # Code that `dataclass` and its like generate is in no file.
            added = not within and not _is_of_python(function) and linecache.getlines(code.co_filename)
            if added or (within and not _is_written(function)):
                yield f"{name}: {_text(function)}"
