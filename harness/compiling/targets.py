"""The table of what payloads are compiled for: which TOSA target makes the payload, and what Vela is called with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The distribution that compiles for an Ethos-U.
VELA = "ethos-u-vela"

#: Releases whose compile specs force Vela's second core, which later ones of Vela use anyway.
FORCES_REGOR = ("1.1.0",)


@dataclass(frozen=True)
class CompiledTarget:
    """What payloads are compiled for.

    Attributes
    ----------
    name
        As upstream's compile specs have it: ``ethos-u55-128``.
    takes
        Name of the TOSA target whose payloads it takes.
    system_config, memory_mode
        What ``EthosUCompileSpec`` of every release takes for it when nothing else is said.
    """

    name: str
    takes: str
    system_config: str
    memory_mode: str

    def arguments(self, release: str) -> tuple[str, ...]:
        """Return what ``EthosUCompileSpec(name)`` of a release hands to Vela, in its order.

        Source: ``backends/arm/ethosu/compile_spec.py``, 1.1.0 to 1.5.1.
        """
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
        CompiledTarget("ethos-u55-128", "tosa-u55", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
        CompiledTarget("ethos-u85-256", "tosa-u85", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
    )
}
