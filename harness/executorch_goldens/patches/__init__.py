"""Corrections of upstream's defects, one module each, for the process that imports ExecuTorch and exports.

Those of the four issues are declared for the releases that need them, in ``releases.toml``, and so is `folded_scales`:
without it, lowering makes the right program of a model and changes the model.

A patch replaces as little as will do: methods on their class, functions in every module that holds them, so
that it works in a process that has imported ExecuTorch already. There is no way back; a process is patched
once and exits.

Importing this package imports neither torch nor executorch. Installed distributions add patches of their own: an entry
point of group ``executorch_goldens.patches`` that gives a `Patch`, from a module that imports neither of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from executorch_goldens import extensions, plugins
from executorch_goldens.errors import UsageError
from executorch_goldens.patches import (
    folded_scales,
    guard,
    list_qparams,
    output_aliases,
    partition_order,
    unique_outputs,
)
from executorch_goldens.patches.patch import Patch
from executorch_goldens.zoo.targets import Target

__all__ = [
    "PATCHES",
    "SHORTCUTS",
    "Patch",
    "UnknownNameError",
    "apply",
    "available",
    "register",
    "select",
    "shorten",
]

#: The harness's own patches by name, in the order in which they are applied and named; then registered ones.
PATCHES: dict[str, Patch] = {
    patch.name: patch
    for patch in (
        *(partition_order.PATCH, unique_outputs.PATCH, list_qparams.PATCH, output_aliases.PATCH),
        folded_scales.PATCH,
    )
}

#: The shortcuts that this process has, in the order in which they were installed.
SHORTCUTS: list[Patch] = []


@dataclass(eq=False)
class UnknownNameError(UsageError):
    """A name that no patch has.

    Attributes
    ----------
    name
        The name that was asked for.
    known
        The names there are.
    """

    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"there is no patch {self.name!r}; known: {', '.join(self.known)} (or 'auto', or 'none' alone)"


def register(patch: Patch) -> None:
    """Let `patch` be asked for by name in this process; raise ValueError for a taken name.

    A module that exporting processes import, because ``--models`` names it, may bring edits of its own.
    """
    if patch.name in PATCHES:
        raise ValueError(f"patch {patch.name!r} is registered twice")
    PATCHES[patch.name] = patch


def available() -> Mapping[str, Patch]:
    """Return every patch by name: `PATCHES`, then those of installed distributions, in the order of their names.

    Raises
    ------
    executorch_goldens.extensions.ExtensionError
        For an entry point that gives no patch.
    """
    return {**PATCHES, **_installed()}


@functools.cache
def _installed() -> Mapping[str, Patch]:
    return extensions.load(extensions.PATCHES, Patch, lambda patch: patch.name, PATCHES)


def select(spec: str, declared: Sequence[str], registered: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names that ``--patches`` asks for, each once, in the order of `known`.

    Parameters
    ----------
    spec
        ``auto`` (what the release declares), ``none``, or names with commas between them.
    declared
        The names that ``releases.toml`` declares for the release.
    registered
        Names that exporting processes know after those of `PATCHES`.

    Raises
    ------
    UnknownNameError
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
    names = declared if spec == "auto" else [name.strip() for name in spec.split(",")]
    return _ordered(names, registered)


def apply(names: Iterable[str], release: str, target: Target | None = None) -> None:
    """Verify, then install, the patches named, in this process.

    Parameters
    ----------
    names
        Names out of `known`, in any order.
    release
        The ExecuTorch release that is installed.
    target
        The targets of the process: patches that edit only the other backend's passes, which never run, are left out.

    Raises
    ------
    UnknownNameError
        For a name that is no patch's.
    executorch_goldens.patches.guard.GuardError
        When a function is not the one that a patch was written for.
    """
    _install(
        [PATCHES[name] if name in PATCHES else available()[name] for name in _ordered(names)], release, target
    )


def shorten(hooks: Iterable[str], release: str, target: Target | None = None) -> None:
    """Verify, then install, shortcuts in this process; each is noted, and left out and raises as in `apply`.

    Parameters
    ----------
    hooks
        ``module:name`` of each: `executorch_goldens.plugins.shortcuts`.
    """
    found = [guard.resolve(hook) for hook in hooks]
    _install(found, release, target)
    SHORTCUTS.extend(found)


def shortcuts() -> dict[str, Patch]:
    """Return the shortcuts of plugins, by name."""
    return {name: guard.resolve(hook) for name, hook in plugins.shortcuts().items()}


def _install(patches: Sequence[Patch], release: str, target: Target | None) -> None:
    """Install patches, each verified before the first is installed: either all are, or none."""
    if target is not None:
        patches = [patch for patch in patches if target.runs_any(patch.fits.get(release, ()))]
    for patch in patches:
        guard.verify(patch, release)
    for patch in patches:
        patch.install(release)


def _ordered(names: Iterable[str], registered: Sequence[str] = ()) -> tuple[str, ...]:
    wanted = set(names)
    known = dict.fromkeys((*PATCHES, *registered))
    # Entry points are read only for a name that is not among the harness's own.
    if not wanted <= known.keys():
        known |= dict.fromkeys(available())
    for name in sorted(wanted - known.keys()):
        raise UnknownNameError(name, tuple(known))
    return tuple(name for name in known if name in wanted)
