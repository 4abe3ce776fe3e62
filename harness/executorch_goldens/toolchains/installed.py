"""Packages of an exporting environment, and the release of the matrix that they match."""

from __future__ import annotations

import functools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from executorch_goldens import extensions
from executorch_goldens.errors import UsageError
from executorch_goldens.settings import releases

#: Seconds that an interpreter may take to say what is installed: a tenth of one on an idle machine.
PROBE_LIMIT = 600.0


@dataclass(frozen=True)
class Installed:
    """The packages of the exporting environment.

    Attributes
    ----------
    versions
        Public versions by distribution name.
    site_packages
        Where they are.
    extensions
        Names of the entry points of each group of `executorch_goldens.extensions`.
    places
        The folders of the package executorch.
    """

    versions: dict[str, str]
    site_packages: Path
    extensions: dict[str, list[str]]
    places: tuple[str, ...]

    @classmethod
    @functools.cache
    def probe(cls, interpreter: Path) -> Installed:
        """Ask `interpreter` for its versions, once and without importing torch; raise UsageError."""
        code = (
            "import json, sysconfig; from importlib import metadata as m, util\n"
            "def v(n):\n"
            "    try: return m.version(n)\n"
            "    except m.PackageNotFoundError: return ''\n"
            f"points = {{g: [p.name for p in m.entry_points(group=g)] for g in {extensions.GROUPS!r}}}\n"
            "found = util.find_spec('executorch')\n"
            "places = [*(found.submodule_search_locations or ())] if found else []\n"
            f"print(json.dumps([{{n: v(n) for n in {STACK!r}}}, sysconfig.get_path('purelib'), points, places]))"
        )
        try:
            # In this folder a model may have the name of a module of Python's own.
            probed = subprocess.run(
                [interpreter, "-P", "-c", code], capture_output=True, text=True, timeout=PROBE_LIMIT
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"the toolchain {interpreter} cannot be run: {error}") from error
        if probed.returncode:
            why = probed.stderr.strip() or f"it ended with {probed.returncode}"
            raise UsageError(f"the toolchain {interpreter} cannot be run:\n{why}")
        found, site_packages, points, places = json.loads(probed.stdout)
        versions = {name: version.partition("+")[0] for name, version in found.items() if version}
        return cls(versions, Path(site_packages), points, tuple(places))


STACK = ("executorch", "torch", "torchao", "tosa-tools")


def find_release(installed: Installed) -> releases.Release:
    """Return the matrix's release that is installed; raise UsageError where there is none, or a different one."""
    matrix = releases.load()
    version = installed.versions.get("executorch")
    if version is None:
        raise UsageError(
            f"no ExecuTorch is installed in the exporting environment; -t {matrix.newest} names one that is made"
        )
    release = matrix.release(version)
    wrong = {
        n: installed.versions.get(n) for n, v in release.stack().items() if installed.versions.get(n) != v
    }
    if wrong:
        found = ", ".join(f"{name} {version or 'missing'}" for name, version in wrong.items())
        raise UsageError(
            f"the environment is not the one that releases.toml pairs with {release.version}: {found}; "
            f"-t {release.version} names one that is, or install {' '.join(release.requirements())}"
        )
    return release
