"""Goldens of the older form become a file each: a root whole, or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from executorch_goldens import cli
from executorch_goldens.goldens import golden, program, roots
from executorch_goldens.goldens.golden import GoldenError
from executorch_goldens.goldens.record import PROGRAM, Record

FACTS = (
    "format: 2\nexecutorch: 1.4.1\npatches: none\nshortcuts: collector\nvariations: seed0-heap0 seed4-heap1\n"
    "delegate 0: a B 4 bytes sha256 {digest}\nnumerics: equal\ntrace: sha256 {digest}\n"
)
TEXTS = {
    "graph.txt": "graph\n== a ==\n",
    "delegate_0.tosa.txt": "value\n  sha256 {digest}\n",
    "trace.txt": "x: y 0\n",
    "pte.txt": "pte 4 bytes\nversion = 0\ndata a: bytes[4]\n  sha256 {digest}\n",
}
DIGEST = "0123456789abcdef" * 4


def older(folder: Path, facts: str = FACTS) -> str:
    """Write a golden as 0.1.0 did; return its digest."""
    texts = {name: text.format(digest=DIGEST) for name, text in {**TEXTS, "manifest.txt": facts}.items()}
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(f"{name} {len(text)}\n{text}".encode())
    texts["manifest.txt"] += f"contents: sha256 {digest.hexdigest()}\n"
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return digest.hexdigest()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    for case in ("one", "two"):
        older(tmp_path / "1.4.1" / "tosa-fp" / case)
    older(tmp_path / "1.4.1" / "tosa-fp" / "three", FACTS.replace(" seed4-heap1", " seed9-heap0"))
    (tmp_path / roots.ZOO).write_text("format: 2\nmodels: mine\n")
    return tmp_path


def files(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def test_a_root_is_converted_and_says_what_was_done(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(GoldenError, match="goldens convert"):
        roots.check(root, ["mine"], updating=False)
    assert cli.main(["convert", "--goldens", str(root)]) == cli.SAME
    said = capsys.readouterr().out
    assert (
        "3 goldens in 15 files are 3 files now, each read again and equal; 1 depart from release.toml" in said
    )
    assert "shortcuts of 3" in said
    cases = [f"1.4.1/tosa-fp/{case}.txt" for case in ("one", "three", "two")]
    assert sorted(files(root)) == ["1.4.1/release.toml", *cases, "zoo.txt"]
    roots.check(root, ["mine"], updating=True)
    texts = golden.read(root / "1.4.1/tosa-fp/three.txt")
    assert texts.facts["variations"] == "seed0-heap0 seed9-heap0"
    assert (texts.texts()["graph"], texts.texts()["delegate_0.tosa"]) == (
        "graph\n== a ==\n",
        f"value\n  sha256 {DIGEST[:16]}\n",
    )
    assert texts.sections[PROGRAM] == program.section(
        f"pte 4 bytes\nversion = 0\ndata a: bytes[4]\n  sha256 {DIGEST[:16]}\n"
    )
    assert texts.program.facts.keys() == {program.TEXT}
    assert "variations" not in (root / "1.4.1/tosa-fp/one.txt").read_text()
    assert cli.main(["convert", "--goldens", str(root)]) == cli.SAME
    assert "nothing is older" in capsys.readouterr().out


def test_what_a_merge_brings_is_converted_again(root: Path) -> None:
    roots_before = files(root)
    cli.main(["convert", "--goldens", str(root)])
    converted = files(root)
    for name, content in roots_before.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    assert cli.main(["convert", "--goldens", str(root)]) == cli.SAME
    assert files(root) == converted


def test_nothing_is_converted_where_one_golden_is_damaged(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "1.4.1/tosa-fp/two/graph.txt").write_text("edited\n")
    before = files(root)
    assert cli.main(["convert", "--goldens", str(root)]) == cli.ERROR
    assert "two: is damaged, was edited by hand or left by a merge" in capsys.readouterr().err
    assert files(root) == before


def test_another_golden_of_the_same_cell_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden.write(root / "1.4.1/tosa-fp/two.txt", Record({"variations": "a"}, {"graph": "mine\n"}))
    before = files(root)
    assert cli.main(["convert", "--goldens", str(root)]) == cli.ERROR
    assert "is there as two.txt as well, and is another golden" in capsys.readouterr().err
    assert files(root) == before
