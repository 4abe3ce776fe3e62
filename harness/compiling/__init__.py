"""What compiles TOSA payloads further, as a stage of its own: Vela, for an Arm Ethos-U.

An export for a TOSA target ends with payloads, and a golden holds them. ExecuTorch's Ethos-U backend hands the same
bytes to Vela, within the same call (``backends/arm/ethosu/backend.py`` of any release). Here Vela runs after the
export instead, in an environment of its own, under every variation. So a result that differs is told apart: if the
payload differs from the one that the golden was made of, the change came before Vela; otherwise it is Vela's.

Nothing of it is imported by an exporting process.
"""
