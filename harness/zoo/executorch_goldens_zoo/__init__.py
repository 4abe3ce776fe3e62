"""The zoo of executorch-goldens: the folder ``repository`` has its cases and maps of reach, and no goldens."""
