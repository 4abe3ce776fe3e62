"""``[tool.goldens]``: the nearest table counts, the command line overrides it, and errors in it are named."""

from __future__ import annotations

import dataclasses
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from executorch_goldens.cli import ERROR
from executorch_goldens.errors import UsageError
from executorch_goldens.files import git
from executorch_goldens.running import options
from executorch_goldens.running.selection import require_supported, require_targets
from executorch_goldens.settings import config, releases
from executorch_goldens.settings.config import Config, ConfigError
from executorch_goldens.settings.exports import default_interpreter, worker_environment
from executorch_goldens.sweep.worker import with_harness
from executorch_goldens.toolchains import toolchain
from tests import REPOSITORY
from tests.support.commands import GOLDENS, ended
from tests.support.runner import options_of

WHOLE = """
    [tool.goldens]
    models = ["zoo", "zoo_of_audio"]
    goldens = "reviewed"
    targets = ["tosa-int"]
    releases = ["1.4.1"]
    toolchains = ["1.4.1", "1.4.1 + torch==2.14.1"]
    variations = 6
    patches = "auto"
    jobs = 2
    export-timeout = 60
    sweeps = "out/sweeps"
    tolerances = { tosa-int = 0.01 }

    [tool.goldens.environment]
    requirements = ["timm==1.0.20", "-e ."]
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def pyproject(text: str) -> Path:
        (tmp_path / "pyproject.toml").write_text(textwrap.dedent(text))
        return tmp_path

    return pyproject


def test_every_key_is_read_and_paths_are_relative_to_the_file(write: Write) -> None:
    root = write(WHOLE)
    read = config.load(root)
    assert read == config.Config(
        root=root,
        models=("zoo", "zoo_of_audio"),
        goldens=root / "reviewed",
        targets=("tosa-int",),
        releases=("1.4.1",),
        toolchains=("1.4.1", "1.4.1 + torch==2.14.1"),
        requirements=("timm==1.0.20", "-e ."),
        variations="6",
        patches="auto",
        jobs=2,
        export_timeout=60.0,
        sweeps=root / "out" / "sweeps",
        tolerances={"tosa-int": 0.01},
    )
    fields = {name.replace("_", "-") for name in config.Config.__dataclass_fields__}
    assert set(config.KEYS) - {"environment"} == fields - {"root", "requirements"}


def test_the_nearest_table_upwards_counts_and_files_without_one_do_not(write: Write) -> None:
    root = write(WHOLE)
    inner = root / "packages" / "inner"
    inner.mkdir(parents=True)
    (root / "packages" / "pyproject.toml").write_text("[project]\nname = 'inner'\n")
    assert config.load(inner).root == root
    (root / "packages" / "pyproject.toml").write_text("[tool.goldens]\nmodels = ['nearer']\n")
    assert config.load(inner).models == ("nearer",)
    assert config.load(inner).goldens == root / "packages" / "goldens"


def test_without_a_table_there_is_no_zoo_and_the_error_says_how_to_name_one(tmp_path: Path) -> None:
    unsaid = config.load(tmp_path)
    assert unsaid.goldens == tmp_path / "goldens"
    assert unsaid.zoos(["named"]) == ("named",)
    with pytest.raises(ConfigError, match=r"no zoo is named: pass --models MODULE, or .*\[tool\.goldens\]"):
        unsaid.zoos(None)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that an installed zoo has; the working directory is an empty folder of somebody's checkout."""
    package = tmp_path / "packages" / "executorch_goldens_zoo"
    (package / "repository").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "repository" / "pyproject.toml").write_text("[tool.goldens]\nmodels = ['installed']\n")
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend(package.parent)
    return package / "repository"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back what taking a zoo leaves in the environment."""
    for name in (config.TAKEN, config.CEILINGS):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_where_there_is_no_table_the_installed_zoo_is_taken_here_and_in_processes_started_here(
    installed: Path,
) -> None:
    assert config.load().models == ()
    assert config.take_zoo(None) is None
    assert (config.load().root, config.load().models) == (installed, ("installed",))
    code = "from executorch_goldens.settings import config; print(config.take_zoo(None), config.load().root)"
    started = ended(with_harness(default_interpreter(), code), Path.cwd())
    assert started.stdout == f"None {installed}\n", started.stderr
    # The checkout around an environment is not the zoo's.
    found = [git.output(folder, "rev-parse", "--git-dir") for folder in (Path.cwd(), installed)]
    assert [*map(bool, found)] == [True, False]


def test_the_installed_zoo_is_taken_in_place_of_an_own_one_only_if_it_is_named(installed: Path) -> None:
    assert config.take_zoo(["named"]) == ["named"]
    assert config.load().models == ()
    Path("pyproject.toml").write_text("[tool.goldens]\nmodels = ['own']\n")
    assert config.take_zoo(None) is None
    assert config.load().models == ("own",)
    with pytest.raises(ConfigError, match=config.ZOO):
        config.take_zoo(["named", config.ZOO])
    assert config.load().models == ("own",)
    assert config.take_zoo([config.ZOO]) is None
    assert config.load().root == installed


def test_a_comparison_without_any_zoo_says_what_to_install(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    said = ended([*GOLDENS, "compare", "1.4.1", "1.5.1"], tmp_path)
    assert (said.returncode, said.stdout) == (ERROR, "")
    assert said.stderr == snapshot


@pytest.mark.parametrize(
    ("line", "patches"),
    [
        ("", "none"),
        ("patches = 'none'", "none"),
        ("patches = ['partition-order', 'folded-scales']", "partition-order,folded-scales"),
    ],
)
def test_nothing_is_patched_that_the_file_does_not_name(write: Write, line: str, patches: str) -> None:
    assert config.load(write(f"[tool.goldens]\n{line}\n")).patches == patches


def test_without_a_file_nothing_is_patched_and_this_project_takes_what_its_releases_declare(
    tmp_path: Path,
) -> None:
    assert config.load(tmp_path).patches == "none"
    assert config.load(REPOSITORY).patches == "auto"


def test_patches_of_the_command_line_go_over_those_of_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write('[tool.goldens]\nmodels = ["zoo"]\n'))
    assert options_of().patches == "none"
    assert options_of("--patches", "auto").patches == "auto"
    write('[tool.goldens]\nmodels = ["zoo"]\npatches = ["list-qparams"]\n')
    assert options_of().patches == "list-qparams"
    assert options_of("--patches", "none").patches == "none"


def test_what_a_toolchain_exports_with_follows_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    here, declared = toolchain.here(), releases.load().release(release).patches
    monkeypatch.chdir(write("[tool.goldens]\n"))
    assert here.settings(("zoo",), 1).patches == ()
    write('[tool.goldens]\npatches = "auto"\n')
    assert here.settings(("zoo",), 1).patches == tuple(declared)


def test_the_command_line_goes_over_the_file(write: Write) -> None:
    assert config.load(write(WHOLE)).zoos(["other"]) == ("other",)
    assert config.load(write(WHOLE)).zoos([]) == ("zoo", "zoo_of_audio")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("model = ['zoo']", "model"),
        ("models = 'zoo'", "models"),
        ("models = []", "models"),
        ("models = [1]", "models"),
        ("goldens = ['a']", "goldens"),
        ("goldens = ''", "goldens"),
        ("targets = 'tosa-int'", "targets"),
        ("releases = [1.4]", "releases"),
        ("variations = 0", "variations"),
        ("variations = ['quick']", "variations"),
        ("patches = ''", "patches"),
        ("patches = []", "patches"),
        ("patches = [19045]", "patches"),
        ("patches = false", "patches"),
        ("allow = ['names']", "allow[0]: invalid enum value 'names'"),
        ("jobs = true", "jobs"),
        ("jobs = 1.5", "jobs"),
        ("export-timeout = 0", "export-timeout"),
        ("export-timeout = inf", "export-timeout"),
        ("export_timeout = 3", "export_timeout"),
        ("tolerances = 0.1", "tolerances"),
        ("tolerances = { tosa-int = '0.1' }", "tolerances"),
        ("tolerances = { tosa-int = -0.1 }", "tolerances"),
        ("tolerances = { tosa-int = nan }", "tolerances"),
        ("tolerances = { tosa-int = inf }", "tolerances"),
        ("tolerances = { tosa-int = true }", "tolerances"),
        ("tolerances = { tosa-int = 0 }", "tolerances"),
    ],
)
def test_an_unknown_key_or_a_wrong_type_names_file_key_and_the_known_keys(
    write: Write, line: str, key: str
) -> None:
    root = write(f"[tool.goldens]\n{line}\n")
    with pytest.raises(ConfigError) as raised:
        config.load(root)
    assert str(raised.value).startswith(f"{root / 'pyproject.toml'}: [tool.goldens] {key}")
    for name in config.KEYS:
        assert name in str(raised.value)


@pytest.mark.parametrize("bound", ["1e30", "0.11"])
def test_a_tolerance_that_would_check_nothing_is_refused_with_the_way_out(write: Write, bound: str) -> None:
    root = write(f"[tool.goldens]\ntolerances = {{ tosa-int = {bound} }}\n")
    with pytest.raises(ConfigError, match=r"of tosa-int is more than 0\.1 of the largest value.*imprecise="):
        config.load(root)
    assert config.load(write("[tool.goldens]\ntolerances = { tosa-int = 0.1 }\n")).tolerances == {
        "tosa-int": 0.1
    }


@pytest.mark.parametrize("text", ["[tool.goldens", "tool = 1", "[tool]\ngoldens = 3\n"])
def test_a_file_that_cannot_be_read_is_named(write: Write, text: str) -> None:
    root = write(text)
    with pytest.raises(ConfigError, match=r"pyproject\.toml: "):
        config.load(root)


def test_a_release_that_is_not_supported_and_a_target_that_there_is_not_are_named() -> None:
    release = releases.load().release("1.4.1")
    require_supported(release, ())
    require_supported(release, ("1.3.1", "1.4.1"))
    with pytest.raises(
        UsageError, match=r"releases: 1\.4\.1 is installed, and the repository supports 1\.3\.1"
    ):
        require_supported(release, ("1.3.1",))
    with pytest.raises(
        UsageError, match=r"\[tool\.goldens\] tolerances: there is no target 'tosa-in'; known: tosa-fp"
    ):
        require_targets(["tosa-int", "tosa-in"], "[tool.goldens] tolerances")


# A repository of someone else's


@pytest.fixture
def theirs(write: Write) -> Path:
    """A repository with a package `models` of its own, with one name of this project's zoo."""
    root = write('[tool.goldens]\nmodels = ["models"]\ntargets = ["xnnpack-fp32"]\n')
    (root / "models").mkdir()
    (root / "models" / "__init__.py").write_text(
        "from executorch_goldens import case\n"
        "@case(guards='nothing')\ndef linear(data): ...\n"
        "@case(guards='nothing')\ndef two_delegates(data): ...\n"
    )
    return root


def collect(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # This checkout is on the path, and its models with it.
    command = [*GOLDENS, "run", "--collect-only", "-q", *arguments]
    return ended(command, folder, PYTHONPATH=str(REPOSITORY))


@pytest.mark.parametrize("folder", ["", "docs"])
def test_a_repositorys_own_models_are_found_from_any_of_its_folders_and_its_tests_are_not_imported(
    theirs: Path, folder: str
) -> None:
    for name in ("docs", "tests"):
        (theirs / name).mkdir()
    (theirs / "tests" / "conftest.py").write_text("import a_package_that_only_tests_have\n")
    found = collect(theirs / folder)
    assert "[xnnpack-fp32/linear]" in found.stdout, found.stdout
    assert "[xnnpack-fp32/two-delegates]" in found.stdout
    assert "2 tests collected" in found.stdout


def test_nothing_but_the_harness_can_be_imported_from_where_the_harness_is(tmp_path: Path) -> None:
    (tmp_path / "executorch_goldens").symlink_to(REPOSITORY / "harness" / "executorch_goldens")
    (tmp_path / "beside_it.py").write_text("")
    code = "import importlib.util; print(executorch_goldens.__file__, importlib.util.find_spec('beside_it'))"
    command = with_harness(default_interpreter(), code, tmp_path)
    found = ended(command, tmp_path, env=worker_environment(default_interpreter(), 0))
    assert found.stdout.split() == [str(tmp_path / "executorch_goldens" / "__init__.py"), "None"]


# The options of a run


def test_options_go_over_the_keys_of_the_same_name_and_no_other_key_has_the_name_of_one() -> None:
    keys = {field.name for field in dataclasses.fields(Config)}
    gone_over = {"models", "goldens", "variations", "patches", "jobs", "sweeps"}
    assert options.DECLARED.keys() & keys == gone_over


def test_a_limit_of_memory_is_a_number_that_messages_to_exporting_processes_hold(write: Write) -> None:
    read = config.load(write('[tool.goldens]\nexport-memory = "3GiB"\n'))
    assert (type(read.export_memory), read.export_memory) == (int, 3 * 2**30)
