"""Finds parameters of a build's modules that differ from its golden."""

from __future__ import annotations

from executorch_goldens.errors import some
from executorch_goldens.goldens import golden
from executorch_goldens.goldens.labels import OF_RUN, Labels

#: Blamed in place of a pass where the model itself differs.
MODEL = "model"
#: The method that a line of `golden.MODEL` names where a program has one.
FORWARD = "forward"


def changed(before: golden.Texts, after: golden.Texts) -> list[str]:
    r"""Return the paths of parameters and buffers that differ, are new or gone; none where a golden has no list.

    >>> line = "forward layers.2.weight float32[32, 32] sha256 {}\n".format
    >>> changed({"model": line("d7a5")}, {"model": line("8aeb")})
    ['layers.2.weight']
    """
    if golden.MODEL not in before or golden.MODEL not in after:
        return []
    old, new = (texts[golden.MODEL].splitlines() for texts in (before, after))
    differing = [line for line in (*new, *old) if (line in old) != (line in new)]
    words = (line.split(" ") for line in differing)
    names = (path if method == FORWARD else f"{path} of {method}" for method, path, *_ in words)
    return list(dict.fromkeys(names))


def named(names: list[str], labels: Labels = OF_RUN) -> str:
    """Return the message for `changed`."""
    return f"weights that are not the {labels.old}'s: {some(names)}"
