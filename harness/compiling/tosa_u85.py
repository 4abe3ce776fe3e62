"""The target whose payloads an Ethos-U85 takes: registered like that of a distribution, by an entry point.

It is not in `harness.targets.TARGETS`, which every exporting process imports: a line there would make every stored
artifact be exported again.
"""

from __future__ import annotations

from harness.targets import REFERENCE_MODEL, TOSA, Quantization, Target

TARGET = Target(
    name="tosa-u85",
    description="TOSA-1.0+INT+int16+int4+cf, as tosa-int, what EthosUCompileSpec lowers for an Ethos-U85",
    backend=TOSA,
    specification="TOSA-1.0+INT+int16+int4+cf",
    quantization=Quantization(),
    runs=REFERENCE_MODEL,
    further=True,
)
