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
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from harness import releases  # noqa: E402

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

#: The harness's own tests need these beside the default release.
TEST_TOOLS = (
    "hypothesis==6.155.2",
    "pytest-xdist==3.8.0",
    "pyte==0.8.2",
    "playwright==1.65.2",
    "axe-playwright-python==0.1.8",
)
#: What a Dask cluster, a review in a terminal, a report and others need, which no release's environment has.
EXTRAS = nox.project.load_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
LINT_TOOLS = ("ruff==0.17.5", "mypy==2.4.1", "nox>=2025.2.9", "zizmor==1.32.0")

#: What `newest` exports when nothing is said: of each target, small cells of several families, and a whole network.
NEWEST_CELLS = ("*/linear", "*/conv-bn-relu", "*/softmax-glu", "*/layer-norm", "*/lstm", "*/mobilenet-v2")

PER_RELEASE = [nox.param(version, id=version) for version in MATRIX.releases]
#: What compiles payloads further: the options that name its Python to `python -m harness compile`, the variable that
#: does, and its distributions. Each version has an environment of its own.
COMPILERS = {
    "vela": ("EXECUTORCH_GOLDENS_VELA_PYTHON", ("ethos-u-vela",)),
    "vgf": ("EXECUTORCH_GOLDENS_VGF_PYTHON", ("ai-ml-sdk-model-converter", "ai-ml-sdk-vgf-library")),
}


def versions_of(compiler: str) -> list[str]:
    """Return the versions of a compiler that releases name."""
    first = COMPILERS[compiler][1][0]
    named = (release.compilers.get(first) for release in MATRIX.releases.values())
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
    environments = {
        version: ROOT / ".nox" / f"goldens-{version.replace('.', '-')}" for version in MATRIX.releases
    }
    sessions = [f"goldens({version})" for version in environments]
    session.run(sys.executable, "-m", "nox", "-f", __file__, "--install-only", "-s", *sessions, external=True)
    pairs = [f"{version}={path / 'bin' / 'python'}" for version, path in environments.items()]
    driver = environments[MATRIX.default] / "bin" / "python"
    session.run(str(driver), "-m", "harness", command, *pairs, *session.posargs, external=True)


@nox.session(python=MATRIX.python)
@nox.parametrize("version", [nox.param(version, id=version) for version in versions_of("vela")])
def vela(session: nox.Session, version: str) -> None:
    """Make the environment of one Vela, which the sessions `compile` use; ``-- --help`` reaches Vela."""
    install_compiler(session, "vela", version)
    session.run("vela", *(session.posargs or ("--version",)))


@nox.session(python=MATRIX.python)
@nox.parametrize("version", [nox.param(version, id=version) for version in versions_of("vgf")])
def vgf(session: nox.Session, version: str) -> None:
    """Make the environment of one model converter, which the sessions `compile` use."""
    install_compiler(session, "vgf", version)
    session.run("model-converter", *(session.posargs or ("--version",)))


def install_compiler(session: nox.Session, compiler: str, version: str) -> None:
    """Install one version of what compiles payloads, and the numpy of the default release."""
    numpy = MATRIX.release(MATRIX.default).pins["numpy"]
    session.install(*(f"{name}=={version}" for name in COMPILERS[compiler][1]), f"numpy=={numpy}")


@nox.session(venv_backend="none")
@nox.parametrize("release", PER_RELEASE)
def compile(session: nox.Session, release: str) -> None:
    """Compile TOSA payloads of one release with what it names for an Ethos-U and for VGF; docs/ethos-u.md.

    ``-- --vela 5.1.0`` and ``--against 5.0.0`` take Velas of the matrix.
    """
    environment = {}
    for compiler, (variable, (first, *_)) in COMPILERS.items():
        version = MATRIX.release(release).compilers.get(first)
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
    session.install("--editable", f"{ROOT}[cluster]")
    session.run("python", "-m", "harness", "worker", *session.posargs)


@nox.session(python=MATRIX.python)
def review(session: nox.Session) -> None:
    """Go through what changed cells propose, cause by cause; docs/review.md."""
    session.install("--editable", f"{ROOT}[review]")
    session.run("python", "-m", "harness", "review", *session.posargs)


@nox.session(python=MATRIX.python)
def report(session: nox.Session) -> None:
    """Write what runs found as one HTML file: ``-- -o build/report.html``; docs/report.md."""
    session.install("--editable", f"{ROOT}[report]")
    session.run("python", "-m", "harness", "report", *session.posargs)


@nox.session(python=MATRIX.python)
def explore(session: nox.Session) -> None:
    """Open a cell in Google's Model Explorer: ``-- tosa-int/linear``; docs/explore.md."""
    session.install("--editable", f"{ROOT}[explore]")
    session.run("python", "-m", "harness", "explore", *session.posargs)


@nox.session(python=MATRIX.python)
def tests(session: nox.Session) -> None:
    """The harness's own tests, in the default release; ``-- --slow`` adds those of many real exports."""
    extras = (tool for name in ("cluster", "review", "report", "branches") for tool in EXTRAS[name])
    install(session, MATRIX.default, *TEST_TOOLS, *extras)
    # A file's tests share what was exported once for them: they stay in one process.
    spread = ("-n", "auto", "--dist", "loadfile")
    # Model Explorer and its adapters need other versions than a release.
    environment = {"EXECUTORCH_GOLDENS_EXPLORE_PYTHON": beside(session, "explore")}
    # So do compilers. An earlier Vela shows what an upgrade changes.
    vela, *_ = COMPILERS["vela"][1]
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
    install(session, release, *EXTRAS["branches"])
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
    install(session, release, *EXTRAS["branches"])
    session.run("python", "-m", "harness", "fuzz", "--release", release, *session.posargs)


@nox.session(name="fuzz-bytes", python=MATRIX.python)
def fuzz_bytes(session: nox.Session) -> None:
    """Read mutated files with every reader; ``-- --mutations 20000 --update`` is a full run, docs/reliability.md."""
    install(session, MATRIX.default, *TEST_TOOLS)
    session.run("python", "-m", "tests.fuzz_bytes", *session.posargs)


@nox.session(python=MATRIX.python)
def faults(session: nox.Session) -> None:
    """Make faults while real runs go on; ``-- --update`` writes the table of docs/reliability.md. It needs root."""
    install(session, MATRIX.default, *TEST_TOOLS)
    session.run("python", "-m", "tests.faults", *session.posargs)


@nox.session(python=MATRIX.python)
def soak(session: nox.Session) -> None:
    """Export for hours with faults thrown in at random: ``-- --minutes 120 --update``, docs/reliability.md."""
    install(session, MATRIX.default, *TEST_TOOLS)
    session.run("python", "-m", "tests.faults.soak", *session.posargs)


@nox.session(venv_backend="none")
def newest(session: nox.Session) -> None:
    """Try what the package index has that is newer than the newest release; docs/newest.md."""
    python = beside(session, f"goldens({MATRIX.default})")
    words = session.posargs or [word for cell in NEWEST_CELLS for word in ("--cell", cell)]
    session.run(python, "-m", "harness", "probe", "--newest", *words, external=True)


@nox.session(python=MATRIX.python)
def docs(session: nox.Session) -> None:
    """Make the site of docs/ in build/site; a link that leads nowhere, or a page that is in no list, fails it."""
    session.install("--editable", f"{ROOT}[docs]")
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
    install(session, MATRIX.default, *LINT_TOOLS)
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("zizmor", "--offline", "--no-progress", ".github/workflows")


def install(session: nox.Session, version: str, *tools: str) -> None:
    """Make the environment of one release: its pins, this project, and `tools`."""
    release = MATRIX.release(version)
    backend, why = torch_backend(session.venv_backend == "uv")
    session.log(f"torch {release.pins['torch']}: {why}")
    session.install(*release.requirements(), *tools, *backend)
    session.install("--no-deps", "--editable", str(ROOT))
    # The environment's own flatc is the one that lowering finds.
    session.env["PATH"] = os.pathsep.join([session.bin, os.environ.get("PATH", os.defpath)])


@functools.cache
def torch_backend(uv: bool) -> tuple[tuple[str, ...], str]:
    """Return installer arguments that choose a build of torch, and one line that says which and why."""
    if uv and "UV_TORCH_BACKEND" in os.environ:
        return (), f"backend {os.environ['UV_TORCH_BACKEND']!r}, from UV_TORCH_BACKEND"
    try:
        urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=CPU_INDEX_TIMEOUT).close()
    except (urllib.error.URLError, OSError) as error:
        return (), f"PyPI's build, because {CPU_INDEX} does not answer ({getattr(error, 'reason', error)})"
    arguments = ("--torch-backend", "cpu") if uv else ("--extra-index-url", CPU_INDEX)
    return arguments, f"CPU build from {CPU_INDEX}"


@nox.session(venv_backend="none")
def clean(session: nox.Session) -> None:
    """Delete the environments and the results; goldens stay."""
    for name in (".nox", "build"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
