"""The kernels that ExecuTorch's runtime has in this process: one list of libraries, the same wherever a program is run.

The runtime brings the portable kernels; the quantized ones and the custom operators of language models are libraries of
their own in the wheel, which register theirs when they are loaded. This file imports Python's library and then the
release: what runs frozen programs runs it by itself.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

#: Libraries of kernels that ExecuTorch's wheels bring beside the runtime's own: a folder of the package, and what the
#: file in it is called. They load after the runtime: before 1.4.1 only then.
LIBRARIES = (
    ("kernels/quantized", "*quantized_ops_aot_lib.*"),
    ("extension/llm/custom_ops", "*custom_ops_aot_lib.*"),
)


@functools.cache
def load() -> tuple[str, ...]:
    """Load the runtime and those of `LIBRARIES` that the release has; return the operators with a kernel, sorted.

    None where ExecuTorch was built without its runtime: TOSA needs none.
    """
    try:
        import executorch.extension.pybindings.portable_lib as runtime
    except ImportError:
        return ()
    import torch

    package = Path(runtime.__file__).resolve().parents[2]
    for folder, name in LIBRARIES:
        # Libraries loaded already, by a case or by a quantizer, are loaded once.
        for library in sorted((package / folder).rglob(name)):
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    return tuple(sorted(runtime._get_operator_names()))


def summary() -> str:
    """Return how many operators have a kernel, and the digest of their names."""
    names = load()
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
    return f"{len(names)} operators sha256 {digest}"


def backends() -> tuple[str, ...]:
    """Return the ids of the backends that the runtime of this process has; none where there is no runtime."""
    try:
        import executorch.extension.pybindings.portable_lib as runtime
    except ImportError:
        return ()
    return tuple(runtime._get_registered_backend_names())
