"""Smaller models: the changes that delta debugging tries, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lab.fuzz.model import BUFFER, COMPUTED, INPUT, Model, Source, Step, Value

#: Models that are tried for one failure, at most.
MOST_TRIED = 120


def reduce(model: Model, shows: Callable[[Model], bool]) -> tuple[Model, int]:
    """Return the smallest model found that still `shows` the same, and how many were tried.

    Each that does is where the next step begins; it ends when no step helps, or at `MOST_TRIED`.
    """
    asked = {model.source()}
    tried = 0
    found = True
    while found:
        found = False
        for smaller in reductions(model):
            if smaller.source() in asked or smaller.size() >= model.size():
                continue
            if tried == MOST_TRIED:
                return model, tried
            asked.add(smaller.source())
            tried += 1
            if shows(smaller):
                model, found = smaller, True
                break
    return model, tried


def reductions(model: Model) -> Iterator[Model]:
    """Yield models with less in them, those that leave out most first."""
    for number in dict.fromkeys(model.outputs) if len(model.outputs) > 1 else ():
        yield replace(model, outputs=(number,)).alive()
    # An output in the middle: what follows it goes.
    for step in model.steps:
        for value in step.made:
            yield replace(model, outputs=(value.number,)).alive()
    for place in range(len(model.outputs)) if len(model.outputs) > 1 else ():
        yield replace(model, outputs=model.outputs[:place] + model.outputs[place + 1 :]).alive()
    for step in reversed(model.steps):
        yield cut(model, step).alive()
        if (passed := bypassed(model, step)) is not None:
            yield passed.alive()
    if model.symbolic:
        yield replace(model, symbolic=False)
    for source in model.sources:
        if source.layout:
            plain = replace(source, layout="")
            yield replace(model, sources=tuple(plain if each == source else each for each in model.sources))
    values = [source.value for source in model.sources]
    for place, value in enumerate(values):
        for other in values[:place]:
            if (other.kind, other.shape, other.dtype) == (value.kind, value.shape, value.dtype):
                yield renamed(model, {value.number: other.number}).alive()


def cut(model: Model, step: Step) -> Model:
    """Return the model with inputs in place of the outputs of `step`."""
    steps = tuple(each for each in model.steps if each is not step)
    inputs = tuple(Source(replace(value, kind=INPUT), _expression(value)) for value in step.made)
    return replace(model, steps=steps, sources=(*model.sources, *inputs))


def bypassed(model: Model, step: Step) -> Model | None:
    """Return the model with an argument of `step` in place of its output; None if none is alike."""
    values = model.values
    given = [
        values[number]
        for number in reversed(step.arguments)
        if values[number].kind in (INPUT, COMPUTED, BUFFER)
    ]
    instead = {made.number: next((each for each in given if each.is_like(made)), None) for made in step.made}
    if None in instead.values():
        return None
    rest = replace(model, steps=tuple(each for each in model.steps if each is not step))
    return renamed(rest, {number: each.number for number, each in instead.items() if each is not None})


def renamed(model: Model, instead: dict[int, int]) -> Model:
    """Return the model with some values read in place of others."""
    steps = tuple(
        replace(step, arguments=tuple(instead.get(number, number) for number in step.arguments))
        for step in model.steps
    )
    return replace(model, steps=steps, outputs=tuple(instead.get(number, number) for number in model.outputs))


def _expression(value: Value) -> str:
    """Return the values of an input that replaces a computed value: sixteenths, small integers, or booleans."""
    arguments = ", ".join(map(str, value.shape)) if value.shape else "()"
    numbers = f"torch.arange({value.size}) * 7"
    if value.dtype == "bool":
        return f"(({numbers}) % 3 == 0).reshape({arguments})"
    if value.dtype.startswith("int"):
        return f"(({numbers}) % 9 - 4).to(torch.{value.dtype}).reshape({arguments})"
    return f"((({numbers}) % 33 - 16) / 16).reshape({arguments})"
