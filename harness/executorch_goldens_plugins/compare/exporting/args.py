"""The zoo of every argument: one call of an operator a case, as `zoo.calls` has them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from executorch_goldens.zoo.registry import CASES, Case
from executorch_goldens.zoo.targets import ANY_SQNR, TARGETS
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import CallModel

if TYPE_CHECKING:
    from executorch_goldens.exporting.data import Data, Example


def build(model: CallModel, data: Data) -> Example:
    """Build a model."""
    from executorch_goldens_plugins.compare.exporting.one_call import build

    return build(model, data)


def case(model: CallModel) -> Case:
    """Return a model as a case of this zoo, for its target."""
    return Case(
        name=model.name,
        family=model.operator,
        guards=str(model),
        build=functools.update_wrapper(functools.partial(build, model), build),
        backends=(model.target,),
        also=(model.target,) if TARGETS[model.target].opt_in else (),
        run_on=("example",),
        # Nobody chose the values so that quantization leaves something of them.
        sqnr=ANY_SQNR,
        releases=model.releases,
    )


CASES.add_later(calls.read(), case)
