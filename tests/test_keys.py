"""Every ingredient of a key: once it changes, the key does. The environment is a real, empty one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent

import pytest

from harness import patches, registry
from harness.artifact import Cell
from harness.storage import environment, keys
from harness.storage.environment import Digests, Environment, Ingredients
from harness.storage.keys import Keys, different
from harness.sweeping.settings import Machine, Settings, worker_environment
from harness.variations import Variation

FILES = {
    "zoo_of_keys/__init__.py": "from zoo_of_keys import one, two\n",
    "zoo_of_keys/one.py": """
        from harness import case
        from zoo_of_keys.parts import Part

        class Own: pass

        @case(guards="a")
        def first(data): return Own, Part

        @case(guards="b")
        def second(data): return Part
    """,
    "zoo_of_keys/two.py": """
        from harness import case

        @case(guards="c")
        def third(data): return 3
    """,
    "zoo_of_keys/parts.py": "from nets_of_keys import Net as Part\n",
    "zoo_of_keys/weights.npz": "weights",
    "nets_of_keys.py": "class Net: path = 'table.csv'\n",
    "table.csv": "1,2",
}
INSTALLED = {
    "executorch/backends/arm/_passes/fold.py": "def fold(x):\n    return x + 1\n",
    "torch/lib/libtorch.so": "library",
    "executorch-1.4.1.dist-info/RECORD": "record",
}
FIRST = Cell("tosa-fp", "first")
PLAIN = Variation(0, 0)


@dataclass
class House:
    """A repository with a zoo, and an environment that exports it."""

    folder: Path
    python: Path
    site: Path
    settings: Settings
    variables: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str, site: bool = False) -> None:
        path = (self.site if site else self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def replace(self, name: str, old: str, new: str, site: bool = False) -> None:
        path = (self.site if site else self.folder) / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def environment(self, digests: Digests | None = None) -> Environment:
        variables = worker_environment(self.python, 0, self.settings.machine) | self.variables
        return Environment.of(self.python, variables, digests or Digests())

    def key(
        self,
        cell: Cell = FIRST,
        variation: Variation = PLAIN,
        further: Sequence[str] = (),
        **settings: object,
    ) -> Ingredients:
        changed = replace(self.settings, **settings)  # type: ignore[arg-type]
        return Keys(changed, self.environment()).of(cell, variation, further)


@pytest.fixture
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def house(tmp_path: Path, empty_python: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    site = next((empty_python.parent.parent / "lib").glob("python*")) / "site-packages"
    machine = Machine(paths=(tmp_path,))
    settings = Settings(empty_python, ("zoo_of_keys",), ("partition-order",), 2, 60.0, machine=machine)
    found = House(tmp_path, empty_python, site, settings)
    for name, text in FILES.items():
        found.write(name, text)
    for name, text in INSTALLED.items():
        found.write(name, text, site=True)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "CASES", registry.Registry())
    yield found
    for name in [name for name in sys.modules if name.partition(".")[0] in ("zoo_of_keys", "nets_of_keys")]:
        del sys.modules[name]


def test_nothing_changes_a_key_that_it_should_not(house: House) -> None:
    before = house.key()
    house.replace("zoo_of_keys/one.py", "return Part", "return Part, 2")
    house.replace("zoo_of_keys/two.py", "return 3", "return 4")
    house.write("README.md", "text")
    house.write("executorch/__pycache__/fold.pyc", "code", site=True)
    house.variables["EXECUTORCH_GOLDENS_CALLED_AS"] = "nox"
    assert house.key() == before
    # What must not matter but in the variation.
    assert house.key(jobs=1, limit=5.0) == before


Change = Callable[[House], Mapping[str, object] | None]

#: What is changed, the change, and how the ingredient is called that differs.
CHANGES: Mapping[str, tuple[Change, str]] = {
    "a line of an installed pass": (
        lambda house: house.replace("executorch/backends/arm/_passes/fold.py", "+ 1", "- 1", site=True),
        "installed executorch",
    ),
    "an installed library": (
        lambda house: house.write("torch/lib/libtorch.so", "another", site=True),
        "installed torch",
    ),
    "another version of a distribution": (
        lambda house: house.write("executorch-1.4.1.dist-info/RECORD", "newer", site=True),
        "installed executorch-1.4.1.dist-info",
    ),
    "one distribution more": (
        lambda house: house.write("acme/__init__.py", "", site=True),
        "installed acme",
    ),
    "the environment's flatc": (
        lambda house: (house.python.parent / "flatc").write_text("new") and None,
        "bin/flatc",
    ),
    "the case": (
        lambda house: house.replace("zoo_of_keys/one.py", "return Own", "return 1, Own"),
        "case zoo_of_keys.one",
    ),
    "a class of the case": (
        lambda house: house.replace("zoo_of_keys/one.py", "class Own: pass", "class Own: x = 1"),
        "case zoo_of_keys.one",
    ),
    "a module that the case imports": (
        lambda house: house.replace("zoo_of_keys/parts.py", "import", "import  "),
        "module zoo_of_keys.parts",
    ),
    "a module that such a module imports": (
        lambda house: house.replace("nets_of_keys.py", "class Net:", "class Net: x = 1;"),
        "module nets_of_keys",
    ),
    "the zoo's package": (
        lambda house: house.write("zoo_of_keys/__init__.py", "from zoo_of_keys import one\n"),
        "module zoo_of_keys",
    ),
    "a checkpoint beside the case": (
        lambda house: house.write("zoo_of_keys/weights.npz", "others"),
        "data zoo_of_keys/weights.npz",
    ),
    "a file that the source names": (lambda house: house.write("table.csv", "3"), "data table.csv"),
    "patches": (lambda house: {"patches": ()}, "patches"),
    "further patches": (lambda house: {"further": ("output-aliases",)}, "patches"),
    "shortcuts": (lambda house: {"shortcuts": ()}, "shortcuts"),
    "the variation": (lambda house: {"variation": Variation(4, 1)}, "variation"),
    "the target": (lambda house: {"cell": Cell("tosa-int", "first")}, "target"),
    "the tolerance": (lambda house: {"tolerances": {"tosa-fp": 0.5}}, "tolerance"),
    "what is kept": (lambda house: {"keep": 3}, "keep"),
    "whether it is executed": (lambda house: {"execute": False}, "execute"),
    "isolation": (lambda house: {"isolation": "fresh"}, "isolation"),
    "the kernels": (
        lambda house: {"machine": replace(house.settings.machine, capability="avx2")},
        "machine",
    ),
    "threads": (lambda house: {"machine": replace(house.settings.machine, threads=2)}, "machine"),
    "oneDNN": (lambda house: {"machine": replace(house.settings.machine, onednn=True)}, "machine"),
    "an environment variable of torch": (
        lambda house: house.variables.update(TORCH_SHOW="1"),
        "variable TORCH_SHOW",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_ingredient_changes_the_key(what: str, house: House) -> None:
    change, name = CHANGES[what]
    before = house.key()
    after = house.key(**(change(house) or {}))  # type: ignore[arg-type]
    assert name in different(before, after)
    assert keys.digest(before) != keys.digest(after)


def test_the_harness_processor_python_and_format_change_the_key(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = house.key()
    monkeypatch.setattr(environment, "processor", lambda: "another")
    monkeypatch.setattr(keys, "FORMAT", keys.FORMAT + 1)
    assert set(different(before, house.key())) == {"processor", "format"}
    assert dict(before)["python"].split()[0] == sys.version.split()[0]
    # What an export runs of the harness, and nothing of what judges it.
    names = dict(before)
    assert {"harness harness.exporting.export", "harness harness.patches.tosa_identity"} <= names.keys()
    assert {"harness harness.exporting.shortcuts.lazy_code", "harness harness.registry"} <= names.keys()
    assert "harness harness.judging.verdict" not in names


def test_a_line_of_the_exporting_harness_changes_the_key(house: House) -> None:
    root = house.folder / "copied"
    shutil.copytree(Path(keys.__file__).parent.parent, root / "harness")
    machine = replace(house.settings.machine, root=root)
    before = house.key(machine=machine)
    assert before == house.key()
    with (root / "harness" / "exporting" / "export.py").open("a") as file:
        file.write("# a line\n")
    assert different(before, house.key(machine=machine)) == ("harness harness.exporting.export",)


def test_a_patch_of_the_zoo_counts_with_its_module(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write("edits_of_keys.py", "def install(release): pass\n")
    import edits_of_keys  # type: ignore[import-not-found]

    edit = patches.Patch("edit", None, "an edit", {}, edits_of_keys.install)
    monkeypatch.setitem(patches.PATCHES, "edit", edit)
    before = house.key(patches=("edit",))
    house.replace("edits_of_keys.py", "pass", "return")
    assert different(before, house.key(patches=("edit",))) == ("module edits_of_keys",)
    del sys.modules["edits_of_keys"]


def test_an_editable_executorch_counts_where_it_stands(house: House) -> None:
    house.write("checkout/torchao/__init__.py", "a = 1\n")
    (house.site / "editable.pth").write_text(str(house.folder / "checkout"))
    before = house.key()
    house.write("checkout/torchao/__init__.py", "a = 2\n")
    assert different(before, house.key()) == ("elsewhere torchao",)


def test_a_key_notices_that_a_file_has_changed_since(house: House) -> None:
    found = Keys(house.settings, house.environment())
    found.of(FIRST, PLAIN)
    assert found.hold()
    house.write("nets_of_keys.py", "class Net: y = 1\n")
    assert not found.hold()


def test_digests_are_remembered_and_an_edit_in_place_is_noticed(tmp_path: Path) -> None:
    file, memory = tmp_path / "pass.py", tmp_path / "memory"
    file.write_text("one")
    os.utime(file, ns=(1, 1))
    first = Digests(memory)
    before = first.of(file)
    first.save()
    again = Digests(memory)
    assert again.known[str(file)][3] == before
    file.write_text("two")
    assert again.of(file) != before
    # A file this young may change again within the clock's grain: it is read anew.
    assert str(file) not in Digests(memory).known or again.known[str(file)][1] == 1


@pytest.mark.parametrize("damaged", [b"", b"\x93damaged", b"\x81\xa3a\xff\xff"])
def test_a_damaged_memory_of_digests_is_no_memory(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "memory").write_bytes(damaged)
    assert Digests(tmp_path / "memory").known == {}
