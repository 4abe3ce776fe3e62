"""Runs a program in each way that it has references for, and looks into what departs from them."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import torch

from executorch_goldens.artifact import (
    Beginning,
    Failure,
    FirstDeparture,
    Lost,
    Lowered,
    Sample,
    Tensor,
)
from executorch_goldens.exporting import compat, kernels
from executorch_goldens.exporting.apart import ApartError, run_apart
from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.exporting.inside import beginning
from executorch_goldens.exporting.inside.beginning import EdgeMethod, Unseen
from executorch_goldens.exporting.numerics import loading
from executorch_goldens.exporting.numerics import programs as numerics
from executorch_goldens.exporting.numerics.bare import change
from executorch_goldens.exporting.numerics.loss import losses
from executorch_goldens.exporting.numerics.samples import alone
from executorch_goldens.exporting.numerics.walking import Walker, nothing_runs
from executorch_goldens.exporting.observing import NOBODY, Observer
from executorch_goldens.exporting.program import ExportProgress, Program, Reference, Request
from executorch_goldens.goldens.accuracy import worst
from executorch_goldens.zoo.registry import SELECTIVE
from executorch_goldens.zoo.targets import EITHER, INT8_FLOOR, RUNTIME

T = TypeVar("T")

#: Seconds of processor time that looking for the operator that begins a departure may take: a third of what an export
#: may.
LOOKING = 60.0


def run_program(
    request: Request, program: Program, references: Sequence[Reference], made: Lowered
) -> tuple[tuple[Reference, ...], Lowered]:
    """Run a program: in ExecuTorch's runtime, and what this lacks elsewhere.

    Returns
    -------
    tuple[tuple[Reference, ...], Lowered]
        The references without the samples on which TOSA leaves open what comes out, and the program with its outputs.
    """
    not_run = program.not_run or left_out(references)
    in_eager = lacking(request, program) if request.execute and not not_run else ()
    not_run = not_run or nothing_runs(in_eager)
    kept: list[Reference] = []
    samples: list[Sample] = []
    loads: dict[str, None] = {}
    for reference in references:
        outputs: Mapping[str, tuple[Tensor, ...]] = {}
        if reference.samples and not not_run:
            reference, outputs, lines = run_on(request, program, reference, in_eager)
            loads |= dict.fromkeys(lines)
        method = reference.method if made.methods else ""
        samples += [sample(reference, name, given, method) for name, given in outputs.items()]
        kept.append(reference)
    return tuple(kept), dataclasses.replace(
        made,
        samples=tuple(samples),
        not_run=not_run or left_out(kept),
        in_eager=() if not_run else in_eager,
        unjudged=tuple(each for reference in kept for each in reference.unjudged),
        loads=tuple(loads),
    )


def left_out(references: Iterable[Reference]) -> str:
    """Return why there is no sample left; empty where there is one, or none was left out."""
    given = [*references]
    unjudged = [why for reference in given for _, why in reference.unjudged]
    return unjudged[0] if unjudged and not any(reference.samples for reference in given) else ""


@handed_on
def lacking(request: Request, program: Program) -> tuple[str, ...]:
    """Return the operators that run in eager; raise RuntimeError for those that the product has no kernel for."""
    if before_emission(request):
        return ()
    found = numerics.without_kernels(program.called)
    if found and request.case.kernels == SELECTIVE:
        raise RuntimeError(f"the runtime has no kernel for {', '.join(found)}")
    return found


def before_emission(request: Request) -> bool:
    """Return whether the source of a program is run: nothing here runs what was emitted."""
    return request.target.runs != RUNTIME and not kernels.load()


def run_on(
    request: Request, program: Program, reference: Reference, in_eager: Sequence[str]
) -> tuple[Reference, Mapping[str, tuple[Tensor, ...]], tuple[str, ...]]:
    """Run a program on samples, and as it is loaded otherwise.

    Returns
    -------
    tuple[Reference, Mapping[str, tuple[Tensor, ...]], tuple[str, ...]]
        The samples that are left, the outputs for each, and the effect of other ways to load the program.
    """
    if before_emission(request) or not in_runtime(program, in_eager):
        with request.lowering.eager():
            return *outputs_of(request, reference, elsewhere(request, program, reference)), ()
    reference, outputs = outputs_of(request, reference, partial(by_runtime, program, reference), program.pte)
    if program.data or len(reference.order) > 1 or request.target.runs not in (RUNTIME, EITHER):
        return reference, outputs, ()
    given = {
        name: [inputs for _, inputs in reference.for_runtime(steps)]
        for name, steps in reference.samples.items()
    }
    lines = loading.differences(program.pte, given, outputs, LOOKING, reference.method)
    return reference, outputs, tuple(lines)


def in_runtime(program: Program, in_eager: Sequence[str]) -> bool:
    return not in_eager and not any(map(program.elsewhere.takes, program.backends))


def by_runtime(program: Program, reference: Reference, steps: numerics.Steps) -> tuple[Tensor, ...]:
    return numerics.flatten(numerics.run_methods(program.pte, reference.for_runtime(steps), program.data))


def elsewhere(
    request: Request, program: Program, reference: Reference
) -> Callable[[numerics.Steps], tuple[Tensor, ...]]:
    """Return what runs a program with what the runtime lacks elsewhere; methods in order before it is emitted."""
    if before_emission(request) or len({*reference.order}) > 1:
        assert program.edge is not None
        return partial(in_edge, program.edge.methods, reference, observer=request.observer)
    walker = Walker(program.pte, program.elsewhere, reference.method, program.data)
    return lambda steps: numerics.flatten(walker.run([inputs for _, inputs in reference.for_runtime(steps)]))


def in_edge(
    methods: Mapping[str, EdgeMethod],
    reference: Reference,
    steps: numerics.Steps,
    observer: Observer = NOBODY,
) -> tuple[Tensor, ...]:
    """Run a program before it is emitted: each delegate in its own runtime, operators between them in eager.

    Methods in order share the state that both have. Returns the outputs of the last step.
    """
    held = {name: dict(methods[name].held) for name in reference.order}
    given: tuple[Tensor, ...] = ()
    shared: dict[str, Any] = {}
    for name, inputs in zip(reference.methods_of(steps), steps, strict=True):
        held[name] |= {key: value for key, value in shared.items() if key in held[name]}
        interpreter = beginning.DelegateInterpreter(methods[name], observer)
        given = numerics.run_edge(interpreter, methods[name].signature, held[name], inputs)
        shared |= held[name]
    return given


def outputs_of(
    request: Request,
    reference: Reference,
    run: Callable[[numerics.Steps], tuple[Tensor, ...]],
    pte: bytes = b"",
) -> tuple[Reference, Mapping[str, tuple[Tensor, ...]]]:
    """Return the samples that are left, and the program's outputs for each; each run has copies.

    Samples on which TOSA leaves open what comes out are left out, if eager has no number there either.
    """
    made = {}
    left_out = {}
    for name, steps in reference.samples.items():
        request.observer.runs(name, pte)
        try:
            made[name] = run(copy.deepcopy(steps))
        except RuntimeError as error:
            beyond = reference.moved[name].beyond if name in reference.moved else ()
            # Lowering has to give a number wherever the model does.
            if not numerics.is_unpredictable(error) or not beyond:
                raise
            left_out[name] = f"TOSA leaves open what comes out: {beyond[0]}"
        else:
            request.observer.ran(name, made[name])
    return reference.without(left_out), made


def sample(reference: Reference, name: str, given: tuple[Tensor, ...], method: str) -> Sample:
    """Return the record of a sample with the program's outputs `given`."""
    order = reference.order if len(reference.order) > 1 else ()
    made = Sample(name, reference.expected[name], given, method=method, order=order)
    if (moved := reference.moved.get(name)) is None:
        return made
    return dataclasses.replace(
        made,
        spreads=moved.spreads,
        floats=reference.floats.get(name, ()),
        shifts=moved.shifts,
        alone=alone(reference.samples, name),
    )


# What departs


#: Exports the case of a request once more, and does not run the program.
Again: TypeAlias = Callable[[], Lowered]


def looked_into(
    request: Request, reached: ExportProgress, result: Lowered | Failure, again: Again
) -> Lowered | Failure:
    """Return a result with the start of its departure, and the losses of quantization."""
    if isinstance(result, Failure):
        looks = result.stage in ("lower", "emit")
        return dataclasses.replace(result, lost=lost(request, reached.references)) if looks else result
    result = with_beginning(request, reached, result, again)
    return dataclasses.replace(result, lost=lost(request, reached.references, result))


def with_beginning(request: Request, reached: ExportProgress, lowered: Lowered, again: Again) -> Lowered:
    """Return `lowered` with the start of its departure, or the findings of its operators if there is none."""
    program = reached.program
    if program is None or program.edge is None:
        return lowered
    unseen = []
    for reference in reached.references:
        method = program.edge.methods.get(reference.method)
        if method is None or len(reference.order) > 1:
            continue
        own = dataclasses.replace(
            lowered,
            samples=tuple(sample for sample in lowered.samples if sample.name in reference.samples),
            scales=reference.scales,
            bound=dict(lowered.bounds).get(reference.method, lowered.bound),
            methods=(),
            bounds=(),
        )
        begins, found = looked_at(request, program, method, reference, own, again)
        if begins is not None:
            return dataclasses.replace(lowered, begins=begins, unseen=found)
        unseen += [found] if found is not None else []
    if not unseen or len(unseen) < len(reached.references):
        return lowered
    return dataclasses.replace(lowered, unseen=tuple(itertools.chain(*unseen)))


def looked_at(
    request: Request,
    program: Program,
    method: EdgeMethod,
    reference: Reference,
    lowered: Lowered,
    again: Again,
) -> tuple[FirstDeparture | None, Unseen | None]:
    """Return the start of a method's departure, and what hid operators that its outputs do not show."""
    if not lowered.samples:
        return None, None
    if departing := beginning.first_departing(lowered):
        steps = reference.samples[departing.name]
        begins = apart(
            request,
            partial(beginning.beginning, method, lowered, departing, steps, program.off),
            lambda why: FirstDeparture(departing.name, beginning.unknown(why)),
        )
        where = begins.where
        if method.unset and where in beginning.WITHOUT_PLAN:
            where = beginning.in_state(method.unset)
        elif isinstance(where, Beginning) and not where.name:
            unshared = partial(replanned, request, program, method, reference, lowered, where, again)
            where = apart(request, unshared, lambda _: where)
        return dataclasses.replace(begins, where=where), None
    if not lowered.moves_far():
        # The tolerance of the outputs hides no operator, and to look at each takes as long as an export.
        return None, None
    chosen = {name: reference.samples[name] for name in beginning.chosen(reference.samples)}
    return apart(
        request,
        partial(beginning.looked_into, method, lowered, chosen, program.off),
        lambda why: (None, (("the program", why),)),
    )


def replanned(
    request: Request,
    program: Program,
    method: EdgeMethod,
    reference: Reference,
    lowered: Lowered,
    where: Beginning,
    again: Again,
) -> Beginning:
    """Return the memory plan as the place of a departure if that is not there without reuse of memory."""

    def departs(program: Program, runs: int) -> bool:
        """Return whether outputs of the last of several runs depart."""
        by_itself = in_runtime(program, lowered.in_eager)
        run = partial(by_runtime, program, reference) if by_itself else elsewhere(request, program, reference)
        steps = {name: [copy.deepcopy(each) for _ in range(runs)] for name, each in reference.samples.items()}
        samples = tuple(
            dataclasses.replace(each, outputs=run([*itertools.chain(*steps[each.name])]))
            for each in lowered.samples
        )
        return beginning.first_departing(dataclasses.replace(lowered, samples=samples)) is not None

    if not departs(program, 1):
        # It is not wrong every time.
        return where
    with compat.without_reuse() as planners:
        made = again()
    if (made.graph, made.delegates) != (lowered.graph, lowered.delegates):
        return where
    program = dataclasses.replace(program, pte=made.pte, data=next((held for _, held in made.data), b""))
    # Fresh memory hides a kernel that reads what nothing has written, until the method has run once.
    if any(departs(program, runs) for runs in ((1,) if method.signature.buffers_to_mutate else (1, 2))):
        return beginning.WITHOUT_PLAN.get(where, where)
    return beginning.in_plan(planners[reference.method])


def apart(request: Request, look: Callable[[], T], otherwise: Callable[[str], T]) -> T:
    """Return the result of `look` in a process of its own, or a substitute if that process dies."""
    try:
        with request.lowering.eager():
            return run_apart(look, LOOKING)
    except ApartError as error:
        return otherwise(str(error))


def lost(request: Request, references: Iterable[Reference], made: Lowered | None = None) -> Lost | None:
    """Return the first loss of quantization on an example, where it leaves an output below the floor.

    Parameters
    ----------
    made
        The program with its outputs; without one those of the quantized eager graph count.
    """
    floor = request.case.sqnr.get(
        request.target.name, INT8_FLOOR if request.case.is_build else request.target.floor
    )
    outputs = {sample.name: sample.outputs for sample in made.samples} if made is not None else {}
    for reference in references:
        name = next(iter(reference.samples), "")
        # Without a program to look at, what the harness has quantized itself.
        is_own = reference.graphs is not None and not reference.folded
        if floor is None or name not in reference.floats or (not is_own and name not in outputs):
            continue
        found = worst(reference.floats[name], outputs.get(name, reference.expected[name]))
        if found is None or found[1] >= floor:
            continue
        method = reference.method if made is not None and made.methods else ""
        look = partial(losing, reference, name, found[0], floor, method)
        lines, named, by, changed = apart(request, look, unknown_loss)
        return Lost(*found, floor, lines, named, by, changed)
    return None


def losing(
    reference: Reference, name: str, output: int, floor: float, method: str
) -> tuple[tuple[str, ...], bool, str, str]:
    """Return why an output is lost on a sample, and the further fields of `Lost`."""
    steps, floats = reference.samples[name], reference.floats[name]
    unnamed = f"which quantization{f' of {method}' if method else ''} loses it is not looked for"
    if reference.graphs is None:
        return (unnamed,), False, "", ""
    with torch.no_grad():
        plain, converted = reference.graphs()
        call = reference.calls[0]
        if plain is not None and (found := change(plain, converted, call, steps, floats, output)) is not None:
            return (found.line,), False, found.where, found.where
        if reference.folded or not isinstance(converted, torch.fx.GraphModule):
            return (unnamed,), False, "", ""
        return *losses(converted, call, steps, floats, output, floor), ""


def unknown_loss(why: str) -> tuple[tuple[str, ...], bool, str, str]:
    return (f"which quantization loses it is not known: {why}",), False, "", ""
