"""The only place that knows how the releases' APIs differ. Each function names the releases it is for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch
from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
from executorch.backends.arm.operators import node_visitor as arm_visitors
from executorch.backends.arm.quantizer import TOSAQuantizer
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.tosa.specification import TosaSpecification
from executorch.backends.xnnpack._passes import XNNPACKPassManager
from executorch.backends.xnnpack.operators import node_visitor as xnnpack_visitors
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.fx.passes.infra.pass_base import PassBase


def installed_release() -> str:
    """Return the executorch version of this interpreter, without its local label."""
    return metadata.version("executorch").partition("+")[0]


def tosa_quantizer(spec: TosaCompileSpec) -> Any:
    """Return a TOSAQuantizer in the mode that the release makes its default, said explicitly.

    ``use_composable_quantizer`` is absent in 1.1.0 and 1.2.0, False by default in 1.3.1 and True by default from
    1.4.1, where False is deprecated.
    """
    parameters = inspect.signature(TOSAQuantizer.__init__).parameters
    if "use_composable_quantizer" not in parameters:
        return TOSAQuantizer(spec)
    return TOSAQuantizer(spec, use_composable_quantizer=parameters["use_composable_quantizer"].default)


def graph_module(program: torch.export.ExportedProgram) -> torch.fx.GraphModule:
    """Return the program as a module that quantizers can annotate.

    All five releases come with a torch whose ``module()`` adds a ``_guards_fn`` submodule by default; Arm's
    annotation passes raise on its ``call_module`` node.
    """
    return program.module(check_guards=False)


def named_data(delegate: LoweredBackendModule) -> tuple[tuple[str, bytes], ...]:
    """Return (key, bytes) of what the backend put aside as named data, sorted by key.

    ``pte_data`` maps a key to a ``DataEntry`` in all five releases; ``buffers`` holds bytes in some and
    ``BufferEntry`` in others.
    """
    store = delegate.named_data_store_output
    if store is None:
        return ()
    entries = dict(store.pte_data)
    for external in store.external_data.values():
        entries.update(external)
    found = []
    for key in sorted(entries):
        entry = entries[key]
        buffer = store.buffers[getattr(entry, "buffer_index", entry)]
        found.append((key, bytes(getattr(buffer, "buffer", buffer))))
    return tuple(found)


@dataclass(frozen=True)
class Pipeline:
    """A method that runs passes one after the other.

    Attributes
    ----------
    owner, method
        The class and the name of its method.
    name
        As traces name the pipeline.
    """

    owner: type[Any]
    method: str
    name: str


def pipelines() -> list[Pipeline]:
    """Return the release's pipelines of passes.

    ``transform_for_pre_decomposition_pipeline`` is absent before 1.5.1; all five releases have the others.
    """
    known = (
        Pipeline(ArmPassManager, "transform_for_annotation_pipeline", "arm annotation"),
        Pipeline(ArmPassManager, "transform_for_pre_decomposition_pipeline", "arm pre-decomposition"),
        Pipeline(ArmPassManager, "transform_to_backend_pipeline", "arm backend"),
        Pipeline(XNNPACKPassManager, "transform", "xnnpack"),
    )
    return [pipeline for pipeline in known if hasattr(pipeline.owner, pipeline.method)]


#: Both have a ``partition`` of their own, which returns a ``PartitionResult``, in all five releases.
PARTITIONERS: tuple[type[Any], ...] = (TOSAPartitioner, XnnpackPartitioner)


def pass_classes() -> list[type[Any]]:
    """Return every loaded class of passes that defines ``__call__`` itself: wrapping these sees every pass.

    Those are torch's ``PassBase`` and ExecuTorch's ``SpecPropPass`` in all five releases, ``ToDevicePass`` from 1.3.1
    and Arm's ``ArmPass``, the base of its passes, from 1.4.1.
    """
    loaded: dict[type[Any], None] = dict.fromkeys([PassBase, *_descendants(PassBase)])
    return [cls for cls in loaded if "__call__" in vars(cls)]


def _descendants(cls: type[Any]) -> Iterator[type[Any]]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)


#: Specifications whose visitors together are those of TOSA 1.0.
TOSA_1_0 = ("TOSA-1.0+INT+int16", "TOSA-1.0+FP+bf16")


def visitor_classes() -> dict[str, dict[str, type[Any]]]:
    """Return each backend's node visitors by target: ``tosa`` (those of TOSA 1.0) and ``xnnpack``.

    All five releases register them in these two private tables.
    """
    tosa = {
        target: visitor
        for name in TOSA_1_0
        for target, visitor in arm_visitors._node_visitor_tuples.get(
            TosaSpecification.create_from_string(name)
        )
    }
    return {"tosa": tosa, "xnnpack": dict(xnnpack_visitors._node_visitor_dict)}
