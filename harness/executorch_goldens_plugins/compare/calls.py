"""Models of one call of an operator each, drawn from the operators' schemas: ``calls.xz``, a line of JSON each.

A line says everything that the model is made of, in numbers and in words of PyTorch: arguments by the names of the
schema, what holds each operand, what comes before and after the call. Nothing in it depends on what ran before.
"""

from __future__ import annotations

import functools
import json
import lzma
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from executorch_goldens.errors import HarnessError
from executorch_goldens_plugins.compare.plugin import PLUGIN

#: The zoo of these models, and its word for ``--models``.
((WORD, ARGS),) = PLUGIN.zoos.items()
#: The change that changes nothing: a model of another zoo, or for another target.
AS_IT_IS = "as-it-is"
#: What makes a case of another one, in exporting processes: `executorch_goldens.settings.exports.Settings.changing`.
CHANGING = "executorch_goldens_plugins.compare.exporting.changing:changed"
FILE = Path(__file__).parent / "calls.xz"
#: What operators are decomposed into.
BECOMES = FILE.with_name("becomes.json")
#: Names of what holds an operand: an input of the model, a buffer, a parameter, the operand before it, if that has its
#: shape, or a product of a parameter.
INPUT, CONSTANT, PARAMETER, SAME, COMPUTED = HOLDERS = ("input", "constant", "parameter", "same", "computed")
#: How an operand is laid out in memory.
LAYOUTS = ("contiguous", "channels-last", "permuted", "sliced", "expanded")
#: The values of an operand: multiples of a sixteenth; numbers with full mantissas; of small and of large magnitude; one
#: number everywhere; those at the ends of the range and zeros of both signs.
VALUES = ("sixteenths", "mantissas", "tiny", "large", "equal", "ends")
#: What comes before the call, between an input and the first operand, and what comes after its first result.
BEFORE = ("", "relu", "mul", "permute", "reshape", "slice", "pad", "cast", "outside")
AFTER = (
    "",
    "relu",
    "clamp",
    "add",
    "mul",
    "sigmoid",
    "batch-norm",
    "permute",
    "reshape",
    "slice",
    "cat",
    "sum",
    "outside",
)
#: Further users: of the result, a second one or one that no delegate takes; of the first operand; an equal call; a call
#: with the result as its first operand.
USERS = ("", "two", "outside", "operand", "equal", "chained")


class ModelError(HarnessError):
    """A file of models that cannot be read, or a model that there is not; the message names it and the way out."""


class Operand(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor that a call is given.

    Attributes
    ----------
    dtype
        As PyTorch names it, ``float32``.
    held
        One of `HOLDERS`.
    layout, values
        One of `LAYOUTS` and of `VALUES`.
    least, most
        The range of its values.
    """

    dtype: str
    shape: tuple[int, ...]
    held: str = INPUT
    layout: str = LAYOUTS[0]
    values: str = VALUES[0]
    least: float = -2.0
    most: float = 2.0

    def __str__(self) -> str:
        words = [
            word
            for word in (self.held, self.layout, self.values)
            if word not in (INPUT, LAYOUTS[0], VALUES[0])
        ]
        return " ".join((f"{self.dtype}{list(self.shape)}", *words))


Value: TypeAlias = Operand | list[Operand | int | float | bool | None] | bool | int | float | str | None


class CallModel(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """A model of one call.

    Attributes
    ----------
    operator
        Name and overload, of ATen: ``max_pool2d.default``.
    arguments
        By the names of the schema; those left out have its defaults.
    before, after, users
        One of `BEFORE`, `AFTER` and `USERS`.
    open
        Dimension of the first input whose size is symbolic; None for none.
    releases
        The releases that name the operator; empty for all.
    """

    name: str
    target: str
    operator: str
    arguments: dict[str, Value]
    before: str = ""
    after: str = ""
    users: str = ""
    open: int | None = None
    releases: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it in one line, as a call.

        >>> str(CallModel("relu-0", "tosa-fp", "relu.default", {"self": Operand("float32", (2, 3))}, after="mul"))
        'relu.default(self=float32[2, 3]); after: mul'
        """
        given = ", ".join(f"{name}={_text(value)}" for name, value in self.arguments.items())
        around = {"before": self.before, "after": self.after, "users": self.users, "open": self.open}
        rest = [f"{name}: {value}" for name, value in around.items() if value not in ("", None)]
        return "; ".join((f"{self.operator}({given})", *rest))

    @property
    def line(self) -> str:
        """All of it but its number, in one line."""
        return f"{self.target}: {self}"

    @functools.cached_property
    def operands(self) -> tuple[Operand, ...]:
        """The tensors that the call is given, in order, those in lists included."""
        return tuple(operands_in(*self.arguments.values()))

    @functools.cached_property
    def facts(self) -> Mapping[str, Any]:
        """Everything in which two models of an operator may differ, by name."""
        around = {name: getattr(self, name) for name in ("target", *AROUND)}
        of_operands = {
            name: tuple(getattr(each, name) for each in self.operands) for name in (*OF_OPERANDS, "shape")
        }
        return {**self.plain, **around, **of_operands, OPERANDS: self._ranks}

    @functools.cached_property
    def plain(self) -> Mapping[str, Value]:
        """The arguments that hold no tensor."""
        return {name: value for name, value in self.arguments.items() if not operands_in(value)}

    @property
    def _ranks(self) -> tuple[tuple[str, tuple[int | None, ...]], ...]:
        """The arguments that hold tensors, each with the ranks of these; None where a list has none."""
        held = ((name, value) for name, value in self.arguments.items() if name not in self.plain)
        listed = ((name, value if isinstance(value, list) else [value]) for name, value in held)
        return tuple(
            (name, tuple(len(each.shape) if isinstance(each, Operand) else None for each in values))
            for name, values in listed
        )

    def distance(self, other: CallModel) -> int:
        """Return in how many facts it differs from another model of its operator."""
        names = self.facts.keys() | other.facts.keys()
        return sum(self.facts.get(name, MISSING) != other.facts.get(name, MISSING) for name in names)

    def borrow(self, fact: str, other: CallModel) -> CallModel:
        """Return the model with one fact of another; itself where it cannot have that.

        Parameters
        ----------
        fact
            A name of `facts`, but for the target and the shapes.
        """
        if fact in AROUND:
            return msgspec.structs.replace(self, **{fact: getattr(other, fact)})
        if fact in OF_OPERANDS:
            if len(self.operands) != len(other.operands):
                return self
            made = iter(
                msgspec.structs.replace(one, **{fact: getattr(its, fact)})
                for one, its in zip(self.operands, other.operands, strict=True)
            )
            return msgspec.structs.replace(
                self, arguments={name: _in_turn(value, made) for name, value in self.arguments.items()}
            )
        names, theirs = {fact}, other.plain
        if fact == OPERANDS:
            names, theirs = {name for each in (self, other) for name, _ in each.facts[fact]}, other.arguments
        rest = {name: value for name, value in self.arguments.items() if name not in names}
        given = {name: value for name, value in theirs.items() if name in names}
        return msgspec.structs.replace(self, arguments={**rest, **given})


#: Facts of what is around a call, and of its operands, each of which a model may borrow from another.
AROUND = ("before", "after", "users", "open")
OF_OPERANDS = ("dtype", "held", "layout", "values")
#: The fact which operands there are, of which ranks: borrowed as they are, with all of the facts above.
OPERANDS = "operands"
MISSING = object()
#: Digits of the number of a model.
DIGITS = 4


def operands_in(*values: Value) -> list[Operand]:
    """Return the operands among some arguments, those in lists included."""
    listed = (value if isinstance(value, list) else [value] for value in values)
    return [each for every in listed for each in every if isinstance(each, Operand)]


def by_operator(every: Iterable[CallModel]) -> Mapping[str, list[CallModel]]:
    """Return models by their operator."""
    found: dict[str, list[CallModel]] = defaultdict(list)
    for model in every:
        found[model.operator].append(model)
    return found


def _in_turn(value: Value, made: Iterator[Operand]) -> Value:
    """Return an argument with the next of some operands in place of each of its own."""
    if isinstance(value, list):
        return [next(made) if isinstance(each, Operand) else each for each in value]
    return next(made) if isinstance(value, Operand) else value


def borrowing(fact: str, other: str) -> str:
    """Return the name of the change that gives a model a fact of another one of its operator.

    >>> borrowing("kernel_size", "max-pool2d-0137")
    'kernel-size-0137'
    """
    return f"{fact.strip('_').replace('_', '-').lower()}-{other.rpartition('-')[2]}"


def is_borrowing(change: str) -> bool:
    """Return whether a change is one that `borrowing` names: it ends in the number of a model."""
    return change.rpartition("-")[2].isdigit() and len(change.rpartition("-")[2]) == DIGITS


def borrowed(model: CallModel, change: str) -> CallModel:
    """Return a model with what a change that `borrowing` names takes from another one; raise `ModelError`."""
    fact, _, number = change.rpartition("-")
    donor = read().get(f"{model.name.rpartition('-')[0]}-{number}")
    if donor is not None:
        for name in (*donor.facts, *model.facts):
            if borrowing(name, donor.name) == change:
                return model.borrow(name, donor)
    raise ModelError(
        f"{change!r} is no change of {model.name}: no model of its operator has a number {number} and a fact {fact}"
    )


def _text(value: Value) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list) else str(value)


class _Models(Mapping[str, CallModel]):
    """The models of some lines, by name: each is decoded once it is asked for, as an export asks for one alone."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._found: dict[str, CallModel | bytes] = {_NAMES.decode(line).name: line for line in lines}

    def __getitem__(self, name: str) -> CallModel:
        found = self._found[name]
        if isinstance(found, bytes):
            found = self._found[name] = _DECODER.decode(found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class _Named(msgspec.Struct):
    name: str


@functools.cache
def read(path: Path = FILE) -> Mapping[str, CallModel]:
    """Return the models of a file, by name; raise `ModelError`."""
    try:
        return _Models(lzma.decompress(path.read_bytes()).splitlines())
    except (OSError, lzma.LZMAError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: cannot be read ({error}); take it from the repository again") from error


@functools.cache
def becomes() -> Mapping[str, list[str]]:
    """Return the core operators that each operator is decomposed into."""
    found: Mapping[str, list[str]] = json.loads(BECOMES.read_text(encoding="utf-8"))
    return found


_DECODER = msgspec.json.Decoder(CallModel)
_NAMES = msgspec.json.Decoder(_Named)


def encoded(models: Iterable[CallModel]) -> bytes:
    """Return the content of a file of models."""
    return lzma.compress(b"".join(msgspec.json.encode(model) + b"\n" for model in models), preset=9)
