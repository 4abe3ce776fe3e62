"""The tests of one file of upstream's, found without pytest's collection: functions, methods, their parameters.

pytest would bring the file's ``conftest.py`` and its own import hooks into the exporting process.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Test:
    """One test with one choice of its parameters.

    Attributes
    ----------
    node
        ``<function>``, ``<class>::<method>``, with ``[<parameters>]``: as pytest names it.
    arguments
        Its parameters by name.
    fixtures
        Names of the arguments that are no parameters, and that the file has no fixture for.
    made
        Fixtures of the file, by the name of the argument: a call makes each once for all tests of the file.
    skipped
        Why upstream skips it; empty where it does not.
    call
        Runs it; takes the arguments by name.
    """

    node: str
    arguments: Mapping[str, Any]
    fixtures: tuple[str, ...]
    skipped: str
    call: Callable[..., object]
    made: Mapping[str, Callable[[], object]] = field(default_factory=dict)


def tests_of(module: ModuleType) -> Iterator[Test]:
    """Yield the tests of a module in the order in which it defines them."""
    fixtures = fixtures_of(module)
    for name, value in list(vars(module).items()):
        if inspect.isfunction(value) and name.startswith("test"):
            found = _with_parameters(name, value, value)
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            found = _of_class(name, value)
        else:
            continue
        for test in found:
            made = {each: fixtures[each] for each in test.fixtures if each in fixtures}
            yield replace(test, fixtures=tuple(each for each in test.fixtures if each not in made), made=made)


def fixtures_of(module: ModuleType) -> Mapping[str, Callable[[], object]]:
    """Return the fixtures of a module that take only others of it, by name, each as a call that makes it once."""
    wrapped = {
        name: value._get_wrapped_function()
        for name, value in vars(module).items()
        # Some objects, as ExecuTorch's dialects, have an attribute of every name.
        if hasattr(type(value), "_get_wrapped_function")
    }
    made: dict[str, Callable[[], object]] = {}
    for name, function in wrapped.items():
        # pytest ends a generator after the last test: what it yields to is not made here.
        if set(inspect.signature(function).parameters) <= set(wrapped) and not inspect.isgeneratorfunction(
            function
        ):
            made[name] = functools.cache(functools.partial(_make, function, made))
    return made


def _make(function: Callable[..., object], fixtures: Mapping[str, Callable[[], object]]) -> object:
    return function(**{name: fixtures[name]() for name in inspect.signature(function).parameters})


def _of_class(name: str, owner: type[Any]) -> Iterator[Test]:
    is_case = issubclass(owner, unittest.TestCase)
    if not is_case and not name.startswith("Test"):
        return
    for method, function in inspect.getmembers(owner, inspect.isfunction):
        if not method.startswith("test"):
            continue

        def call(method: str = method, **arguments: Any) -> object:
            instance = owner(method) if is_case else owner()
            if is_case:
                instance.setUp()
            return getattr(instance, method)(**arguments)

        marks = [*getattr(function, "pytestmark", ()), *getattr(owner, "pytestmark", ())]
        yield from _with_parameters(f"{name}::{method}", function, call, marks, takes_self=True)


def _with_parameters(
    node: str,
    function: Callable[..., object],
    call: Callable[..., object],
    marks: Sequence[Any] | None = None,
    takes_self: bool = False,
) -> Iterator[Test]:
    marks = getattr(function, "pytestmark", ()) if marks is None else marks
    skipped = _skipped(function, marks)
    choices = [list(_choices(mark)) for mark in marks if mark.name == "parametrize"]
    taken = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ][1 if takes_self else 0 :]
    for chosen in itertools.product(*choices):
        arguments = {name: value for choice in chosen for name, value in choice.arguments.items()}
        yield Test(
            node=f"{node}[{'-'.join(choice.name for choice in chosen)}]" if chosen else node,
            arguments=arguments,
            fixtures=tuple(name for name in taken if name not in arguments),
            skipped=skipped or next((choice.skipped for choice in chosen if choice.skipped), ""),
            call=call,
        )


@dataclass(frozen=True)
class _Choice:
    name: str
    arguments: Mapping[str, Any]
    skipped: str


def _choices(mark: Any) -> Iterator[_Choice]:
    """Yield the arguments of a mark ``parametrize``, named as pytest names them."""
    names, values = mark.args[:2]
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    ids = mark.kwargs.get("ids")
    for index, value in enumerate(values):
        given, name, marks = (
            (value, None, ()) if not hasattr(value, "marks") else (value.values, value.id, value.marks)
        )
        each = tuple(given) if hasattr(value, "marks") or len(names) > 1 else (given,)
        if name is None and isinstance(ids, Sequence):
            name = ids[index]
        if name is None:
            make = ids if callable(ids) else lambda _: None
            name = "-".join(
                str(make(one) or _name_of(one) or f"{argument}{index}")
                for argument, one in zip(names, each, strict=True)
            )
        yield _Choice(str(name), dict(zip(names, each, strict=True)), _skipped(None, marks))


def _name_of(value: object) -> str | None:
    if value is None or isinstance(value, str | int | float | bool):
        return str(value)
    return getattr(value, "__name__", None)


def _skipped(function: object, marks: Sequence[Any]) -> str:
    """Return why upstream skips a test on every machine; a reason of this machine does not concern the model."""
    if getattr(function, "__unittest_skip__", False):
        return f"skipped upstream: {getattr(function, '__unittest_skip_why__', '')}".removesuffix(": ")
    for mark in marks:
        if mark.name == "skip":
            why = mark.kwargs.get("reason") or next(iter(mark.args), "")
            return f"skipped upstream: {why}".removesuffix(": ")
    return ""
