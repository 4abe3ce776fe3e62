"""The only place that knows how the releases' APIs differ. Each function names the releases it is for."""

from __future__ import annotations

import inspect
from importlib import metadata
from typing import Any

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.exir.lowered_backend_module import LoweredBackendModule


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

    All five releases come with a torch whose ``module()`` adds a ``_guards_fn`` submodule unless told not to; Arm's
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
