"""What is found of a cell, as data: what was measured, whose fault it is, and a key; the sentences are in `words`.

A key has what cells, variations, machines and versions of Python have in common. It is what a decision names, and what
groups cells by cause. What upstream says is kept as text.
"""

from __future__ import annotations

import enum
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Union, get_args

import msgspec

from executorch_goldens.artifact import AnyCasualty, Beginning, Casualty, Lost, Metric, Spot, Tensor
from executorch_goldens.goldens.causes import general

if TYPE_CHECKING:
    Ended = Casualty
else:
    #: An export that did not finish, as it is read back.
    Ended = AnyCasualty

#: A finding without what is one cell's own: its kind, then fields by name.
Key = Mapping[str, Any]


class Fault(enum.StrEnum):
    """Whose mistake it is that a cell is not as it should be."""

    TOOLCHAIN = "toolchain"
    #: The case of the zoo.
    CASE = "case"
    #: Another file of the repository.
    REPOSITORY = "repository"
    #: The machine had too little of something.
    MACHINE = "machine"
    HARNESS = "harness"
    #: Nobody's: a person decides.
    NONE = "none"


def _kind(name: str) -> str:
    """Return the kind of a class.

    >>> _kind("WrongValues")
    'wrong-values'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _fields(*names: str) -> dict[str, Callable[[Any], Any]]:
    """Return fields that are in a key as they are, with their names."""
    return {name: attrgetter(name) for name in names}


class Finding(msgspec.Struct, frozen=True, tag_field="kind", tag=_kind, omit_defaults=True):
    """One thing that was found.

    Attributes
    ----------
    fault
        Whose mistake it is.
    keyed
        What its key has, by name; what is empty is left out.
    """

    fault: ClassVar[Fault] = Fault.TOOLCHAIN
    keyed: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def key(self) -> Key:
        """Return what findings of one cause have in common."""
        fields = {name: of(self) for name, of in self.keyed.items()}
        # As a file gives it back.
        fields = {name: [*each] if isinstance(each, tuple) else each for name, each in fields.items()}
        return {"kind": _kind(type(self).__name__), **{name: each for name, each in fields.items() if each}}


# Parts of findings


class TensorType(msgspec.Struct, frozen=True):
    """See `executorch_goldens.artifact.Tensor`."""

    dtype: str
    shape: tuple[int, ...]
    kind: str = ""

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> TensorType:
        return cls(tensor.dtype, tensor.shape, tensor.kind)

    @property
    def name(self) -> str:
        """It without the shape, which is one model's own."""
        return self.kind or self.dtype

    def __str__(self) -> str:
        return self.kind or f"{self.dtype}{list(self.shape)}"


class Element(msgspec.Struct, frozen=True):
    """An element of a tensor that is not as expected; values that JSON has no number for are text."""

    index: tuple[int, ...]
    given: Any
    expected: Any
    tolerance: float


class Deviated(msgspec.Struct, frozen=True):
    """How a tensor deviates from what was expected.

    Attributes
    ----------
    given, expected
        Types; where they differ, nothing else was measured.
    differing, size
        Number of elements beyond their tolerance, and of all.
    largest, mean
        Absolute difference, over all elements; infinity where a number is expected and none given.
    least, most
        Tolerance of an element.
    elements
        The first that are beyond it.
    """

    given: TensorType
    expected: TensorType
    differing: int = 0
    size: int = 0
    largest: float = 0.0
    mean: float = 0.0
    least: float = 0.0
    most: float = 0.0
    elements: tuple[Element, ...] = ()


class Frame(msgspec.Struct, frozen=True):
    """A frame of a traceback; a line that cannot be read is in no function."""

    file: str
    line: int
    function: str = ""


class Raised(Finding, frozen=True):
    """An exception: its type, what it says, and the end of its traceback."""

    keyed = _fields("error")
    type: str
    message: str
    traceback: tuple[str, ...] = ()

    @property
    def error(self) -> str:
        """Exception and first line of its message, without parts of a single cell."""
        return f"{self.type}: {general((self.message.splitlines() or [''])[0])}"


class Fails(Raised, frozen=True):
    """Lowering fails: where, and what upstream says.

    Attributes
    ----------
    lowered
        Whether it fails after a program was made, when that runs.
    """

    keyed = _fields("stage", "blamed", "error")
    stage: str = ""
    blamed: str = ""
    lowered: bool = False


# A program that is wrong


class OfProgram(Finding, frozen=True):
    """Something that is wrong with a program: `cause` has which outputs are, and where values begin to be."""


class OfOutput(OfProgram, frozen=True):
    """An output that is wrong on a sample."""

    output: int
    sample: str
    values: Deviated


class WrongValues(OfOutput, frozen=True):
    """Values of an output that are beyond their tolerance."""

    keyed = {"dtype": attrgetter("values.given.dtype")}


class WrongType(OfOutput, frozen=True):
    """An output of another dtype, or shape, than eager's."""

    keyed = {"given": attrgetter("values.given.name"), "expected": attrgetter("values.expected.name")}


class WrongCount(OfProgram, frozen=True):
    """A program with another number of outputs than eager has."""

    sample: str
    given: int
    expected: int


class BelowBound(OfProgram, frozen=True):
    """The metric of the case's task is below its bound."""

    keyed = {"name": attrgetter("metric.name")}
    metric: Metric


class Begins(OfProgram, frozen=True):
    """Where values begin to be wrong, and on which sample: at an operator of a delegate."""

    sample: str
    at: Spot
    backend: str
    values: Deviated

    @property
    def place(self) -> Key:
        """The type of operator, of the payload and of the graph; the backend; whether no operator departs alone."""
        source, named = self.at.node.partition(" ")[0], self.at.operator.partition(" ")[0]
        begins = f"{named} ({source})" if named else source
        return {"begins": begins, "in": self.backend} | ({} if self.at.alone else {"adding": True})


class BeginsElsewhere(OfProgram, frozen=True):
    """Where values begin to be wrong, and on which sample, if at no operator of a delegate."""

    sample: str
    at: Beginning

    @property
    def place(self) -> Key:
        """The name for a cause, without parts of a single cell; nothing where the place is not known."""
        return {"begins": general(self.at.name)} if self.at.name else {}


class Hidden(OfProgram, frozen=True):
    """No output is beyond its tolerance, and yet a value inside is wrong."""


class OfBuild(OfProgram, frozen=True):
    """A possible reason for wrong outputs of a program that its case made by itself.

    Attributes
    ----------
    method
        Empty for all of them: each alone is right, and a state does not reach the next.
    mode
        What of its module was in training mode; empty where that is not the reason, but a missing declaration may be.
    """

    method: str = ""
    mode: str = ""


class Biased(OfProgram, frozen=True):
    """An output whose differences as a whole are not those of rounding, although it moves single ones far."""

    output: int
    mean: float
    explained: float


class LoadedOtherwise(OfProgram, frozen=True):
    """The program gives something else where it is loaded another way than from a buffer: how, and what."""

    keyed = {"message": lambda found: general(found.what)}
    what: str


class Invalid(OfProgram, frozen=True):
    """A payload that its specification does not allow, by a release's own tool."""

    keyed = {
        "specification": lambda found: general(found.level),
        "message": lambda found: general(found.said),
    }
    level: str
    delegate: str
    said: str


class MissingConstant(OfProgram, frozen=True):
    """No delegate holds an output that is a constant.

    Attributes
    ----------
    nearest, delegate, values
        Name of the nearest constant, the number of the delegate that holds it, and how it deviates; empty where none
        has its dtype and shape.
    """

    output: int
    expected: TensorType
    nearest: str = ""
    delegate: int = 0
    values: Deviated | None = None


class Wiring(enum.StrEnum):
    """What is wrong with a declared output of a delegate."""

    UNDECLARED = "undeclared"
    TWICE = "twice"
    UNWRITTEN = "unwritten"


class Miswired(OfProgram, frozen=True):
    """An output of a delegate that is no value, that is declared twice, or that no operator writes.

    Attributes
    ----------
    delegate, outputs
        Its number, and all its declared outputs.
    slots
        Number of slots that it is in.
    unread
        Values that are written and never read.
    is_input
        Whether it is an input of the delegate.
    """

    keyed = _fields("wiring", "is_input")
    delegate: int
    outputs: tuple[str, ...]
    name: str
    wiring: Wiring
    slots: int = 1
    unread: tuple[str, ...] = ()
    is_input: bool = False


class ChangedModel(OfProgram, frozen=True):
    """Lowering changed a parameter or a buffer of the model that it was given."""

    keyed = _fields("name", "writer")
    name: str
    writer: str
    values: Deviated


class Forgotten(OfProgram, frozen=True):
    """Quantization loses the model's state: samples of several steps give what their last step gives alone."""

    samples: tuple[str, ...]
    most: float


class DoesNotRun(Raised, frozen=True):
    """The runtime refuses a program: what it says."""

    keyed = _fields("error", "undelegated")
    undelegated: bool = False
    invalid: tuple[Invalid, ...] = ()


# A program that says little


class LostSignal(Finding, frozen=True):
    """Quantization loses too much of an output.

    Attributes
    ----------
    fails
        How the program fails to lower as well.
    explains
        Whether it is said beside what no quantization makes right.
    """

    # Where a model differs first is one model's own.
    keyed = {**_fields("by"), "changes_model": lambda found: bool(found.lost.changed)}
    lost: Lost
    fails: Fails | None = None
    explains: bool = False

    @property
    def by(self) -> str:
        """The kind of what loses most, which models have in common; empty where that is not known."""
        return self.lost.by


class Imprecise(Finding, frozen=True):
    """Rounding alone may move an output so far that a comparison checks little."""

    fault = Fault.NONE
    output: int
    sample: str
    moved: float
    limit: float
    unseen: tuple[tuple[str, str], ...] = ()


class Unchecked(Finding, frozen=True):
    """Nothing checks some of a program.

    Attributes
    ----------
    methods
        Methods without a reference.
    outputs
        Outputs, each with what it is in all samples: it would be the same if nothing were computed.
    accepted
        What a person has accepted already.
    """

    fault = Fault.NONE
    keyed = _fields("lacking")
    methods: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    accepted: tuple[str, ...] = ()

    @property
    def lacking(self) -> list[str]:
        """What is not checked, without names."""
        return sorted({*(["method"] if self.methods else []), *(general(why) for _, why in self.outputs)})

    @property
    def names(self) -> tuple[str, ...]:
        """What a decision names that accepts all of it."""
        return tuple(dict.fromkeys((*self.accepted, *self.methods, *(name for name, _ in self.outputs))))


# An export that came to nothing


class NotFinished(Finding, frozen=True):
    """An export that did not finish."""

    variation: str
    ended: Ended

    @property
    def fault(self) -> Fault:  # type: ignore[override]
        return Fault.HARNESS if self.ended.of_harness else Fault.TOOLCHAIN

    def key(self) -> Key:
        return self.ended.key()


class OutOfResources(Raised, frozen=True):
    """The machine had too little for an export."""

    fault = Fault.MACHINE


class CaseFails(Raised, frozen=True):
    """The case raises before anything is lowered."""

    fault = Fault.CASE


class Unsteady(Raised, frozen=True):
    """A model is no function of its inputs and buffers."""

    fault = Fault.CASE


class OwnFileFails(Raised, frozen=True):
    """A file of the repository's own raises."""

    fault = Fault.REPOSITORY
    keyed = {"place": lambda found: f"{found.at.file}: {found.at.function}", **_fields("error")}
    at: Frame = Frame("", 0)


class Damaged(Finding, frozen=True):
    """Something that cannot be read: what, where, and the way out."""

    keyed = {"what": lambda found: general(found.message)}
    message: str


class Undecodable(Damaged, frozen=True):
    """A payload that is not what its format's schema says."""


class DamagedGolden(Damaged, frozen=True):
    """A golden that cannot be used."""

    fault = Fault.NONE


# Variations that disagree


class Disagreement(Finding, frozen=True):
    """Variations make different artifacts.

    Attributes
    ----------
    groups
        The variations that agree, group by group.
    order_only
        Whether nothing but order and numbering differs.
    fails
        How each group fails; None for one that lowers.
    """

    keyed = {
        **_fields("order_only"),
        "failing": lambda found: sorted({each.error for each in found.fails if each is not None}),
    }
    groups: tuple[tuple[str, ...], ...]
    order_only: bool = False
    fails: tuple[Fails | None, ...] = ()


class UnequalOutputs(Finding, frozen=True):
    """One program gives different outputs under different variations, or is right under some only.

    Attributes
    ----------
    values
        How the outputs of the second group deviate from the first's: none where they do not.
    wrong
        The first wrong output under each group; None where none is.
    judged_apart
        Whether eager gives finite numbers under some variations only.
    """

    keyed = {"outputs": lambda found: sorted({each.output for each in found.values})}
    groups: tuple[tuple[str, ...], ...]
    values: tuple[WrongValues | WrongType, ...]
    wrong: tuple[WrongValues | WrongType | WrongCount | None, ...]
    judged_apart: bool = False


class UnsteadyCase(Finding, frozen=True):
    """A case gives variations different models: the variations that agree, and the recorded weights that differ."""

    fault = Fault.CASE
    # Whichever weights they are.
    keyed = {"of_weights": lambda found: bool(found.weights)}
    groups: tuple[tuple[str, ...], ...]
    weights: tuple[str, ...] = ()


# Against a golden


class Differs(Finding, frozen=True):
    """An artifact differs from its golden in these sections; empty names one that is a failure no longer.

    Attributes
    ----------
    newly_outside
        Operators that stay outside now, with why.
    """

    fault = Fault.NONE
    sections: tuple[str, ...]
    newly_outside: tuple[tuple[str, str], ...] = ()


class OfFailure(Finding, frozen=True):
    """A golden-to-be that is a failure: how lowering fails, and the text of the failure."""

    fails: Fails
    text: tuple[str, ...]

    def key(self) -> Key:
        return self.fails.key()


class NowFails(OfFailure, frozen=True):
    """Lowering fails, and did not when the golden was recorded: how, and the text of the failure."""


class NamesDiffer(Finding, frozen=True):
    """An artifact differs from its golden in names alone: before and after."""

    fault = Fault.NONE
    names: tuple[tuple[str, str], ...]


class NewFailure(OfFailure, frozen=True):
    """A cell without a golden, whose lowering fails: how, and the text of the failure."""

    fault = Fault.NONE


class NewProgram(Finding, frozen=True):
    """A program without a golden.

    Attributes
    ----------
    undelegated
        Whether it has no delegate, on a target that has some.
    delegates, operators
        Number of delegates, and of operators in them.
    outside
        Operators outside of them, the most common first, with their number.
    unvalidated
        What a validator could not check.
    """

    fault = Fault.NONE
    keyed = _fields("undelegated")
    undelegated: bool
    delegates: int
    operators: int
    outside: tuple[tuple[str, int], ...]
    sqnr: float | None = None
    not_run: str = ""
    in_eager: tuple[str, ...] = ()
    unvalidated: tuple[str, ...] = ()


class Unexpected(Finding, frozen=True):
    """The golden of a cell is a decision that nobody has taken.

    Attributes
    ----------
    what
        `executorch_goldens.zoo.registry.FAILS` or `UNDELEGATED`.
    why, outside
        Why lowering fails; operators outside of delegates.
    """

    fault = Fault.NONE
    keyed = _fields("what", "why", "outside")
    what: str
    why: str
    outside: tuple[str, ...] = ()


class Exceeded(msgspec.Struct, frozen=True):
    """A quantity beyond its limit, and the cells, a name or a pattern, that have that limit."""

    quantity: str
    found: float
    limit: float
    cells: str


class OverBudget(Finding, frozen=True):
    """A program exceeds budgets that are in a file."""

    keyed = {"quantity": lambda found: found.exceeded[0].quantity}
    exceeded: tuple[Exceeded, ...]
    file: str


class RightNow(Finding, frozen=True):
    """A cell is right that a decision knows as wrong."""

    fault = Fault.NONE
    keyed = _fields("verdict", "why")
    file: str
    verdict: str
    why: str


class NotRun(Finding, frozen=True):
    """A program was not run, so that nothing says whether it shows a known defect."""

    fault = Fault.NONE
    known: str
    why: str


def classes(of: type[Finding] = Finding) -> list[type[Finding]]:
    """Return all kinds of findings, but those that others are kinds of."""
    return [each for kind in of.__subclasses__() for each in classes(kind)] or [of]


if TYPE_CHECKING:
    OneOf = Finding
else:
    #: Any finding, as it is read back.
    OneOf = Union[tuple(classes())]  # noqa: UP007

#: What `cause` adds to the key of an `OfProgram`.
PLACED = ("output", "begins", "in", "adding")
#: The names in the key of each kind that has one of its own: an export that did not finish has that of its end.
KINDS: Mapping[str, tuple[str, ...]] = {
    _kind(each.__name__): (*each.keyed, *(PLACED if issubclass(each, OfProgram) else ()))
    for each in classes()
    if each.key is Finding.key
} | {str(each.__struct_config__.tag): each.telling for each in get_args(AnyCasualty)}


def cause(found: Sequence[Finding]) -> Key:
    """Return the key of what is found of a cell: of the first, with the outputs that are wrong and where they begin."""
    key = dict(found[0].key()) if found else {}
    if outputs := sorted({each.output for each in found if isinstance(each, OfOutput | Biased)}):
        key["output"] = outputs
    return {**key, **begins(found)}


#: Fields that two findings which are as wrong as each other need not share: what was printed, single elements.
DETAILS = ("traceback", "tail", "log", "lines", "elements")


def without_details(found: Finding) -> Any:
    """Return the data of a finding without its `DETAILS`."""
    return _without_details(msgspec.to_builtins(found))


def _without_details(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_details(each) for name, each in data.items() if name not in DETAILS}
    return [*map(_without_details, data)] if isinstance(data, list | tuple) else data


def short(key: Key) -> Key:
    """Return a key as a decision has it: a single output as its number."""
    return {
        name: each[0] if isinstance(each, list) and len(each) == 1 else each for name, each in key.items()
    }


def matches(pattern: Key, key: Key) -> bool:
    """Return whether a key has all that a pattern names; in a text, ``*`` is whatever upstream says there.

    >>> matches({"kind": "wrong-values", "output": 0}, {"kind": "wrong-values", "dtype": "int8", "output": [0]})
    True
    >>> matches({"error": "ValueError: * of […]"}, {"error": "ValueError: no size of […]"})
    True
    """
    found = short(key)
    return all(_matches(each, found.get(name)) for name, each in short(pattern).items())


def _matches(wanted: object, found: object) -> bool:
    if isinstance(wanted, str) and isinstance(found, str):
        return fnmatch.fnmatchcase(found, wanted.replace("[", "[[]"))
    return wanted == found


def begins(found: Iterable[Finding]) -> Key:
    """Return where values begin to be wrong; empty where none do, or it is not known."""
    return next((each.place for each in found if isinstance(each, Begins | BeginsElsewhere)), {})
