"""The environment of a release has the files that its packages list, or is not used."""

from __future__ import annotations

import base64
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from executorch_goldens.cli import ERROR
from executorch_goldens.settings import releases
from executorch_goldens.sweep import facts
from executorch_goldens.toolchains import environments as made_by_uv
from executorch_goldens.toolchains import interpreters, records
from executorch_goldens.toolchains.environments import Environments, Layer
from executorch_goldens.toolchains.naming import Name, Sources
from executorch_goldens.toolchains.records import EditedError
from executorch_goldens.toolchains.sources import laid_over
from tests import REPOSITORY
from tests.support.commands import GOLDENS, ended

SITE = Path("lib", "python3.11", "site-packages")
LIST = SITE / "executorch-1.5.1.dist-info" / "RECORD"
FILES = {
    "executorch/exir/a.py": "a = 1\n",
    "executorch/edge, all.yaml": "one\n",
    "executorch/lib.so": "binary\n",
}
TORCH = {"torch/b.py": "b = 1\n", "torch/lib.so": "binary\n"}


def install(site: Path, package: str, files: dict[str, str], cache: Path) -> None:
    """Install a package as uv does: by links to a cache, with a list of its files."""
    rows = [f"{package}/__pycache__/x.pyc,,", f"{package}-1.5.1.dist-info/RECORD,,"]
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f'"{name}",sha256={digest},{len(text)}')
        for folder in (cache, site):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text(text)
        os.link(cache / name, site / name)
    # Of two packages with one program, that of the later is there.
    rows.append("../../../bin/flatc,sha256=rzzDirpLKKg9fBwoyG54ygqbKQNTDG_8MGUKy6w91CY,366")
    record = site / f"{package}-1.5.1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("\n".join(rows) + "\n")


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    """Environments of two small packages, which come from the folder ``cache``."""

    def make(self: made_by_uv._Maker) -> None:
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        for package, files in {"executorch": FILES, "torch": TORCH}.items():
            install(self.aside / SITE, package, files, tmp_path / "cache" / package)

    monkeypatch.setattr(made_by_uv._Maker, "_venv", make)
    monkeypatch.setattr(made_by_uv._Maker, "_uv", lambda self, *words, **options: None)
    monkeypatch.setattr(made_by_uv, "torch_backend", lambda: (None, "not asked"))
    # Files of a test are younger than what is remembered.
    monkeypatch.setattr(facts, "SETTLED_NS", 0)
    return Environments(tmp_path / "environments", lambda line: None)


def made(environments: Environments) -> Path:
    return environments.made(Name.parse("1.5.1"))


def edit(file: Path, text: str) -> None:
    """Write in place another text, as long as the one that is there, and put its time back."""
    state = file.stat()
    assert len(text) == state.st_size
    file.write_text(text)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    # Clocks of file systems tick.
    while file.stat().st_ctime_ns == state.st_ctime_ns:
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def saved(file: Path, text: str) -> None:
    """Write a new file in the place of an old one, as most editors do."""
    file.with_suffix(".new").write_text(text)
    file.with_suffix(".new").replace(file)


EDITS: dict[str, tuple[Path, Callable[[Path], object], str]] = {
    "in place": (SITE / "executorch/exir/a.py", lambda file: edit(file, "a = 2\n"), "executorch"),
    "by an editor": (SITE / "executorch/exir/a.py", lambda file: saved(file, "a = 22\n"), "executorch"),
    "of no Python": (SITE / "executorch/edge, all.yaml", lambda file: edit(file, "two\n"), "executorch"),
    "a library": (SITE / "executorch/lib.so", lambda file: edit(file, "BINARY\n"), "executorch"),
    "deleted": (SITE / "executorch/exir/a.py", Path.unlink, "executorch"),
    "of torch": (SITE / "torch/b.py", lambda file: edit(file, "b = 2\n"), "torch"),
    "the list deleted": (LIST, Path.unlink, "executorch"),
    "the list damaged": (LIST, lambda file: file.write_bytes(b"x,sha256=\xff,1\n"), "executorch"),
    "the list cut": (LIST, lambda file: os.truncate(file, file.stat().st_size - 5), "executorch"),
    "the list emptied": (LIST, lambda file: os.truncate(file, 0), "executorch"),
}


@pytest.mark.parametrize("how", EDITS)
def test_a_file_that_differs_from_what_was_published_is_named_with_a_way_out_that_works(
    how: str, environments: Environments
) -> None:
    name, change, package = EDITS[how]
    place = made(environments)
    assert made(environments) == place
    change(place / name)
    for _ in range(2):
        with pytest.raises(EditedError) as raised:
            made(environments)
        assert raised.value.files == {place / name: package}
    assert str(raised.value).startswith(f"edited: {place / name}: ")
    assert "in the environment of '1.5.1'" in str(raised.value)
    assert (
        raised.value.remedy
        == f"goldens env remove {place.name} && {interpreters.find_uv()} cache clean {package}"
    )
    environments.remove(environments.there()[place.name])
    assert not list(environments.folder.glob("*.digests"))
    assert made(environments) == place


def test_what_packages_do_not_list_or_a_different_one_may_replace_is_not_compared(
    environments: Environments,
) -> None:
    place = made(environments)
    py_compile.compile(str(place / SITE / "executorch/exir/a.py"))
    (place / SITE / "executorch/exir/generated.py").write_text("")
    (place / "bin").mkdir()
    (place / "bin/flatc").write_text("of tosa-tools")
    # A gigabyte.
    edit(place / SITE / "torch/lib.so", "BINARY\n")
    assert made(environments) == place


def test_a_file_is_read_once_and_again_after_it_changed(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = made(environments)
    read = []

    def digest(file: object, algorithm: str) -> object:
        read.append(Path(file.name).name)  # type: ignore[attr-defined]
        return hashlib.sha256(file.read())  # type: ignore[attr-defined]

    monkeypatch.setattr(hashlib, "file_digest", digest)
    made(environments)
    assert read == []
    os.link(place / SITE / "torch/b.py", place / "further name")
    edit(place / SITE / "executorch/exir/a.py", "a = 1\n")
    made(environments)
    assert sorted(read) == ["a.py", "b.py"]


def test_several_that_start_at_once_find_the_same_and_leave_a_memory_that_is_whole(
    environments: Environments,
) -> None:
    place = made(environments)
    (memory,) = environments.folder.glob("*.digests")
    memory.write_bytes(b"\x81half")
    edit(place / SITE / "executorch/exir/a.py", "a = 3\n")
    found: list[Path] = []

    def ask() -> None:
        with pytest.raises(EditedError) as raised:
            made(environments)
        found.extend(raised.value.files)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [place / SITE / "executorch/exir/a.py"] * 4
    assert len(facts.Digests(memory).known) == 4


def test_an_edit_in_place_reaches_no_cache_of_uv_and_what_nobody_edits_is_no_copy(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "COPIED", len("binary\n"))
    site = made(environments) / SITE
    links = {name: (site / name).stat().st_nlink for name in (*FILES, *TORCH)}
    assert {name for name, count in links.items() if count > 1} == {"executorch/lib.so", "torch/lib.so"}


def test_a_checkout_over_a_release_is_compared_with_both(environments: Environments, tmp_path: Path) -> None:
    below = made(environments)
    checkout = tmp_path / "checkout"
    (checkout / "exir").mkdir(parents=True)
    (checkout / "exir" / "a.py").write_text("a = 5\n")
    (checkout / "exir" / "new.py").write_text("n = 6\n")

    def over() -> Path:
        return laid_over(environments, made(environments), Sources(checkout))

    above = over()
    assert above != below
    assert over() == above
    for name, text in {
        "executorch/exir/a.py": "a = 1\n",
        "executorch/exir/new.py": "n = 1\n",
        "executorch/edge, all.yaml": "two\n",
        "torch/b.py": "b = 2\n",
    }.items():
        saved(above / SITE / name, text)
        with pytest.raises(EditedError) as raised:
            over()
        assert [*raised.value.files] == [above / SITE / name]
        assert raised.value.remedy == f"goldens env remove {above.name}"
        environments.remove(above)
        assert over() == above
    # In place, of what both have.
    edit(above / SITE / "torch/b.py", "b = 3\n")
    with pytest.raises(EditedError) as raised:
        over()
    assert [*raised.value.files] == [below / SITE / "torch/b.py"]


def environment_in(cache: Path, repository: Path, release: str) -> Path:
    """Let the environment of these tests be what a release's name gives there."""
    matrix = releases.load()
    python = ".".join(map(str, sys.version_info[:2]))
    content = made_by_uv._content(Name.parse(release), Layer((), repository), matrix, (), python)
    place = cache / "executorch-goldens" / made_by_uv.FOLDER / f"{release}-{made_by_uv._digest(content)}"
    place.parent.mkdir(parents=True)
    # No link to it: what a link leads to is a fact of exports.
    shutil.copytree(sys.prefix, place, symlinks=True, copy_function=os.link)
    return place


@pytest.mark.slow
def test_with_an_edited_environment_nothing_is_exported(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    build = REPOSITORY / "build"
    build.mkdir(exist_ok=True)
    (tmp_path / "pyproject.toml").write_text('[tool.goldens]\nmodels = ["zoo"]\n')
    # Links to the files of this environment: on its file system, and none is written to.
    cache = build / f"edited-{os.getpid()}"
    try:
        place = environment_in(cache, tmp_path, release)

        def make() -> subprocess.CompletedProcess[str]:
            return ended([*GOLDENS, "env", "make", release], tmp_path, XDG_CACHE_HOME=str(cache))

        done = make()
        assert (done.returncode, done.stdout.strip()) == (0, str(place / "bin" / "python")), done.stderr
        (file,) = place.glob("lib/python*/site-packages/executorch/exir/memory_planning.py")
        saved(file, file.read_text() + "\n")
        done = make()
        assert (done.returncode, done.stdout) == (ERROR, "")
        assert done.stderr.startswith(f"goldens: edited: {file}: ")
    finally:
        shutil.rmtree(cache, ignore_errors=True)
