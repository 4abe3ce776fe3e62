r"""Reports how two decoded payloads, or goldens, differ: by structure, not by line.

>>> from executorch_goldens.structure import compare
>>> differences = compare(before, after)          # doctest: +SKIP
>>> differences.order_only, differences.same           # doctest: +SKIP
(True, False)
>>> print("\\n".join(differences.lines()))         # doctest: +SKIP
"""

from executorch_goldens.structure.changes import (
    AttributeChanged,
    BoundaryChanged,
    Change,
    ConstantChanged,
    EdgeRewired,
    LayoutChanged,
    OperatorAdded,
    OperatorRemoved,
    OperatorReplaced,
    PartChanged,
    Renamed,
    Reordered,
)
from executorch_goldens.structure.comparison import Differences, compare
from executorch_goldens.structure.outline import Outline, OutlineError, outline
from executorch_goldens.structure.renaming import Renames, renamed_nodes, renamed_values

__all__ = [
    "AttributeChanged",
    "BoundaryChanged",
    "Change",
    "ConstantChanged",
    "Differences",
    "EdgeRewired",
    "LayoutChanged",
    "OperatorAdded",
    "OperatorRemoved",
    "OperatorReplaced",
    "Outline",
    "OutlineError",
    "PartChanged",
    "Renamed",
    "Renames",
    "Reordered",
    "compare",
    "outline",
    "renamed_nodes",
    "renamed_values",
]
