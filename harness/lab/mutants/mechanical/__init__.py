"""Mutants that are made mechanically, by operators of mutation over a release's own sources, and drawn by a seed.

`sites` finds every edit that an operator can make, `drawing` draws some of them, `reach` has the cells that run a
mutant's lines, `search` tries each drawn mutant on some of these, `page` counts what came of it.
"""

from __future__ import annotations

#: Files and folders of the package ``executorch`` whose functions are mutated, by the name that the page has for them.
#: A file belongs to the first that names it.
PLACES = {
    "partitioners": (
        "backends/arm/operator_support",
        "backends/arm/tosa/partitioner.py",
        "backends/xnnpack/partition",
    ),
    "passes": ("backends/arm/_passes", "backends/xnnpack/_passes", "backends/transforms"),
    "quantizers": ("backends/arm/quantizer", "backends/xnnpack/quantizer"),
    "visitors": (
        *("backends/arm/operators", "backends/arm/process_node.py", "backends/arm/tosa"),
        *("backends/xnnpack/operators", "backends/xnnpack/serialization", "backends/xnnpack/utils"),
        "backends/xnnpack/xnnpack_preprocess.py",
    ),
    "exir": (
        *("exir/backend", "exir/delegate.py", "exir/emit", "exir/lowered_backend_module.py"),
        *("exir/memory_planning.py", "exir/pass_base.py", "exir/passes", "exir/program"),
    ),
}

#: Descriptions of operators of mutation, by their name on the page.
OPERATORS = {
    "comparison": "a different one of `<`, `<=`, `==`, `!=`, `>`, `>=`; `is`, `in` and their opposites",
    "bound": "an integer constant, or an end of a slice, is one more or one less",
    "axis": "the constant that names a dimension is one more, or has the opposite sign",
    "default": "a different default of a parameter",
    "dtype": "a different data type",
    "order": "the ends of a list swapped, two arguments swapped, a loop reversed, or `reversed` dropped",
    "branch": "a condition is always true, never true, or negated; a statement is deleted",
    "boolean": "`and` for `or`, a `not` dropped, `True` for `False`",
    "arithmetic": "a different one of `+`, `-`, `*`, `//`, `/`, `%`",
}

#: Environment variable: the file of the drawn mutants, for processes that export.
DRAWN = "GOLDENS_DRAWN_MUTANTS"
