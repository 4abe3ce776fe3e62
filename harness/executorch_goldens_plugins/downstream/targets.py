"""The table of devices to compile for: the TOSA target that makes the payloads, and the compiler's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The distributions that compile, for an Ethos-U and to VGF; and the one that reads VGF.
VELA = "ethos-u-vela"
CONVERTER = "ai-ml-sdk-model-converter"
LIBRARY = "ai-ml-sdk-vgf-library"

#: Releases whose compile specs force Vela's second core, which later ones of Vela use anyway.
FORCES_REGOR = ("1.1.0",)


@dataclass(frozen=True)
class CompiledTarget:
    """A device that payloads are compiled for.

    Attributes
    ----------
    name
        Name, for an Ethos-U as upstream's compile specs have it: ``ethos-u55-128``.
    compiler
        Distribution that compiles for it.
    takes
        Name of the TOSA target whose payloads it takes.
    system_config, memory_mode
        Default of ``EthosUCompileSpec`` in every release; empty for VGF.
    """

    name: str
    compiler: str
    takes: str
    system_config: str = ""
    memory_mode: str = ""

    def arguments(self, release: str) -> tuple[str, ...]:
        """Return the arguments that ``EthosUCompileSpec(name)`` of a release passes to Vela; none for VGF.

        Source: ``backends/arm/ethosu/compile_spec.py`` and ``backends/arm/vgf/compile_spec.py``, 1.1.0 to 1.5.1.
        """
        if self.compiler != VELA:
            return ()
        return (
            f"--accelerator-config={self.name}",
            "--config=Arm/vela.ini",
            "--output-format=raw",
            *(["--debug-force-regor"] if release in FORCES_REGOR else []),
            f"--system-config={self.system_config}",
            f"--memory-mode={self.memory_mode}",
        )


TARGETS: Mapping[str, CompiledTarget] = {
    target.name: target
    for target in (
        CompiledTarget("ethos-u55-128", VELA, "tosa-u55", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
        CompiledTarget("ethos-u85-256", VELA, "tosa-u85", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
        CompiledTarget("vgf-fp", CONVERTER, "tosa-fp"),
        CompiledTarget("vgf-int", CONVERTER, "tosa-int"),
    )
}
