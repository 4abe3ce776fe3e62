"""Draws the models of an operator: covering arrays over the levels of its arguments and of what is around a call.

Every pair of two factors' levels is in some model, every triple of those that an operator has in twos, as far as eager
PyTorch takes it: a row that it refuses is drawn again, and what no draw makes it take cannot be. Operators of one
schema share an array, in which the operator is a factor.
"""

from __future__ import annotations

import itertools
import mmap
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import covertable
import msgspec
import torch
from covertable import sorters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

from executorch_goldens.exporting.data import Data
from executorch_goldens.zoo.targets import TARGETS
from executorch_goldens_plugins.compare.calls import (
    AFTER,
    BEFORE,
    INPUT,
    LAYOUTS,
    USERS,
    VALUES,
    CallModel,
    Operand,
    Value,
    operands_in,
)
from executorch_goldens_plugins.compare.exporting.one_call import build
from lab.args.levels import (
    DEFAULT,
    FLOATS,
    HELD,
    HELD_OF_LATER,
    HELD_OF_LEARNED,
    KINDS,
    LATER_DIMS,
    LEARNED,
    OTHERS,
    RANGES,
    SIZES,
    Context,
    levels,
    value,
)
from lab.args.shapes import FURTHER, LATER, RANKS, SHAPES, broadcast

SEED = 82
#: Targets that each factor meets; the others take turns for `ANY_OTHER`.
COMMON = ("tosa-fp", "tosa-int", "xnnpack-fp32", "xnnpack-int8")
ANY_OTHER = "other"
OTHER_TARGETS = tuple(name for name in TARGETS if name not in COMMON)
#: Of what is around a call, and of the first operand: kinds, one of which is drawn.
AROUND_BEFORE = {
    "none": ("",),
    "moves": ("permute", "reshape", "slice", "pad"),
    "computes": ("relu", "mul", "cast", "outside"),
}
AROUND_AFTER = {
    "none": ("",),
    "moves": ("permute", "reshape", "slice", "cat"),
    "computes": ("add", "mul", "sigmoid", "sum", "outside"),
    "fuses": ("relu", "clamp", "batch-norm"),
}
OF_USERS = {"one": ("",), "several": ("two", "outside", "operand"), "again": ("equal", "chained")}
LAID_OUT = {"contiguous": LAYOUTS[:1], "other": LAYOUTS[1:]}
VALUED = {"sixteenths": VALUES[:1], "mantissas": VALUES[1:2], "other": VALUES[2:]}
assert {*itertools.chain(*AROUND_BEFORE.values())} == {*BEFORE}
assert {*itertools.chain(*AROUND_AFTER.values())} == {*AFTER}
assert {*itertools.chain(*OF_USERS.values())} == {*USERS}
#: Names of arguments that an operator has in twos: every triple of their levels is in some model.
IN_TWOS = ("kernel", "kernel_size", "stride", "padding", "dilation", "output_padding")
#: Share of the models for a quantized target that are of float32 whatever their row says, and of those without an input
#: that get one.
SELDOM = 0.8
#: Levels that most code refuses.
RARE = frozenset(("one number", "bound", "cut", "beyond", "before last", "none"))
#: Draws of a row, and of rows for a pair that none has, until eager takes one.
DRAWS, MORE = 12, 24
#: Operators that no program has in a place where it could be lowered: they give no tensor, write to another one, draw
#: at random, or are made by PyTorch alone.
NO_MODEL = frozenset(
    (
        *(
            "_assert_async",
            "_assert_scalar",
            "_assert_tensor_metadata",
            "_local_scalar_dense",
            "item",
            "sym_numel",
        ),
        *(
            "sym_size",
            "sym_stride",
            "sym_constrain_range",
            "sym_constrain_range_for_size",
            "detach_",
            "empty",
        ),
        *(
            "native_dropout_backward",
            "_softmax_backward_data",
            "mkldnn_rnn_layer",
            "_shape_as_tensor",
            "nonzero",
        ),
        *(
            "dequantize",
            "quantize_per_tensor",
            "lift_fresh_copy",
            "_efficient_attention_forward",
            "log_sigmoid_forward",
        ),
        *("_batch_norm_with_update", "_flash_attention_forward"),
    )
)


@dataclass
class Family:
    """Operators of one schema.

    Attributes
    ----------
    operators
        ``name.overload``.
    """

    operators: list[str] = field(default_factory=list)

    @property
    def schema(self) -> Sequence[torch.Argument]:
        return list(schema_of(self.operators[0]).arguments)

    def factors(self) -> dict[str, tuple[Any, ...]]:
        """Return the levels of each factor."""
        found: dict[str, tuple[Any, ...]] = {"(operator)": tuple(self.operators)}
        further = special(FURTHER, self.operators[0])
        tensors = 0
        for argument in self.schema:
            kind, is_optional = kind_of(argument)
            if kind in ("Tensor", "List[Tensor]", "List[Optional[Tensor]]"):
                held = HELD_OF_LATER if tensors else HELD
                found[f"{argument.name} held"] = (*held, DEFAULT) if is_optional else held
                tensors += 1
            elif argument.name not in further and (
                own := levels(argument.name, kind, argument.has_default_value() or is_optional)
            ):
                found[argument.name] = own
        found.update(further)
        if tensors:
            found["(rank)"] = special(RANKS, self.operators[0]) or (0, 1, 2, 3, 4, 5, 6)
            found["(sizes)"] = tuple(SIZES)
            # Weights of whole numbers are in no program.
            has_weights = any(argument.name == "weight" for argument in self.schema)
            found["(kind of dtype)"] = tuple(KINDS)[:2] if has_weights else tuple(KINDS)
            found["(layout)"] = tuple(LAID_OUT)
            found["(before)"] = tuple(AROUND_BEFORE)
            found["(open)"] = (False, True)
        found["(values)"] = tuple(VALUED)
        found["(after)"] = tuple(AROUND_AFTER)
        found["(users)"] = tuple(OF_USERS)
        found["(target)"] = (*COMMON, ANY_OTHER)
        return found

    def later(self) -> list[dict[str, tuple[Any, ...]]]:
        """Return further levels, of models that are drawn after all others, in the order in which they came."""
        dims = {
            argument.name: LATER_DIMS
            for argument in self.schema
            if argument.name in ("dim", "dims") and kind_of(argument)[0] == "List[int]"
        }
        own = special(SHAPES, self.operators[0]) is None
        held = {f"{each.name} held": HELD_OF_LEARNED for each in self.schema if each.name in LEARNED}
        further: list[dict[str, tuple[Any, ...]]] = [
            next(filter(None, (special(each, operator) for operator in self.operators)), {}) for each in LATER
        ]
        first, second = further
        return [{**(dims if own else {}), **first}, {**held, **second}]


def is_drawn(operator: str) -> bool:
    """Return whether models of an operator are drawn: PyTorch has it, and it gives a tensor of its own."""
    name, _, overload = operator.partition(".")
    known = getattr(torch.ops.aten, name, None)
    return name not in NO_MODEL and overload != "out" and known is not None and overload in known.overloads()


def base(operator: str) -> str:
    return operator.partition(".")[0]


def special(table: Mapping[str, Any], operator: str) -> Any:
    """Return what a table has of an operator, by its name with the overload or without."""
    return table.get(operator, table.get(base(operator), {} if table is FURTHER else None))


def schema_of(operator: str) -> Any:
    name, _, overload = operator.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload)._schema


def kind_of(argument: torch.Argument) -> tuple[str, bool]:
    """Return the type of an argument, without ``Optional``, and whether it had that."""
    text = str(argument.type)
    return (text[len("Optional[") : -1], True) if text.startswith("Optional[") else (text, False)


def families(operators: Iterable[str]) -> list[Family]:
    """Return the operators by schema; those with shapes of their own are apart."""
    found: dict[Any, Family] = {}
    for operator in sorted(operators):
        own = [(str(each.type), each.name) for each in schema_of(operator).arguments]
        make = special(SHAPES, operator)
        key = (
            tuple(own),
            id(make) if make else 0,
            str(special(RANKS, operator)),
            str(special(FURTHER, operator)),
        )
        found.setdefault(key, Family()).operators.append(operator)
    return list(found.values())


def arrays(family: Family) -> list[dict[str, Any]]:
    """Return the rows of a covering array over the factors of a family."""
    factors = {name: each for name, each in family.factors().items() if each}
    pairs = [name for name in IN_TWOS if len(factors.get(name, ())) > 1]
    has_two_dims = 2 in factors.get("spatial", ())
    three = [{"fields": pairs, "strength": 3}] if len(pairs) > 2 and has_two_dims else []
    made = covertable.make(factors, strength=2, sorter=sorters.hash, salt=str(SEED), sub_models=three)
    return [dict(row) for row in made]


class Drawing:
    """Draws the models of a family.

    Parameters
    ----------
    crashing
        Models that end the process when they run in eager.
    last
        Memory that has the model that ran last, which outlives the process.
    """

    def __init__(self, family: Family, crashing: Collection[str] = (), last: mmap.mmap | None = None) -> None:
        self.family = family
        self.crashing = crashing
        self.last = last
        self.factors = family.factors()
        self.chance = random.Random(f"{SEED} {' '.join(family.operators)}")
        self.models: list[CallModel] = []
        #: The place of the first model of the levels that came last.
        self.last_began = 0
        self.covered: set[frozenset[tuple[str, Any]]] = set()
        self.texts: set[str] = set()
        self.turn = self.chance.randrange(len(OTHER_TARGETS))

    def draw(self) -> list[CallModel]:
        """Return the models of the array, and of the pairs that eager refused in its rows."""
        for row in arrays(self.family):
            self._keep(row, DRAWS)
        self._complete(*self.factors.items())
        for later in self.family.later():
            self.last_began = len(self.models)
            for name, own in sorted(later.items()):
                self.factors[name] = (*self.factors[name], *sorted(own))
            self._complete(*later.items())
        return self.models

    def _complete(self, *levels: tuple[str, Sequence[Any]]) -> None:
        """Draw models of the pairs of levels that none has: of those with some levels of factors."""
        wanted = {(name, level) for name, own in levels for level in own}
        pairs = [
            frozenset(((one, a), (other, b)))
            for one, other in itertools.combinations(self.factors, 2)
            for a in self.factors[one]
            for b in self.factors[other]
        ]
        for pair in pairs:
            if pair not in self.covered and not wanted.isdisjoint(pair):
                fixed = dict(pair)
                for _ in range(MORE):
                    row = {
                        name: fixed.get(name, self.chance.choice(each)) for name, each in self.factors.items()
                    }
                    # The rest as plain as it can be: what eager refuses then is the pair.
                    for name in ("(before)", "(after)", "(users)", "(layout)", "(open)"):
                        if name in row and name not in fixed and self.chance.random() < 0.7:
                            row[name] = self.factors[name][0]
                    if self._keep(row, 1):
                        break

    def _plainer(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row with at most one level that most code refuses: two of them would hide each other."""
        rare = [name for name, level in row.items() if level in RARE and name in self.factors]
        self.chance.shuffle(rare)
        kept = rare[:1] if self.chance.random() > SELDOM else []
        plain = {
            name: [each for each in self.factors[name] if each not in RARE] or [row[name]]
            for name in rare
            if name not in kept
        }
        return {**row, **{name: self.chance.choice(each) for name, each in plain.items()}}

    def _keep(self, row: dict[str, Any], draws: int) -> bool:
        row = self._plainer(row) if draws > 1 else row
        for _ in range(draws):
            model = self._model(row)
            if model is None or (text := model.line) in self.texts or text in self.crashing:
                continue
            if self.last is not None:
                self.last[:] = text.encode()[: len(self.last)].ljust(len(self.last))
            if runs(model):
                self.texts.add(text)
                self.models.append(model)
                self.covered.update(frozenset(pair) for pair in itertools.combinations(row.items(), 2))
                return True
        return False

    def _model(self, row: Mapping[str, Any]) -> CallModel | None:
        """Return a model of a row; None where its levels cannot go together."""
        target = row["(target)"]
        if target == ANY_OTHER:
            self.turn += 1
            target = OTHER_TARGETS[self.turn % len(OTHER_TARGETS)]
        rank, operator = row.get("(rank)", 0), row["(operator)"]
        dtype = self.chance.choice(KINDS[row.get("(kind of dtype)", "float32")])
        if TARGETS[target].is_quantized and (dtype in FLOATS[1:] or self.chance.random() < SELDOM):
            # Quantizers take float32; a few whole numbers are beside.
            dtype = "float32"
        sizes = SIZES[row.get("(sizes)", "even")]
        # A kind of values is drawn once for all operands of a model.
        row = {**row, "(values)": self.chance.choice(VALUED[row["(values)"]])}
        at = Context(self.chance, row, tuple(self.chance.choice(sizes) for _ in range(rank)), dtype)
        make = special(SHAPES, operator)
        try:
            own = dict(make(at)) if make is not None else {}
            arguments = dict(self._arguments(at, operator, own))
        except (IndexError, KeyError, ZeroDivisionError, ValueError):
            return None
        arguments = self._with_input(arguments)
        before = self.chance.choice(AROUND_BEFORE[row.get("(before)", "none")])
        after = self.chance.choice(AROUND_AFTER[row["(after)"]])
        opened = None
        if row.get("(open)"):
            opened = self.chance.randrange(max(at.rank, 1))
            if not at.rank or at.shape[opened] < 2 or before in ("reshape", "slice", "pad", "permute"):
                return None
        if before and not _may_precede(arguments, before):
            return None
        return CallModel(
            "",
            target,
            operator,
            arguments,
            before,
            after,
            self.chance.choice(OF_USERS[row["(users)"]]),
            opened,
        )

    def _arguments(self, at: Context, operator: str, own: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
        name, row = base(operator), at.row
        low, high = RANGES.get(name, (-2.0, 2.0))
        first = True
        for argument in self.family.schema:
            kind, is_optional = kind_of(argument)
            given = row.get(argument.name)
            if argument.name in own:
                made = own[argument.name]
            elif kind == "Tensor":
                held = row[f"{argument.name} held"]
                if held == DEFAULT:
                    continue
                if first:
                    made = self._first(at, held, low, high)
                else:
                    made = self._second(at, argument.name, name)
            elif argument.name in row and given != DEFAULT:
                made = value(argument.name, kind, given, at)
            elif argument.has_default_value() or is_optional:
                continue
            elif kind == "bool":
                made = False
            else:
                raise KeyError(argument.name)
            first = first and not isinstance(made, Operand)
            at.made[argument.name] = made
            yield argument.name, made

    def _with_input(self, arguments: dict[str, Value]) -> dict[str, Value]:
        """Return arguments of which one is an input, for most models: what has none is folded."""
        held = [each.held for each in operands_in(*arguments.values())]
        if not held or INPUT in held or self.chance.random() > SELDOM:
            return arguments
        name, first = next(
            (name, each) for name, each in arguments.items() if isinstance(each, Operand | list) and each
        )
        if isinstance(first, Operand):
            return {**arguments, name: msgspec.structs.replace(first, held=INPUT)}
        return arguments

    def _first(self, at: Context, held: str, low: float, high: float) -> Operand:
        layout = self.chance.choice(
            [each for each in LAID_OUT[at.row["(layout)"]] if fits(each, at.rank)] or LAYOUTS[:1]
        )
        low, high = _of_dtype(at.dtype, low, high)
        return Operand(at.dtype, at.shape, held, layout, at.row["(values)"], low, high)

    def _second(self, at: Context, argument: str, name: str) -> Operand:
        made = broadcast(at, argument)
        low, high = _of_dtype(made.dtype, *OTHERS.get(name, (made.least, made.most)))
        return Operand(made.dtype, made.shape, made.held, made.layout, made.values, low, high)


def _of_dtype(dtype: str, low: float, high: float) -> tuple[float, float]:
    if dtype == "bool":
        return 0.0, 1.0
    return (
        (low, high)
        if dtype in FLOATS
        else (float(int(low)) if low >= 0 else -8.0, max(float(int(high)), 8.0))
    )


def fits(layout: str, rank: int) -> bool:
    """Return whether a tensor of a rank can be laid out so."""
    return {
        "channels-last": rank in (4, 5),
        "permuted": rank > 1,
        "sliced": rank > 0,
        "expanded": rank > 0,
    }.get(layout, True)


def _may_precede(arguments: Mapping[str, Value], before: str) -> bool:
    """Return whether something may come between the first input and the first operand."""
    inputs = [each for each in operands_in(*arguments.values()) if each.held == INPUT]
    if not inputs:
        return False
    first = inputs[0]
    if first.dtype not in FLOATS and before not in ("permute", "reshape", "slice"):
        return False
    if before == "cast":
        return first.dtype == "float32"
    if before == "pad":
        return bool(first.shape) and first.shape[-1] > 1
    return bool(first.shape) or before in ("relu", "mul", "outside")


def runs(model: CallModel) -> bool:
    """Return whether eager takes a model, and gives the same twice, as numbers of which some are finite.

    An export computes shapes alone: what gives others there, or is refused, reads what it is not given. Calibration
    takes finite numbers alone.
    """
    state = torch.get_rng_state()
    try:
        with torch.no_grad():
            example = build(model, Data("model"))
            if not example.inputs or any(each.numel() > 4096 for each in example.inputs):
                return False
            one, other = (example.module(*[each.clone() for each in example.inputs]) for _ in range(2))
            with FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv()) as mode:
                # As an export has them: of static sizes.
                given = [mode.from_tensor(each, static_shapes=True) for each in example.inputs]
                try:
                    fake = example.module(*given)
                except GuardOnDataDependentSymNode:
                    # A size follows from values: whether a release exports that is for it to say.
                    fake = one
    except Exception:
        return False
    if not torch.equal(state, torch.get_rng_state()) or not all(map(_have_one_shape, one, fake)):
        return False
    tensors = [each for each in one if isinstance(each, torch.Tensor)]
    if len(tensors) != len(one) or not tensors or not tensors[0].numel():
        return False
    if any(each.is_complex() or each.numel() > 8192 for each in tensors):
        return False
    same = all(
        torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) if a.is_floating_point() else torch.equal(a, b)
        for a, b in zip(one, other, strict=True)
    )
    enough = torch.all if TARGETS[model.target].is_quantized else torch.any
    return same and bool(enough(torch.isfinite(tensors[0])))


def _have_one_shape(one: torch.Tensor, fake: torch.Tensor) -> bool:
    """Return whether shapes are one, but for sizes that follow from values."""
    return one.dim() == fake.dim() and all(
        own == size for own, size in zip(one.shape, fake.shape, strict=True) if isinstance(size, int)
    )


def becomes(models: Iterable[CallModel]) -> dict[str, list[str]]:
    """Return what the core operators are that each operator is decomposed into, of its plainest models that export."""
    found: dict[str, list[str]] = {}
    by_plainness = sorted(
        models, key=lambda each: (each.open is not None, each.users, each.before + each.after)
    )
    for model in by_plainness:
        if model.operator in found:
            continue
        try:
            example = build(model, Data("model"))
            program = torch.export.export(example.module, example.inputs, strict=False).run_decompositions()
        except Exception:
            continue
        called = {
            str(node.target).removeprefix("aten.")
            for node in program.graph.nodes
            if node.op == "call_function"
        }
        found[model.operator] = sorted(called - {"add.Tensor", "<built-in function getitem>"} or called)
    return dict(sorted(found.items()))


def slug(operator: str) -> str:
    """Return the beginning of the names of an operator's models.

    >>> slug("max_pool2d.default"), slug("add_.Tensor"), slug("_softmax.default")
    ('max-pool2d', 'add-in-place-tensor', 'softmax')
    """
    name, _, overload = operator.partition(".")
    place = "-in-place" if name.endswith("_") and not name.endswith("__") else ""
    kind = "" if overload == "default" else f"-{overload}"
    return f"{name.strip('_')}{place}{kind}".replace("_", "-").lower()
