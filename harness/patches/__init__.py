"""Corrections of the upstream reports, one module per report, for the process that imports ExecuTorch and
exports.

A patch replaces as little as will do: methods on their class, functions in every module that holds them, so
that it works in a process that has imported ExecuTorch already. There is no way back; a process is patched
once and exits.

Importing this package imports neither torch nor executorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.patches import list_qparams, output_aliases, partition_order, unique_outputs
from harness.patches.patch import Patch, PatchError, UnknownPatchError, digest, verify

__all__ = ["PATCHES", "Patch", "PatchError", "UnknownPatchError", "apply", "digest", "register", "select"]

#: Every patch by name, in the order in which they are applied and named; registered ones come last.
PATCHES: dict[str, Patch] = {
    patch.name: patch
    for patch in (partition_order.PATCH, unique_outputs.PATCH, list_qparams.PATCH, output_aliases.PATCH)
}


def register(patch: Patch) -> None:
    """Let `patch` be asked for by name in this process; raise ValueError for a taken name.

    A module that exporting processes import, because ``--models`` names it, may bring edits of its own.
    """
    if patch.name in PATCHES:
        raise ValueError(f"patch {patch.name!r} is registered twice")
    PATCHES[patch.name] = patch


def select(spec: str, declared: Sequence[str]) -> tuple[str, ...]:
    """Return the names that ``--patches`` asks for, each once, in the order of `PATCHES`.

    Parameters
    ----------
    spec
        ``auto`` (what the release declares), ``none``, or names with commas between them.
    declared
        The names that ``releases.toml`` declares for the release.

    Raises
    ------
    UnknownPatchError
        For a name that is no patch's, in `spec` or in `declared`.

    Examples
    --------
    >>> select("auto", ["partition-order"])
    ('partition-order',)
    >>> select("none", ["partition-order"])
    ()
    >>> select("unique-outputs, partition-order", [])
    ('partition-order', 'unique-outputs')
    """
    if spec == "none":
        return ()
    return _ordered(declared if spec == "auto" else [name.strip() for name in spec.split(",")])


def apply(names: Iterable[str], release: str) -> None:
    """Verify, then install, the patches named, in this process.

    Every selected patch is verified before the first is installed: either all are, or none.

    Parameters
    ----------
    names
        Names out of `PATCHES`, in any order.
    release
        The ExecuTorch release that is installed.

    Raises
    ------
    UnknownPatchError
        For a name that is no patch's.
    PatchError
        When a function is not the one that a patch was written for.
    """
    patches = [PATCHES[name] for name in _ordered(names)]
    for patch in patches:
        verify(patch, release)
    for patch in patches:
        patch.install(release)


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    wanted = set()
    for name in names:
        if name not in PATCHES:
            raise UnknownPatchError(name, tuple(PATCHES))
        wanted.add(name)
    return tuple(name for name in PATCHES if name in wanted)
