"""The sessions; ``goldens`` is the main job. Versions come from harness/executorch_goldens/settings/releases.toml."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "harness"))

from executorch_goldens.settings import releases  # noqa: E402
from executorch_goldens.toolchains import interpreters, locking  # noqa: E402
from executorch_goldens.toolchains.environments import torch_backend  # noqa: E402

try:
    MATRIX = releases.load()
except releases.MatrixError as error:
    sys.exit(f"nox: {error}")

# Sessions start hundreds of Pythons: where none may keep its byte code, each compiles torch and pytest's plugins again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["goldens"]
nox.options.default_venv_backend = "uv"
# An environment is 1 to 6 GB: keep it, and let the installer find that nothing is missing.
nox.options.reuse_venv = "yes"

# The newest first: what it says is waited for most.
PER_RELEASE = [nox.param(version, id=version) for version in reversed(MATRIX.releases)]
#: The variable that names the Python of what compiles payloads further to `goldens compile`, by its session.
COMPILERS = {"vela": "EXECUTORCH_GOLDENS_VELA_PYTHON", "vgf": "EXECUTORCH_GOLDENS_VGF_PYTHON"}


def python_of(*locks: str) -> str | None:
    """Return the Python of the sessions that install locks: nox's own, None, or another one that has wheels of them."""
    python = interpreters.chosen(interpreters.with_wheels(locks))
    return None if python.request == sys.executable else python.request


def versions_of(compiler: str) -> list[str]:
    """Return the versions of a compiler that releases name."""
    distribution, *_ = locking.COMPILERS[compiler]
    named = (release.compilers.get(distribution) for release in MATRIX.releases.values())
    return [version for version in dict.fromkeys(named) if version is not None]


@nox.session(venv_backend="none")
@nox.parametrize("release", PER_RELEASE)
def goldens(session: nox.Session, release: str) -> None:
    """Export the core of the zoo, or all with ``-- --tier full``, on one release and compare with its goldens."""
    # Messages print the command that was typed.
    called = shlex.join(["nox", "-s", f"goldens({release})", "--", *session.posargs])
    environment = {"EXECUTORCH_GOLDENS_CALLED_AS": called}
    if any(word.partition("=")[0] == "--cluster" for word in session.posargs):
        environment["EXECUTORCH_GOLDENS_CLUSTER_PYTHON"] = beside(session, "worker")
    goldens_command(session, "run", "-t", release, *session.posargs, env=environment)


def goldens_command(session: nox.Session, *words: str, env: Mapping[str, str]) -> None:
    """Call a command of this project with the Python that nox runs in; it makes the environments that it needs."""
    here = {"PYTHONPATH": str(ROOT / "harness")}
    session.run(sys.executable, "-m", "executorch_goldens", *words, env={**here, **env}, external=True)


def beside(session: nox.Session, other: str, *words: str) -> str:
    """Make the environment of another session, and return its Python: the release's environment stays what it is."""
    session.run(
        sys.executable, "-m", "nox", "-f", __file__, "--install-only", *words, "-s", other, external=True
    )
    folder = re.sub(r"[^a-z0-9]+", "-", other).strip("-")
    return str(ROOT / ".nox" / folder / "bin" / "python")


@nox.session(python=python_of(*(f"vela-{version}" for version in versions_of("vela"))))
@nox.parametrize("version", [nox.param(version, id=version) for version in versions_of("vela")])
def vela(session: nox.Session, version: str) -> None:
    """Make the environment of one Vela, which the sessions `compile` use; ``-- --help`` reaches Vela."""
    install_locked(session, f"vela-{version}")
    session.run("vela", *(session.posargs or ("--version",)))


@nox.session(python=python_of(*(f"vgf-{version}" for version in versions_of("vgf"))))
@nox.parametrize("version", [nox.param(version, id=version) for version in versions_of("vgf")])
def vgf(session: nox.Session, version: str) -> None:
    """Make the environment of one model converter, which the sessions `compile` use."""
    install_locked(session, f"vgf-{version}")
    session.run("model-converter", *(session.posargs or ("--version",)))


@nox.session(venv_backend="none")
@nox.parametrize("release", PER_RELEASE)
def compile(session: nox.Session, release: str) -> None:
    """Compile TOSA payloads of one release with what it names for an Ethos-U and for VGF; docs/plugins/downstream.md.

    ``-- --vela 5.1.0`` and ``--against 5.0.0`` take Velas of the matrix.
    """
    environment = {}
    for compiler, variable in COMPILERS.items():
        version = MATRIX.release(release).compilers.get(locking.COMPILERS[compiler][0])
        if version is not None:
            environment[variable] = beside(session, f"{compiler}({version})")
    words = list(session.posargs)
    for index, (option, word) in enumerate(zip(session.posargs, session.posargs[1:], strict=False), 1):
        if option in ("--vela", "--against") and word in versions_of("vela"):
            words[index] = beside(session, f"vela({word})")
    chosen = ("--release", release) if "--exported" in words else ("-t", release)
    goldens_command(session, "compile", *chosen, *words, env=environment)


@nox.session(python=python_of("cluster"))
def worker(session: nox.Session) -> None:
    """Offer releases to a Dask cluster: ``-- tcp://host:8786 -t 1.4.1``; docs/plugins/cluster.md."""
    install_with_extra(session, "cluster")
    session.run("goldens", "worker", *session.posargs)


@nox.session(python=python_of("harness"))
def report(session: nox.Session) -> None:
    """Write what runs found as one HTML file: ``-- --html build/report.html``; docs/review.md."""
    install_with_extra(session, "harness")
    session.run("goldens", "report", *session.posargs)


@nox.session(python=python_of("explore"))
def explore(session: nox.Session) -> None:
    """Open a cell in Google's Model Explorer: ``-- tosa-int/linear``; docs/plugins/explorer.md."""
    install_with_extra(session, "explore")
    session.run("goldens", "show", "--explore", *session.posargs)


@nox.session(python=python_of(MATRIX.default, "tests"))
def tests(session: nox.Session) -> None:
    """The core's own tests, in the default release; ``-- --slow`` adds those of many real exports.

    ``-- tests/plugins`` runs those of plugins, ``-- harness/lab/tests`` the lab's.
    """
    # pytest's workers do not name a file that is missing.
    for word in session.posargs:
        if word.startswith(("tests/", "harness/lab/tests")) and not (ROOT / word.partition("::")[0]).exists():
            session.error(f"{word} is missing: name a file or folder of tests")
    install(session, MATRIX.default, "tests")
    # Some tests run nox, or let uv install: both stand beside this interpreter, whether that is on the PATH or not.
    session.env["PATH"] = f"{session.env['PATH']}{os.pathsep}{Path(sys.executable).parent}"
    # A file's tests share what was exported once for them: they stay in one process. Many wait for processes that they
    # start: there is one more of them than there are cores. The order is that of tests/conftest.py: the longest first.
    spread = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile", "--no-loadscope-reorder")
    environment = {}
    if any(word.startswith("tests/plugins") for word in session.posargs):
        environment = of_plugins(session)
    session.run(
        *("python", "-m", "pytest", "-q", "--durations", "10", *spread, *session.posargs), env=environment
    )


def of_plugins(session: nox.Session) -> dict[str, str]:
    """Make the environments that tests of plugins need beside the release's, and return the variables that name them.

    Model Explorer and its adapters need other versions than a release, and so do compilers. An earlier Vela shows what
    an upgrade changes. Where no Python has wheels of one of them, its tests are skipped.
    """
    (vela,) = locking.COMPILERS["vela"]
    others = {
        "EXECUTORCH_GOLDENS_EXPLORE_PYTHON": "explore",
        "EXECUTORCH_GOLDENS_DOCS_PYTHON": "docs",
        "EXECUTORCH_GOLDENS_VELA_PYTHON": f"vela({MATRIX.release(MATRIX.default).compilers[vela]})",
        "EXECUTORCH_GOLDENS_EARLIER_VELA_PYTHON": f"vela({MATRIX.release('1.3.1').compilers[vela]})",
        "EXECUTORCH_GOLDENS_VGF_PYTHON": f"vgf({versions_of('vgf')[0]})",
    }
    made = {
        name: beside(session, other, "--no-error-on-missing-interpreters") for name, other in others.items()
    }
    return {name: python for name, python in made.items() if Path(python).exists()}


#: What instruments of the lab need beside a release, by lock.
TOOLS = dict.fromkeys(("args", "faults", "fuzz-bytes", "options"), ("tests",))


#: ``nox -s lab`` is for the default release: the sessions of the others would only be skipped.
OF_LAB = [each for each in PER_RELEASE if "lab" not in sys.argv or each.id == MATRIX.default]


@nox.session(python=python_of(*MATRIX.releases))
@nox.parametrize("release", OF_LAB)
def lab(session: nox.Session, release: str) -> None:
    """What proves the harness: ``nox -s lab`` lists the instruments, ``"lab(1.5.1)" -- mutants`` chooses a release."""
    # Without a release, however nox is asked, it is the default one's.
    if release != MATRIX.default and not any(f"lab({release})" in word for word in sys.argv):
        session.skip(f'nox -s "lab({release})" runs it')
    instrument, *words = session.posargs or ("",)
    if instrument == "audit":
        install_locked(session, "audit")
        install_this_project(session)
    else:
        install(session, release, *TOOLS.get(instrument, ()))
        session.install("--no-deps", "--editable", str(ROOT / "harness" / "lab"), env=locking.building())
    session.run("python", "-m", "lab", *filter(None, (instrument,)), *words)


@nox.session(python=python_of("docs"))
def docs(session: nox.Session) -> None:
    """Make the site of docs/ in build/site; a link that leads nowhere, or a page that is in no list, fails it."""
    install_with_extra(session, "docs")
    out = ROOT / "build" / "site"
    session.run("sphinx-build", "--fail-on-warning", "--fresh-env", "-q", "-c", "docs/site", ".", str(out))
    session.log(f"open {out / 'index.html'}")


@nox.session(python=python_of(MATRIX.default, "lint"))
def lint(session: nox.Session) -> None:
    """Format, lint and type-check; check the workflows."""
    install(session, MATRIX.default, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("zizmor", "--offline", "--no-progress", ".github", "action.yml")


def install(session: nox.Session, version: str, *tools: str) -> None:
    """Make the environment of one release: what its lock holds, what the locks `tools` hold, and this project."""
    release = MATRIX.release(version)
    elsewhere, why = torch_backend()
    session.log(f"torch {release.pins['torch']}: {why}")
    try:
        steps = list(locking.steps(release, tools, elsewhere))
    except locking.NoLockError as error:
        session.error(str(error))
    for step in steps:
        session.install(*step.arguments, env=step.environment)
    install_this_project(session)
    # The environment's own flatc is the one that lowering finds.
    session.env["PATH"] = os.pathsep.join([session.bin, os.environ.get("PATH", os.defpath)])


def install_locked(session: nox.Session, name: str) -> None:
    """Install what one lock holds."""
    try:
        step = locking.locked((name,))
    except locking.NoLockError as error:
        session.error(str(error))
    session.install(*step.arguments, env=step.environment)


def install_with_extra(session: nox.Session, lock: str) -> None:
    """Make the environment of an extra of pyproject.toml, or of none, which needs no release."""
    install_locked(session, lock)
    install_this_project(session)


def install_this_project(session: nox.Session) -> None:
    """Install the sources of this project, without what they need."""
    session.install("--no-deps", "--editable", str(ROOT), env=locking.building())


@nox.session(venv_backend="none")
def clean(session: nox.Session) -> None:
    """Delete the environments and the results; goldens stay."""
    for name in (".nox", "build"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
