"""The two sides of a comparison: their toolchains, and settings with which both export alike."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from executorch_goldens import patches
from executorch_goldens.artifact import Cell, Outcome
from executorch_goldens.running.selection import load_cells, require_flatc
from executorch_goldens.settings.exports import Settings
from executorch_goldens.settings.releases import Release
from executorch_goldens.sweep.sweep import Sweep
from executorch_goldens.toolchains.toolchain import Fit, Toolchain
from executorch_goldens_plugins.compare.outcome import Made


@dataclass(frozen=True)
class Side:
    """One of two toolchains that are compared."""

    word: str
    toolchain: Toolchain
    settings: Settings

    @property
    def release(self) -> Release:
        """The installed release."""
        return self.toolchain.release

    @property
    def line(self) -> str:
        """A one-line description."""
        stack = " ".join(f"{name} {version}" for name, version in self.release.stack().items())
        source = f", {self.toolchain.source}" if self.toolchain.source else ""
        return f"{self.word}: {self.toolchain.name} ({stack}{source})"


@dataclass(frozen=True)
class Sides:
    """Both sides, and the settings left out so that they export alike.

    Attributes
    ----------
    cells
        Cells that both have, in the zoo's order.
    alone
        Number of the cells that one side alone has, by its word.
    left_out
        Why a patch or a shortcut is used on neither side, a line each.
    """

    base: Side
    head: Side
    cells: tuple[Cell, ...]
    alone: Mapping[str, int]
    left_out: tuple[str, ...]

    @classmethod
    def between(
        cls, base: Toolchain, head: Toolchain, how: Settings, targets: Sequence[str], asked: str
    ) -> Sides:
        """Return both sides.

        Parameters
        ----------
        how
            Settings of both; their patches and shortcuts are the allowed ones.
        asked
            ``--patches``: ``auto`` is what both releases declare.
        """
        both = {"base": base, "head": head}
        for toolchain in both.values():
            require_flatc(toolchain.python)
        wanted = {word: patches.select(asked, each.release.patches) for word, each in both.items()}
        fits = {
            word: Fit.verify(each, tuple(dict.fromkeys((*wanted["base"], *wanted["head"]))), how.shortcuts)
            for word, each in both.items()
        }
        left_out: list[str] = []
        of_both = tuple(fitting("patch", wanted, {word: fit.patches for word, fit in fits.items()}, left_out))
        shortcuts = {word: [*how.shortcuts] for word in both}
        unfit = {word: fit.shortcuts for word, fit in fits.items()}
        spared = {name: how.shortcuts[name] for name in fitting("shortcut", shortcuts, unfit, left_out)}
        settings = {
            word: replace(
                how, interpreter=each.python, checkout=each.checkout, patches=of_both, shortcuts=spared
            )
            for word, each in both.items()
        }
        cells = {word: load_cells(how.models, each.release, targets) for word, each in both.items()}
        common = tuple(cell for cell in cells["head"] if cell in set(cells["base"]))
        of = {word: Side(word, each, settings[word]) for word, each in both.items()}
        alone = {word: len(found) - len(common) for word, found in cells.items()}
        return cls(of["base"], of["head"], common, alone, tuple(left_out))

    def probing(self, probes: Mapping[str, tuple[str, tuple[str, ...]]]) -> Sides:
        """Return them with a head whose exports compare edited functions."""
        settings = self.head.settings
        if settings.instrument is None:
            # No file is edited.
            return self
        settings = replace(settings, instrument=replace(settings.instrument, probes=probes))
        return replace(self, head=replace(self.head, settings=settings))

    def judged(self, of_base: Sequence[Outcome], of_head: Sequence[Outcome]) -> tuple[Made, Made]:
        """Judge what both sides made of a cell."""
        base = self.made_by_base(of_base)
        return base, self.made_by_head(of_head, base)

    def made_by_base(self, outcomes: Sequence[Outcome]) -> Made:
        """Judge what the base made of a cell."""
        return Made.from_outcomes(outcomes, self.base.release)

    def made_by_head(self, outcomes: Sequence[Outcome], base: Made) -> Made:
        """Judge what the head made of a cell, compared with the base."""
        # Its texts name the versions of the base: that these differ is no difference of a cell.
        return Made.from_outcomes(
            outcomes, replace(self.head.release, pins=self.base.release.pins), base.record
        )

    @property
    def probes(self) -> bool:
        """Whether exports of the head compare edited functions."""
        instrument = self.head.settings.instrument
        return instrument is not None and bool(instrument.probes)


def fitting(
    kind: str,
    wanted: Mapping[str, Sequence[str]],
    unfit: Mapping[str, Mapping[str, str]],
    left_out: list[str],
) -> Iterator[str]:
    """Yield the names that both sides want and support; of the rest, add a line to `left_out`."""
    for name in dict.fromkeys(name for names in wanted.values() for name in names):
        lacking = [word for word, names in wanted.items() if name not in names]
        why = [f"{found[name]} ({word})" for word, found in unfit.items() if found.get(name)]
        if lacking:
            why.insert(0, f"the release of the {lacking[0]} does not need it")
        if why:
            left_out.append(f"left out on both sides: {kind} {name}: {'; '.join(why)}")
        else:
            yield name


@contextlib.contextmanager
def side_by_side(base: Sweep, head: Sweep) -> Iterator[None]:
    """Let the sweeps of both sides run, and share the processors; end both."""
    base.partner, head.partner = head, base
    with base, head:
        yield
