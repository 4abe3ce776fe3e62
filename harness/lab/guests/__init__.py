"""Guest zoos: models of ExecuTorch's own tests, registered as zoos of their own.

``nox -s lab -- guest NAME`` runs one. Its listing (`lab.guests.listing`) says which cases there are on which release;
the case is built where it is exported, by running upstream's test up to where it hands its model over
(`lab.guests.capture`). Nothing of upstream's tests is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from executorch_goldens.zoo.registry import SAMPLES

#: Weights and inputs are drawn as upstream's tests draw them: histograms, as upstream ships them, on a grid.
QUANTIZATION = "as-upstream-tests"


@dataclass(frozen=True)
class GuestZoo:
    """One folder of upstream's tests as a zoo.

    Attributes
    ----------
    name
        As the command takes it.
    tests
        The folder with the tests, in the package ``executorch``.
    floats, quantized
        The targets that a model is exported for which upstream's tests lower as it is, or quantize.
    core
        The rule of the core: every ``case``, one of each ``test``, or, where these are alike, one of each ``file``.
    export_timeout
        Seconds that one export may take where nothing is said of it; None for as long as any.
    run_on
        The samples that its programs run on: see `executorch_goldens.zoo.registry.Case`.
    layered
        Whether its models need what only the layer of a release has: see `lab.guests.layer`.
    """

    name: str
    tests: str
    floats: tuple[str, ...]
    quantized: tuple[str, ...]
    core: Literal["case", "test", "file"] = "test"
    export_timeout: float | None = None
    run_on: tuple[str, ...] = SAMPLES
    layered: bool = False

    @property
    def module(self) -> str:
        """The module that registers its cases."""
        return f"{__name__}.{self.name.replace('-', '_')}"


_TOSA = (("tosa-fp",), ("tosa-int",))
_XNNPACK = (("xnnpack-fp32",), ("xnnpack-int8",))
_BOTH = (("tosa-fp", "xnnpack-fp32"), ("tosa-int", "xnnpack-int8"))

#: The guest zoos, by name.
ZOOS: Mapping[str, GuestZoo] = {
    zoo.name: zoo
    for zoo in (
        GuestZoo("arm-ops", "backends/arm/test/ops", *_TOSA),
        GuestZoo("arm-models", "backends/arm/test/models", *_TOSA, core="case", layered=True),
        GuestZoo("xnnpack-ops", "backends/xnnpack/test/ops", *_XNNPACK),
        # torch multiplies matrices of float16 a hundred times slower than those of float32: with all samples, Llama
        # takes twenty minutes of a core.
        GuestZoo(
            "xnnpack-models",
            "backends/xnnpack/test/models",
            *_XNNPACK,
            core="case",
            export_timeout=900.0,
            run_on=("example",),
            layered=True,
        ),
        GuestZoo("suite-ops", "backends/test/suite/operators", *_BOTH, core="file"),
        GuestZoo(
            "suite-models",
            "backends/test/suite/models",
            *_BOTH,
            core="case",
            run_on=("example",),
            layered=True,
        ),
    )
}
