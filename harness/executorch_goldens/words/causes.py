"""Where an artifact went wrong, in words: the pass, and the factor that it follows."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_goldens.artifact import PassRun
from executorch_goldens.files.wording import some
from executorch_goldens.goldens.labels import OF_RUN, Labels
from executorch_goldens.judging.attribution import Attribution, Follows
from executorch_goldens.judging.divergence import Divergence, How

#: What is said of a `Divergence`: ``at`` is its pass, ``old`` what it is compared with.
_DIVERGES, _DIFFERS = "first pass that diverges: ", "first pass whose result differs from the {old}'s: {at}"
_HOW = {
    How.RESULTS: _DIVERGES + "{at}, number {number} of {total}{tags}",
    How.NAMES: _DIVERGES + "{at}, number {number} of {total}, in names only",
    How.NODES: _DIVERGES + "{at}, number {number} of {total}, with the same tags on different nodes",
    How.PASSES: _DIVERGES + "number {number} is {at}",
    How.DIFFERS: _DIFFERS + "{tags}",
    How.ADDED: _DIFFERS + ", which changed nothing in the {old}",
    How.IDLE: _DIFFERS + ", which no longer changes the graph",
    How.GONE: _DIFFERS + ", which no longer runs",
    How.FAILS: "all passes give the {old}'s results, until the export fails in {name}",
    How.WRITER: "pass that changed the model that it was given: {name}",
    How.WEIGHTS: "weights that are not the {old}'s: {weights}",
}


def divergence(found: Divergence, labels: Labels = OF_RUN) -> str:
    """Return which pass made the difference."""
    line = _HOW[found.how].format(
        at=" | ".join(map(_place, found.runs)),
        old=labels.old,
        name=found.name,
        number=found.number,
        total=found.total,
        tags=f": {' | '.join(found.tags)}" if found.tags is not None else "",
        weights=some(found.weights),
    )
    return f"{line}: {next(found.change.lines())}" if found.change is not None else line


def _place(run: PassRun | None) -> str:
    return "nothing" if run is None else f"{run.name} ({run.pipeline})"


#: What is said of an `Attribution`, but of factors.
_FOLLOWS = {
    Follows.SEVERAL: "follows three or more together of {known}; none of them alone, and no two of them",
    Follows.GONE: (
        "did not come back in {exports} exports, with each factor changed alone and with all of them changed"
    ),
    Follows.NOTHING: (
        "follows nothing that is varied: exports under {variation} that begin with the same memory differ as well, as "
        "a time or a random number makes them"
    ),
    Follows.ADDRESS: (
        "follows the heap: exports under {variation} that begin with the same memory agree, and others differ, typical "
        "of ordering by object address"
    ),
    Follows.CONSTANT: "follows nothing that is varied: the same under all {exports} variations",
    Follows.LOST: "the factor it follows is not known: {why}",
    Follows.ELSEWHERE: "the factor it follows is sought on this machine only: run the cell without {why}",
    Follows.UNSOUGHT: "the factor it follows was not sought: {why} s were over; the command below seeks it",
}


def attribution(found: Attribution) -> str:
    """Return which factors make the difference.

    >>> attribution(Attribution(Follows.ALONE, (("heap",), ("history",)), ("hash seed", "heap", "history")))
    'follows the heap and the history, each alone, typical of ordering by object address; not the hash seed'
    """
    if found.follows == Follows.ALONE:
        followed = [name for (name,) in found.factors]
        each = ", each alone" if len(followed) > 1 else ""
        # Other allocations, or another order of them, move addresses as well.
        address = ", typical of ordering by object address" if each and "heap" in followed else ""
        others = [name for name in found.known if name not in followed]
        exception = f"; not the {listed(others, 'or')}" if others else ""
        return f"follows {_the(followed)}{each}{address}{exception}"
    if found.follows == Follows.TOGETHER:
        names = "; or ".join(f"{_the(pair)} together" for pair in found.factors)
        return f"follows {names}; none of them alone"
    return _FOLLOWS[found.follows].format(
        known=_the(found.known) if found.known else "",
        exports=found.exports,
        variation=found.variation,
        why=found.why,
    )


def listed(names: Sequence[str], word: str) -> str:
    """Return names as a sentence has them.

    >>> listed(["heap", "listings", "history"], "or")
    'heap, listings or history'
    """
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last


def _the(names: Sequence[str]) -> str:
    return listed([f"the {name}" for name in names], "and")
