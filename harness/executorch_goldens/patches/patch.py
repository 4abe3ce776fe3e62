"""The description of a patch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from executorch_goldens.zoo.targets import BACKEND_IDS, backends_of

#: Per release, the functions that are replaced or relied on, as ``module:qualified.name``, and the digest of each.
Fits = Mapping[str, Mapping[str, str]]


def replaces(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace a function of a class or a module by the decorated one, whose first argument is the function before."""
    upstream = getattr(owner, name)
    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)

    def replace(function: Callable[..., Any]) -> None:
        @functools.wraps(upstream)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return function(upstream, *args, **kwargs)

        setattr(owner, name, staticmethod(replacement) if is_static else replacement)

    return replace


@dataclass(frozen=True)
class Patch:
    """The correction of an upstream issue or a finding, or another edit of installed code, of a zoo or a plugin.

    Attributes
    ----------
    name
        Its name in ``--patches`` and ``releases.toml``.
    issue
        Number of the upstream issue; None for an edit that corrects none, such as that of a finding.
    summary
        One line: what is different once it is installed.
    fits
        Per release, the functions that the patch replaces or whose behaviour it relies on, as
        ``module:qualified.name``, and first digits of the `executorch_goldens.patches.guard.digest` of the source that
        it was written for.
    install
        Makes the replacement in this process for the release named; imports ExecuTorch.
    unguarded
        Why no function needs a digest; None where `known` names functions.
    verdicts
        Verdicts that a cell may have without the patch, each with what a finding of it has then
        (`executorch_goldens.goldens.findings.matches`): empty for any.
    delegates
        The fewest that a program has which is different without it.
    kind, without
        What messages call it, and the way to do without one.
    """

    kind: ClassVar[str] = "patch"
    without: ClassVar[str] = "leave it out of --patches"

    name: str
    issue: int | None
    summary: str
    fits: Fits
    install: Callable[[str], None]
    unguarded: str | None = None
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    delegates: int = 0

    def matters(self, release: str, backend_ids: Sequence[str]) -> bool:
        """Return whether a program with delegates of these backends may be different without the patch."""
        edited = backends_of(self.fits.get(release, ()))
        concerned = [each for each in backend_ids if not edited or BACKEND_IDS.get(each) in edited]
        return len(concerned) >= self.delegates
