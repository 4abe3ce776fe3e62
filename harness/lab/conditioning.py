"""What cases of the lab leave unjudged."""

from __future__ import annotations

import math
from collections.abc import Mapping

from executorch_goldens.zoo.targets import TARGETS

#: The `sqnr` of a case whose outputs may be anything once it is quantized.
ANY_SQNR: Mapping[str, float] = {name: -math.inf for name, target in TARGETS.items() if target.is_quantized}
