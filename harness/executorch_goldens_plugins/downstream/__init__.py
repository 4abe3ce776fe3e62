"""Compiles TOSA payloads, as a separate stage: Vela for an Arm Ethos-U, the model converter for VGF.

An export for a TOSA target ends with payloads, and a golden holds them. ExecuTorch's Ethos-U and VGF backends hand the
same bytes to Vela and to the model converter, within the same call (``backends/arm/ethosu/backend.py`` and
``backends/arm/vgf/backend.py`` of any release). Here these run after the export instead, in environments of their own,
under every variation. So a difference has a known origin: if the payload differs from the one that the golden was
made of, the change came before the compiler; otherwise it is the compiler's.

Nothing of it is imported by an exporting process.
"""
