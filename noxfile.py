"""The sessions; ``goldens`` is the main job. All versions come from harness/releases.toml."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from harness import locking, releases  # noqa: E402

MATRIX = releases.load()

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["goldens"]
nox.options.default_venv_backend = "uv|virtualenv"
# An environment is 1 to 6 GB: keep it, and let the installer find that nothing is missing.
nox.options.reuse_venv = "yes"

#: Where CPU builds of torch come from (https://docs.astral.sh/uv/guides/integration/pytorch/): 200 MB, not 5 GB.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
#: Seconds to wait for it. uv itself finds out only after ten seconds of retries.
CPU_INDEX_TIMEOUT = 3.0

#: What `newest` exports when nothing is said: of each target, small cells of several families, and a whole network.
NEWEST_CELLS = ("*/linear", "*/conv-bn-relu", "*/softmax-glu", "*/layer-norm", "*/lstm", "*/mobilenet-v2")

PER_RELEASE = [nox.param(version, id=version) for version in MATRIX.releases]
#: The variable that names the Python of what compiles payloads further to `python -m harness compile`, by its session.
COMPILERS = {"vela": "EXECUTORCH_GOLDENS_VELA_PYTHON", "vgf": "EXECUTORCH_GOLDENS_VGF_PYTHON"}


def versions_of(compiler: str) -> list[str]:
    """Return the versions of a compiler that releases name."""
    distribution, *_ = locking.COMPILERS[compiler]
    named = (release.compilers.get(distribution) for release in MATRIX.releases.values())
    return [version for version in dict.fromkeys(named) if version is not None]


#: Releases that upstream's fixes are taken back in: `SINCE` in tests/mutants/history/fix.py.
TAKEN_BACK = [nox.param(version, id=version) for version in ("1.3.1", "1.5.1")]


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def goldens(session: nox.Session, release: str) -> None:
    """Export the core of the zoo, or all with ``-- --tier full``, on one release and compare with its goldens."""
    install(session, release)
    # Messages print the command that was typed.
    called = shlex.join(["nox", "-s", f"goldens({release})", "--", *session.posargs])
    environment = {"EXECUTORCH_GOLDENS_CALLED_AS": called}
    if any(word.partition("=")[0] == "--cluster" for word in session.posargs):
        environment["EXECUTORCH_GOLDENS_CLUSTER_PYTHON"] = beside(session, "worker")
    if any(word.partition("=")[0] == "--report" for word in session.posargs):
        environment["EXECUTORCH_GOLDENS_REPORT_PYTHON"] = beside(session, "report")
    session.run(
        *("python", "-m", "harness", "run", "--release", release, "-q", *session.posargs), env=environment
    )


def beside(session: nox.Session, other: str) -> str:
    """Make the environment of another session, and return its Python: the release's environment stays what it is."""
    session.run(sys.executable, "-m", "nox", "-f", __file__, "--install-only", "-s", other, external=True)
    folder = re.sub(r"[^a-z0-9]+", "-", other).strip("-")
    return str(ROOT / ".nox" / folder / "bin" / "python")


@nox.session(venv_backend="none")
def stock(session: nox.Session) -> None:
    """Run the cases that patches correct with patches off and on in every release's environment; print the table."""
    run_over_releases(session, "stock")


@nox.session(venv_backend="none")
def fielded(session: nox.Session) -> None:
    """Run the programs of each release in the runtime of each other: ``-- --new 1.6.0``, docs/fielded.md."""
    run_over_releases(session, "fielded")


def run_over_releases(session: nox.Session, command: str) -> None:
    """Run a command that drives every release's environment, each of which is made."""
    pythons = environments(session)
    words = (*pairs(pythons), *session.posargs)
    session.run(pythons[MATRIX.default], "-m", "harness", command, *words, external=True)


def environments(session: nox.Session) -> dict[str, str]:
    """Make the environment of every release, and return its Python."""
    sessions = [f"goldens({version})" for version in MATRIX.releases]
    session.run(sys.executable, "-m", "nox", "-f", __file__, "--install-only", "-s", *sessions, external=True)
    folders = {version: f"goldens-{version.replace('.', '-')}" for version in MATRIX.releases}
    return {version: str(ROOT / ".nox" / name / "bin" / "python") for version, name in folders.items()}


def pairs(pythons: Mapping[str, str]) -> list[str]:
    """Return the words that name interpreters of releases to a command."""
    return [f"{version}={python}" for version, python in pythons.items()]


@nox.session(python=MATRIX.python)
@nox.parametrize("version", [nox.param(version, id=version) for version in versions_of("vela")])
def vela(session: nox.Session, version: str) -> None:
    """Make the environment of one Vela, which the sessions `compile` use; ``-- --help`` reaches Vela."""
    install_locked(session, f"vela-{version}")
    session.run("vela", *(session.posargs or ("--version",)))


@nox.session(python=MATRIX.python)
@nox.parametrize("version", [nox.param(version, id=version) for version in versions_of("vgf")])
def vgf(session: nox.Session, version: str) -> None:
    """Make the environment of one model converter, which the sessions `compile` use."""
    install_locked(session, f"vgf-{version}")
    session.run("model-converter", *(session.posargs or ("--version",)))


@nox.session(venv_backend="none")
@nox.parametrize("release", PER_RELEASE)
def compile(session: nox.Session, release: str) -> None:
    """Compile TOSA payloads of one release with what it names for an Ethos-U and for VGF; docs/ethos-u.md.

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
    command = (beside(session, f"goldens({release})"), "-m", "harness", "compile", "--release", release)
    session.run(*command, *words, env=environment, external=True)


@nox.session(python=MATRIX.python)
def worker(session: nox.Session) -> None:
    """Offer releases to a Dask cluster: ``-- tcp://host:8786 --make 1.4.1``; docs/running.md."""
    install_with_extra(session, "cluster")
    session.run("python", "-m", "harness", "worker", *session.posargs)


@nox.session(python=MATRIX.python)
def review(session: nox.Session) -> None:
    """Go through what changed cells propose, cause by cause; docs/review.md."""
    install_with_extra(session, "review")
    session.run("python", "-m", "harness", "review", *session.posargs)


@nox.session(python=MATRIX.python)
def report(session: nox.Session) -> None:
    """Write what runs found as one HTML file: ``-- -o build/report.html``; docs/report.md."""
    install_with_extra(session, "report")
    session.run("python", "-m", "harness", "report", *session.posargs)


@nox.session(python=MATRIX.python)
def explore(session: nox.Session) -> None:
    """Open a cell in Google's Model Explorer: ``-- tosa-int/linear``; docs/explore.md."""
    install_with_extra(session, "explore")
    session.run("python", "-m", "harness", "explore", *session.posargs)


@nox.session(python=MATRIX.python)
def tests(session: nox.Session) -> None:
    """The harness's own tests, in the default release; ``-- --slow`` adds those of many real exports."""
    install(session, MATRIX.default, "tests")
    # Some tests run nox, or let uv install: both stand beside this interpreter, whether that is on the PATH or not.
    session.env["PATH"] = f"{session.env['PATH']}{os.pathsep}{Path(sys.executable).parent}"
    # A file's tests share what was exported once for them: they stay in one process. Many wait for processes that they
    # start: there is one more of them than there are cores.
    spread = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile")
    # Model Explorer and its adapters need other versions than a release.
    environment = {"EXECUTORCH_GOLDENS_EXPLORE_PYTHON": beside(session, "explore")}
    # So do compilers. An earlier Vela shows what an upgrade changes.
    (vela,) = locking.COMPILERS["vela"]
    velas = {
        "EXECUTORCH_GOLDENS_VELA_PYTHON": MATRIX.release(MATRIX.default).compilers[vela],
        "EXECUTORCH_GOLDENS_EARLIER_VELA_PYTHON": MATRIX.release("1.3.1").compilers[vela],
    }
    environment |= {name: beside(session, f"vela({version})") for name, version in velas.items()}
    environment["EXECUTORCH_GOLDENS_VGF_PYTHON"] = beside(session, f"vgf({versions_of('vgf')[0]})")
    session.run(
        *("python", "-m", "pytest", "-q", "--durations", "10", *spread, *session.posargs), env=environment
    )


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def coverage(session: nox.Session, release: str) -> None:
    """Compare what the zoo reaches of one release with docs/coverage; ``-- --update`` writes it."""
    install(session, release)
    session.run("python", "-m", "harness", "coverage", *session.posargs)


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def branches(session: nox.Session, release: str) -> None:
    """Record which branches of one release's sources exports take: ``-- --tier full --minutes 60``."""
    install(session, release, "branches")
    session.run("python", "-m", "harness", "branches", *session.posargs)


@nox.session(python=MATRIX.python)
@nox.parametrize("release", [nox.param(MATRIX.default, id=MATRIX.default)])
def portable(session: nox.Session, release: str) -> None:
    """Export as on several machines and compare: no cell of the zoo differs, some of a naive one do."""
    install(session, release)
    session.run("python", "-m", "harness", "portable", *session.posargs)
    naive = ("--models", "tests.zoo_naive", "--expect-differences")
    if not session.posargs:
        session.run("python", "-m", "harness", "portable", *naive, "--cell", "*-int*/*")


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def shortcuts(session: nox.Session, release: str) -> None:
    """Export the zoo with and without shortcuts, and compare bytes and core seconds; ``-- --cell PATTERN`` limits."""
    install(session, release)
    session.run("python", "-m", "harness", "shortcuts", "--release", release, *session.posargs)


@nox.session(python=MATRIX.python)
def mutants(session: nox.Session) -> None:
    """Export with deliberate defects in the default release, and demand that each is detected, with its pass."""
    install(session, MATRIX.default)
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session(python=MATRIX.python)
@nox.parametrize("release", TAKEN_BACK)
def history(session: nox.Session, release: str) -> None:
    """Take upstream's fixes back, and find out which the whole zoo sees; ``-- --minutes 60``, docs/history.md."""
    install(session, release)
    session.run("python", "-m", "tests.mutants.history", *session.posargs)


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def findings(session: nox.Session, release: str) -> None:
    """Run the scripts of docs/findings on one release, and compare with what their table says of it."""
    install(session, release)
    session.run("python", "-m", "tests.findings", *session.posargs)


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def guests(session: nox.Session, release: str) -> None:
    """Compare the listings of the guest zoos with the tests that one release ships; ``-- --update`` writes them."""
    install(session, release)
    session.run("python", "-m", "harness", "guests", *session.posargs)


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def fuzz(session: nox.Session, release: str) -> None:
    """Draw small models, export and judge them on one release; ``-- --minutes 20``, docs/generator.md."""
    install(session, release, "branches")
    session.run("python", "-m", "harness", "fuzz", "--release", release, *session.posargs)


@nox.session(name="fuzz-bytes", python=MATRIX.python)
def fuzz_bytes(session: nox.Session) -> None:
    """Read mutated files with every reader; ``-- --mutations 20000 --update`` is a full run, docs/reliability.md."""
    install(session, MATRIX.default, "tests")
    session.run("python", "-m", "tests.fuzz_bytes", *session.posargs)


@nox.session(python=MATRIX.python)
def faults(session: nox.Session) -> None:
    """Make faults while real runs go on; ``-- --update`` writes the table of docs/reliability.md. It needs root."""
    install(session, MATRIX.default, "tests")
    session.run("python", "-m", "tests.faults", *session.posargs)


@nox.session(python=MATRIX.python)
def soak(session: nox.Session) -> None:
    """Export for hours with faults thrown in at random: ``-- --minutes 120 --update``; ``--cluster`` on a cluster."""
    install(session, MATRIX.default, "tests")
    words = [word for word in session.posargs if word != "--cluster"]
    module = "tests.faults.soak" if words == session.posargs else "tests.faults.cluster_soak"
    session.run("python", "-m", module, *words)


@nox.session(venv_backend="none")
def newest(session: nox.Session) -> None:
    """Try what the package index has that is newer than the newest release; docs/newest.md."""
    python = beside(session, f"goldens({MATRIX.default})")
    words = session.posargs or [word for cell in NEWEST_CELLS for word in ("--cell", cell)]
    session.run(python, "-m", "harness", "probe", "--newest", *words, external=True)


@nox.session(python=MATRIX.python)
def docs(session: nox.Session) -> None:
    """Make the site of docs/ in build/site; a link that leads nowhere, or a page that is in no list, fails it."""
    install_with_extra(session, "docs")
    out = ROOT / "build" / "site"
    session.run("sphinx-build", "--fail-on-warning", "--fresh-env", "-q", "-c", "docs/site", ".", str(out))
    session.log(f"open {out / 'index.html'}")


@nox.session(python=MATRIX.python)
@nox.parametrize("release", PER_RELEASE)
def bench(session: nox.Session, release: str) -> None:
    """Measure ratios side by side, with their goals; ``-- --keep`` puts them into docs/benchmarks.md."""
    install(session, release)
    environment = {}
    if "cluster" in session.posargs:
        environment["EXECUTORCH_GOLDENS_CLUSTER_PYTHON"] = beside(session, "worker")
    session.run("python", "-m", "tests.bench", *session.posargs, env=environment)


@nox.session(python=MATRIX.python)
def lint(session: nox.Session) -> None:
    """Format, lint and type-check; check the workflows."""
    install(session, MATRIX.default, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("zizmor", "--offline", "--no-progress", ".github/workflows")


@nox.session(venv_backend="none")
def lock(session: nox.Session) -> None:
    """Check that the locks hold what environments need; ``-- --update`` writes them, docs/supply-chain.md."""
    session.run(sys.executable, "-m", "tests.supply.locks", *session.posargs, external=True)


@nox.session(python=MATRIX.python)
def audit(session: nox.Session) -> None:
    """Ask about known vulnerabilities of what is locked, write bills of materials; docs/supply-chain.md."""
    install_locked(session, "audit")
    install_this_project(session)
    words = pairs(environments(session)) if "--licences" in session.posargs else []
    session.run("python", "-m", "tests.supply.audit", *session.posargs, *words)


def install(session: nox.Session, version: str, *tools: str) -> None:
    """Make the environment of one release: what its lock holds, what the locks `tools` hold, and this project."""
    release = MATRIX.release(version)
    elsewhere, why = torch_backend(session.venv_backend == "uv")
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


def install_with_extra(session: nox.Session, extra: str) -> None:
    """Make the environment of an extra of pyproject.toml, which needs no release."""
    install_locked(session, extra)
    install_this_project(session)


def install_this_project(session: nox.Session) -> None:
    """Install the sources of this project, without what they need."""
    session.install("--no-deps", "--editable", str(ROOT), env=locking.building())


@functools.cache
def torch_backend(uv: bool) -> tuple[tuple[str, ...] | None, str]:
    """Return installer arguments that choose a build of torch, None for PyPI's, and one line that says why."""
    if uv and "UV_TORCH_BACKEND" in os.environ:
        return (), f"backend {os.environ['UV_TORCH_BACKEND']!r}, from UV_TORCH_BACKEND"
    try:
        urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=CPU_INDEX_TIMEOUT).close()
    except (urllib.error.URLError, OSError) as error:
        return None, f"PyPI's build, because {CPU_INDEX} does not answer ({getattr(error, 'reason', error)})"
    arguments = ("--torch-backend", "cpu") if uv else ("--extra-index-url", CPU_INDEX)
    return arguments, f"CPU build from {CPU_INDEX}"


@nox.session(venv_backend="none")
def clean(session: nox.Session) -> None:
    """Delete the environments and the results; goldens stay."""
    for name in (".nox", "build"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
