"""Makes a program smaller while it shows the same: torch's minifier, and steps that it does not try."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._functorch.fx_minifier import minifier
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from executorch_goldens_plugins.repro.program import GraphProgram, evaluate, owned, plain

Test = Callable[[GraphProgram], bool]

#: Number of expressions that `executorch_goldens_plugins.repro.program.plain` knows.
PLAIN = 3


def shrink(program: GraphProgram, shows: Test) -> GraphProgram:
    """Return a program that still shows the defect and that no step of these makes smaller.

    Parameters
    ----------
    shows
        Whether a program shows the same; asked once for each program, and only of programs that run.
    """
    asked: dict[str, bool] = {}

    def ask(candidate: GraphProgram) -> bool:
        key = candidate.source()
        if key not in asked:
            # A model without any input meets defects of its own.
            asked[key] = (
                bool(candidate.inputs or not program.inputs) and _runs(candidate) and shows(candidate)
            )
        return asked[key]

    asked[program.source()] = True
    small, size = program, None
    while small.size() != size:
        size = small.size()
        small = minified(greedy(small, ask), ask)
    return plainer(small, ask)


def _runs(program: GraphProgram) -> bool:
    try:
        with torch.no_grad():
            copy.deepcopy(program.module)(*program.inputs)
    except Exception:
        return False
    return True


def greedy(program: GraphProgram, shows: Test) -> GraphProgram:
    """Simplify until nothing helps, going on after the last simplification that did."""
    position = 0
    while True:
        for number, candidate in enumerate(
            itertools.islice(simplifications(program), position, None), position
        ):
            if candidate.size() < program.size() and shows(candidate):
                program, position = candidate, number
                break
        else:
            if position == 0:
                return program
            position = 0


def minified(program: GraphProgram, shows: Test) -> GraphProgram:
    """Have torch's minifier cut the graph's end and outputs off, and turn computed values into inputs."""

    def fails(module: GraphModule, inputs: Sequence[torch.Tensor]) -> bool:
        return shows(GraphProgram(module, tuple(map(owned, inputs)), program.dynamic))

    # It runs the model, which may change its buffers, and prints its progress on stderr.
    with contextlib.redirect_stderr(io.StringIO()), torch.no_grad():
        module, inputs = minifier(
            copy.deepcopy(program.module), list(program.inputs), fails, dump_state=lambda *_: None
        )
    found = GraphProgram(module, tuple(map(owned, inputs)), program.dynamic)
    return found if found.size() < program.size() else program


def simplifications(program: GraphProgram) -> Iterator[GraphProgram]:
    """Yield programs with some calls replaced by an argument or a constant, then with inputs merged."""
    yield from bypassed(program)
    yield from folded(program)
    yield from merged(program)


def bypassed(program: GraphProgram) -> Iterator[GraphProgram]:
    """Yield programs in which an argument replaces a call, or all calls of an operator."""
    calls = [node for node in program.module.graph.nodes if node.op == "call_function"]
    kinds = [[node for node in calls if node.target == target] for target in {n.target: None for n in calls}]
    alone = [[node] for node in reversed(calls)]
    for chosen in [kind for kind in kinds if len(kind) > 1] + alone:
        arguments = {node: node.all_input_nodes for node in chosen}
        for which in range(max(map(len, arguments.values()))):
            yield _replaced(program, [(node, of[which]) for node, of in arguments.items() if which < len(of)])


def merged(program: GraphProgram) -> Iterator[GraphProgram]:
    """Yield programs in which one of two inputs or constants of the same shape and dtype replaces the other."""
    values = program.sources()
    nodes = [node for node in program.module.graph.nodes if node.op in ("placeholder", "get_attr")]
    for kept, replaced in itertools.combinations(nodes, 2):
        one, other = values[str(kept.target)], values[str(replaced.target)]
        if (kept.op, one.dtype, one.shape) == (replaced.op, other.dtype, other.shape):
            yield _replaced(program, [(replaced, kept)])


def folded(program: GraphProgram) -> Iterator[GraphProgram]:
    """Yield programs in which the value of a call that depends on no input is a constant."""
    values: dict[Node, Any] = {}
    for node in program.module.graph.nodes:
        if node.op == "get_attr":
            values[node] = program.constants()[str(node.target)]
        elif (
            node.op == "call_function" and values.keys() >= set(node.all_input_nodes) and not node.is_impure()
        ):
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            with torch.no_grad():
                values[node] = node.target(*args, **kwargs)
    for node in [node for node in reversed(values) if node.op == "call_function"]:
        if isinstance(values[node], torch.Tensor):
            graph = copy.deepcopy(program.module.graph)
            (twin,) = (found for found in graph.nodes if found.name == node.name)
            with graph.inserting_before(twin):
                twin.replace_all_uses_with(graph.create_node("get_attr", f"{node.name}_value"))
            yield program.with_graph(graph, {f"{node.name}_value": owned(values[node])})


def _replaced(program: GraphProgram, pairs: Sequence[tuple[Node, Node]]) -> GraphProgram:
    """Return the program in which the second node of each pair replaces the first."""
    graph = copy.deepcopy(program.module.graph)
    nodes = {node.name: node for node in graph.nodes}
    for old, new in pairs:
        # A node that is replaced first may be the replacement of a later one.
        nodes[old.name].replace_all_uses_with(nodes[new.name])
        nodes = {name: nodes[new.name] if node is nodes[old.name] else node for name, node in nodes.items()}
    return program.with_graph(graph)


def plainer(program: GraphProgram, shows: Test) -> GraphProgram:
    """Return a program with plain numbers for as many of its inputs' and constants' values as still shows the same."""
    done: set[str] = set()
    for chosen in ({*program.sources()}, *({name} for name in program.sources())):
        for number in range(PLAIN) if not chosen <= done else ():
            plain_ones = {name: _plain(program.sources()[name], number) for name in chosen}
            candidate = program.with_sources(plain_ones)
            if shows(candidate):
                program, done = candidate, done | chosen
                break
    return program


def _plain(tensor: torch.Tensor, number: int) -> torch.Tensor:
    """Return a tensor of the same shape and dtype, with values of `repro.program.plain`."""
    texts = list(plain(tuple(tensor.shape), tensor.dtype))
    made = torch.empty_like(tensor.detach()).copy_(evaluate(texts[min(number, len(texts) - 1)]))
    return torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made
