"""The models that a search begins with: cells near an edit, and models of other zoos that have its operators."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.comparing.searching import (
    SEED,
    UNCHANGED,
    Reached,
    Search,
    SearchOrder,
    Try,
    rarity,
)
from executorch_goldens.comparing.sides import Sides
from executorch_goldens.reach.answer import statements_run
from executorch_goldens.reach.choice import DEAR, SHORT, around, differing, stem, turns, words_of
from executorch_goldens.reach.code import module_of, text_of
from executorch_goldens.reach.edits import Edits
from executorch_goldens.reach.map import ReachMap
from executorch_goldens.zoo.registry import Case, load

#: Names of ATen's and TOSA's operators, as sources of passes have them.
_OPERATOR = re.compile(r"\b(?:aten|tosa)\.([A-Za-z]\w*|_\w+)")
#: Changes that are tried first, by words of the edited statements.
ASKED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("start", "end", "index", "slice"): ("ends", "longer-steps"),
    ("dim", "axis", "axes"): ("from-the-end", "next-dimension", "former-dimension", "as-images"),
    ("value", "scalar", "min", "max", "bound", "alpha", "beta", "clamp"): (
        "lowered-0",
        "raised-1",
        "clamped-inside-0",
    ),
    ("stride", "pad", "padding", "kernel", "dilation", "step"): ("uneven", "longer-steps", "odd"),
    ("user",): ("read-twice-1", "read-outside-all", "read-twice-all", "two-users"),
    ("partition", "delegate", "support", "outside"): ("parted-1", "read-outside-all"),
    ("permute", "perm", "order", "layout", "nhwc", "nchw"): ("turned-inside-0", "nhwc", "last", "rotated"),
    ("shape", "size", "rank", "view", "reshape"): (
        "as-images",
        "flattened-inside-all",
        "reshaped-inside-all",
        "stacked",
        "of-one",
        "flat",
        "deeper",
    ),
    ("cat", "concat", "tensors"): ("many", "same"),
    ("constant", "param", "placeholder", "buffer"): ("constant", "copied", "twice"),
    ("equal", "duplicate", "identical", "fuse"): ("again-0", "twice", "same"),
    ("keepdim", "ceil", "mode", "align", "rounding", "approximate"): ("flags", "defaults"),
    ("bias", "weight", "optional"): ("bare",),
    ("sym", "symint", "dynamic"): ("unknown",),
    ("dtype", "float", "half", "integer", "promotion"): ("whole", "half"),
    ("offset", "diagonal"): ("raised-0", "lowered-0"),
}
#: What is before a word of a name in ``CamelCase``.
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Separators of words.
_NO_WORD = re.compile(r"[^a-z0-9]+")
#: Samples that get another operator before or after them, and such operators.
MOST_IN_A_ROW = 8
#: How much an operator counts by where it is named: in what differs; in an edited statement, or in the file's name as
#: well; in the function; in the file. Any other word of the edit counts least.
DIFFERS, STATEMENT, FUNCTION, FILE, WORD = 8, 4, 3, 2, 1


def search(
    sides: Sides,
    known: ReachMap,
    edits: Edits,
    head: Path,
    chosen: Sequence[int],
    zoos: Sequence[str],
    ran: Mapping[Cell, Mapping[str, Collection[int]]],
) -> Search | None:
    """Return what to search; None where there is nothing to try.

    Parameters
    ----------
    chosen
        Numbers of the cells in the map that were compared.
    zoos
        Further ones, whose models are tried as they are.
    ran
        Lines of the head's files that each of these cells ran.
    """
    from executorch_goldens.exporting.changing import CHANGES, IN_A_ROW

    cases = {name: case for source in known.sources for name, case in load([source]).items()}
    cells = [known.cells[number] for number in chosen or around(edits, known)]
    known_here = [cell for cell in cells if cell.case in cases and not cases[cell.case].is_build]
    slowest = max(DEAR, min((cell.seconds for cell in known_here), default=0.0))
    able = [cell.cell for cell in known_here if cell.seconds <= slowest]
    if not able:
        return None
    near = [(cases[cell.case], cell.target) for cell in able]
    of_cell = [statements_run(edits, ran.get(cell, {}), head) for cell in able]
    runs = Counter[Hashable](itertools.chain.from_iterable(of_cell))
    fewest = min(rarity(each, runs) for each in of_cell)
    # Every second one ran an edited statement that the fewest ran.
    rare = [each for each, some in zip(near, of_cell, strict=True) if rarity(some, runs) == fewest]
    changed = [one for each in zip(near, itertools.cycle(rare), strict=False) for one in each]
    targets = tuple(dict.fromkeys(target for _, target in near))
    further = {name: case for zoo in zoos for name, case in load([zoo]).items()}
    chance = random.Random(SEED)
    named = operators(edits, head)
    samples = list(ranked(further.values(), named, targets, chance))
    elsewhere = [Try(case, UNCHANGED, target) for case, target in retargeted(near, known, chance)]
    walk = SearchOrder(
        changed if len(rare) < len(near) else near,
        turns([samples[::2], list(in_a_row(samples, named)), samples[1::2], elsewhere]),
        [each for each in CHANGES if each not in (*UNCHANGED, *IN_A_ROW)],
        list(dict.fromkeys(asked(edits))),
        runs=runs,
    )
    modules = {case.name: case.module for case in (*cases.values(), *further.values())}
    names = (*known.sources, *zoos)
    base, head_side = (
        replace(side, settings=replace(side.settings, models=names, modules=modules))
        for side in (sides.base, sides.head)
    )

    def reached(ran: Mapping[str, Sequence[int]]) -> Reached:
        lines = frozenset((file, line) for file in edits.files for line in ran.get(file, ()))
        return Reached(statements_run(edits, ran, head), lines)

    return Search(replace(sides, base=base, head=head_side), walk, reached)


def asked(edits: Edits) -> Iterator[str]:
    """Yield the changes that words ask for: those of the edited statements, then those of the names around them."""
    texts = " ".join(each.text for edit in edits.every for each in (*edit.base, *edit.head))
    names = " ".join(f"{Path(edit.file).stem} {edit.function}" for edit in edits.every)
    for text in (texts, names):
        words = {stem(word) for word in _words(_CAPITAL.sub(" ", text)).split()}
        for of_change, changes in ASKED.items():
            if not words.isdisjoint(map(stem, of_change)):
                yield from changes


def operators(edits: Edits, head: Path) -> dict[str, int]:
    """Return the operators that an edit may be about, in words, with how much each counts."""
    found: dict[str, int] = {}
    for edit in edits.every:
        file = head / edit.file
        function = module_of(file).functions.get(edit.function)
        texts = {
            FILE: text_of(file),
            FUNCTION: " ".join(each.text for each in function.statements) if function is not None else "",
            STATEMENT: " ".join(each.text for each in (*edit.base, *edit.head)),
            DIFFERS: differing(edit),
        }
        stem = f" {file.stem.replace('_', ' ')} "
        for weight, text in texts.items():
            for name in _OPERATOR.findall(text):
                word = name.lower().strip("_").removesuffix("_copy").replace("_", " ")
                counts = max(weight, STATEMENT) if f" {word} " in stem else weight
                found[word] = max(counts, found.get(word, 0))
        for word in words_of(edit):
            if len(word) > SHORT:
                found.setdefault(word.removesuffix("s"), WORD)
    return found


def ranked(
    cases: Collection[Case], named: Mapping[str, int], targets: Sequence[str], chance: random.Random
) -> Iterator[Try]:
    """Yield cases that have one of some operators, those that count most first; families take turns.

    An operator counts twice for the cases that are named by it.

    Parameters
    ----------
    targets
        Targets that reach the edit: a case that is for none of them is tried on one of them.
    """
    scores: dict[int, dict[str, list[Case]]] = {}
    for case in chance.sample(list(cases), len(cases)):
        own, about = _words(f"{case.name} {case.family}"), _words(f"{case.guards} {_source(case)}")
        score = max(
            (weight * (2 * (f" {word} " in own) or f" {word} " in about) for word, weight in named.items()),
            default=0,
        )
        if score and not case.is_build:
            scores.setdefault(score, {}).setdefault(case.family, []).append(case)
    number = 0
    for score in sorted(scores, reverse=True):
        for case in turns(list(scores[score].values())):
            fit = [target for target in (*case.also, *case.backends) if target in targets]
            yield Try(case, UNCHANGED, fit[0] if fit else targets[number % len(targets)])
            number += not fit


def in_a_row(samples: Sequence[Try], named: Mapping[str, int]) -> Iterator[Try]:
    """Yield samples with another operator of an edit before them or after them, the likely ones first."""
    from executorch_goldens.exporting.changing import AFTER, BEFORE, IN_A_ROW

    heaviest = (word.replace(" ", "-") for word in sorted(named, key=lambda word: -named[word]))
    names = [name for name in heaviest if f"{AFTER}{name}" in IN_A_ROW]
    pairs = itertools.product(enumerate(samples[:MOST_IN_A_ROW]), enumerate(names[:MOST_IN_A_ROW]))
    for (_, sample), (_, name) in sorted(pairs, key=lambda pair: pair[0][0] + pair[1][0]):
        if _words(name) not in _words(f"{sample.case.name} {sample.case.family}"):
            yield from (replace(sample, changes=(f"{place}{name}",)) for place in (AFTER, BEFORE))


def _words(text: str) -> str:
    return f" {_NO_WORD.sub(' ', text.lower())} "


def _source(case: Case) -> str:
    """Return the texts that a builder is given, as the source of a drawn model; empty for a function by itself."""
    return " ".join(each for each in getattr(case.build, "args", ()) if isinstance(each, str))


def retargeted(
    near: Sequence[tuple[Case, str]], known: ReachMap, chance: random.Random
) -> Iterator[tuple[Case, str]]:
    """Yield cases on targets of the same backend for which the map does not have them."""
    there = {(cell.case, cell.target) for cell in known.cells}
    targets = sorted({cell.target for cell in known.cells})
    for case, target in near:
        backend = target.partition("-")[0]
        free = [each for each in targets if each.startswith(backend) and (case.name, each) not in there]
        if free:
            yield case, chance.choice(free)
