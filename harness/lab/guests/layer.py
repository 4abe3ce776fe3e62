"""The environment of a release with further packages for guest models: torchvision, timm, transformers, …

A layer is a lock over the release's, ``guests-<release>``, made from the group of that name in pyproject.toml. torch
and all else that the release has stay what they are.
"""

from __future__ import annotations

from pathlib import Path

from executorch_goldens.toolchains import environments, locking, toolchain
from executorch_goldens.toolchains.environments import Layer
from executorch_goldens.toolchains.naming import Name


def lock_of(version: str) -> str:
    """Return the name of the lock, and of the group in pyproject.toml, of a release's layer.

    >>> lock_of("1.5.1")
    'guests-1.5.1'
    """
    return f"guests-{version}"


def python_of(version: str) -> Path | None:
    """Return the Python of a release with its layer, made where there is none; None where the release has no layer.

    Raises
    ------
    ToolchainError
        Where the environment cannot be made.
    """
    name = lock_of(version)
    if not (locking.FOLDER / f"{name}.txt").is_file():
        return None
    return environments.python_of(toolchain.of_person().made(Name.parse(version), Layer(locks=(name,))))
