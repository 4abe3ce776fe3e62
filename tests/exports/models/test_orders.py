"""The cases of models/orders.py reach the code whose order they guard, with two or more elements in the container."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import pytest

from executorch_goldens.exporting.program import Request
from executorch_goldens.exporting.recipe import stages
from executorch_goldens.exporting.targets import Lowering
from executorch_goldens.zoo.registry import load

ZOO = load(("models",))

Locals = dict[str, Any]


@dataclass(frozen=True)
class Container:
    """A container whose order is not the model's, its place, and the case that fills it.

    Attributes
    ----------
    module, function
        Where it is iterated; lines differ from release to release.
    size
        From the function's local variables, as they are when it returns, to how many elements were iterated.
    in_releases
        Those whose path to the function is the case's; empty for all that have the function.
    """

    case: str
    target: str
    module: str
    function: str
    size: Callable[[Locals], int]
    in_releases: tuple[str, ...] = ()


CONTAINERS = (
    Container(
        "split-partition",
        "tosa-int",
        "executorch.backends.arm.tosa.partitioner",
        "_find_connected_components",
        lambda found: len(found.get("components", ())),
    ),
    Container(
        "split-partition-parts",
        "tosa-int",
        "executorch.backends.arm.tosa.partitioner",
        "_find_connected_components",
        lambda found: len(found.get("components", ())),
        in_releases=("1.4.1",),
    ),
    Container(
        "index-arithmetic",
        "tosa-int",
        "executorch.backends.arm._passes.convert_int64_output_ops_to_int32",
        "ConvertInt64OutputOpsToInt32Pass._cast_safe_scalar_constants_to_int32",
        lambda found: len(found["constant_casts"]),
    ),
    Container(
        "permuted-chain",
        "tosa-fp",
        "executorch.backends.transforms.remove_permutes_around_elementwise_ops",
        "RemovePermutesAroundElementwiseOps.permute_subgraph",
        lambda found: min(len(found["subgraph"].edges_in), len(found["subgraph"].constant_edges_in)),
    ),
    Container(
        "shifted-product",
        "xnnpack-int8",
        "executorch.backends.xnnpack.partition.config.gemm_configs",
        "AddmmConfig.get_deps_from_src_partition",
        lambda found: len(found.get("ret_deps", ())),
    ),
    Container(
        "constants-in-two-partitions",
        "tosa-fp",
        "executorch.exir.backend.utils",
        "_maybe_duplicate_constant_nodes",
        lambda found: len(found["candidate_nodes"]),
    ),
)


@dataclass
class Watch:
    """A trace function that measures one function's container whenever it returns, and traces nothing else."""

    code: CodeType
    size: Callable[[Locals], int]
    sizes: list[int] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        return self.inside if frame.f_code is self.code else None

    def inside(self, frame: FrameType, event: str, argument: object) -> Any:
        # What returns False has turned back before it iterated.
        if event == "return" and argument is not False:
            self.sizes.append(self.size(frame.f_locals))
        return self.inside


def code_of(container: Container) -> CodeType:
    """Return the function's code, under whatever has been wrapped around it; skip where the release has none."""
    try:
        found: Any = importlib.import_module(container.module)
        for name in container.function.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        pytest.skip(f"this release has no {container.module}.{container.function}")
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    code: CodeType = found.__code__
    return code


@pytest.mark.parametrize(
    "container",
    [
        # Its quantizer exports patterns for half a minute; the parts have the container of the whole.
        pytest.param(
            each,
            id=each.case,
            marks=[pytest.mark.slow] if each.target == "xnnpack-int8" or each.case.endswith("-parts") else [],
        )
        for each in CONTAINERS
    ],
)
def test_a_case_fills_the_container_whose_order_it_guards(
    container: Container, release: str, own_flatc: None
) -> None:
    if container.in_releases and release not in container.in_releases:
        pytest.skip(f"in {release} {container.case} takes another path")
    watch = Watch(code_of(container), container.size)
    case = ZOO[container.case]
    outer = sys.gettrace()
    sys.settrace(watch)
    try:
        # Some releases lower the case and some fail after the container.
        with contextlib.suppress(Exception):
            next(each for each in stages(Request(case, Lowering.named(container.target))) if each.edge)
    finally:
        sys.settrace(outer)
    assert max(watch.sizes, default=0) >= 2, watch.sizes
