"""The guard of patches: each fits the sources that it was written for, and is refused for any other."""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import inspect
import linecache
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from executorch_goldens.errors import HarnessError
from executorch_goldens.patches.patch import Fits, Patch

#: Digits that a digest is recorded with, at least.
DIGITS = 16
#: Where digests are recorded.
RECORDS = "its module (`python -m executorch_goldens.patches` prints them)"


@dataclass(eq=False)
class GuardError(HarnessError):
    """A patch does not fit the release that is installed; nothing was replaced.

    Attributes
    ----------
    patch
        The patch.
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

    patch: Patch
    release: str
    function: str | None = None
    expected: str | None = None
    found: str | None = None
    where: str = ""

    def __str__(self) -> str:
        named, without = f"{self.patch.kind} {self.patch.name!r}", self.patch.without
        if self.function is None:
            return (
                f"{named} was not written for ExecuTorch {self.release}: {without}; or review the functions "
                f"it replaces and record their digests for {self.release} in {RECORDS}"
            )
        if self.found is None:
            return (
                f"{named} replaces or relies on {self.function}, which the installed {self.release} does not have as "
                f"a function of Python: is a different release installed? Otherwise {without}, or revise it"
            )
        return (
            f"{named} was not written for this source of {self.function} in ExecuTorch {self.release}: its SHA-256 is "
            f"{self.found}, not {self.expected}; it is defined at {self.where}. If something else replaced the "
            f"function, remove that. Otherwise review the new source: if the {self.patch.kind} still fits, record the "
            f"new digest in {RECORDS}; if not, {without}"
        )


#: The code of wrappers of the harness's own that call what they wrap with what they are given.
SEEN_THROUGH: set[CodeType] = set()


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


def by_release(table: str) -> Fits:
    """Read functions, each with digests and the releases that have them, as release to function to digest.

    A release for which a function has no digest is left out: nothing was written for it.

    >>> by_release("a:f 6529bcfa8c2427f2 1.1.0 1.2.0  9b3b555879e4a3e7 1.4.1")["1.2.0"]
    {'a:f': '6529bcfa8c2427f2'}
    """
    found = defaultdict[str, dict[str, str]](dict)
    functions, function, digest = 0, "", ""
    for word in table.split():
        if ":" in word:
            functions, function = functions + 1, word
        elif "." in word:
            found[word][function] = digest
        else:
            digest = word
    return {release: named for release, named in sorted(found.items()) if len(named) == functions}


def verify(patch: Patch, release: str) -> None:
    """Raise `GuardError` unless every function that a patch knows for `release` has the source that is known.

    A table that names no function is refused without a reason, `Patch.unguarded`. With one, an empty table is for every
    release.
    """
    fits, unguarded = patch.fits, patch.unguarded
    if unguarded and not fits:
        return
    if release not in fits or not (fits[release] or unguarded):
        raise GuardError(patch, release)
    for function, expected in fits[release].items():
        try:
            found = digest(function)
        except (ImportError, AttributeError, TypeError, OSError) as missing:
            raise GuardError(patch, release, function, expected) from missing
        # Tables have a digest's first digits.
        if len(expected) < DIGITS or not found.startswith(expected):
            raise GuardError(patch, release, function, expected, found, _where(resolve(function)))


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
    """Return whether a function is of the standard library, which no release ships, or is seen through as well."""
    if function.__code__ in SEEN_THROUGH:
        return True
    file = Path(function.__code__.co_filename)
    folders = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
    library, *packages = folders
    return file.is_relative_to(library) and not any(map(file.is_relative_to, packages))


def _text(function: FunctionType) -> str:
    """Return the source of a function, found by its code."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        raise OSError(f"the source of {function!r} is not there")
    return "".join(inspect.getblock(lines))


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
            if not within and not _is_of_python(function) and linecache.getlines(code.co_filename):
                yield f"{name}: {_text(function)}"
