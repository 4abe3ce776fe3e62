"""A golden: the files that it has, and how they are read and written.

A golden is a directory ``<root>/<target>/<case>/`` of text files. ``manifest.txt`` names the format, the release's
stack and ends with a digest over every file and every other line, so that a damaged or hand-edited golden is not taken
for a changed artifact. Directories are replaced whole: written aside, then renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import FileError
from executorch_goldens.files import durable, untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens.goldens import merging

#: Version of the layout and of the text forms; raise it when an old golden can no longer be compared.
FORMAT = 2

MANIFEST = "manifest.txt"
FAILURE = "failure.txt"
TRACE = "trace.txt"
GRAPH = "graph.txt"

#: The parameters and buffers of the modules that a build names, with a digest of each.
MODEL = "model.txt"

#: Manifest field with the digest of the payloads and the program that holds on every architecture
#: (`executorch_goldens.decode.layout`).
LAYOUT = "layout"

#: Manifest field that names the architectures for which the digests of the payloads and the program hold; without it
#: they hold on `FIRST`. Where they are different on a further one, ``digests <architecture>`` has its own.
DIGESTS = "digests"
FIRST = "x86-64"

#: Prefix of the manifest's field of a data file.
DATA = "data "
#: Manifest field that says how a program was made that its case made by itself, and what is not known of it.
RECIPE = "recipe"

#: The manifest's last line holds the digest of everything else.
CONTENTS = "contents"

#: Manifest fields that every golden has.
NEEDED = ("variations", CONTENTS)

#: Suffixes of directories that are beside a golden only while it is being replaced.
ASIDE = durable.ASIDE
REPLACED = ".old~"

#: Number of reading attempts while a different run replaces the golden.
ATTEMPTS = 100

Texts = Mapping[str, str]


class GoldenError(FileError):
    """A golden, or a file of it, that cannot be used as it is."""


class ConflictError(GoldenError):
    """A golden that git could not merge, and left as it is on neither side."""


class UnwritableError(GoldenError):
    """A golden cannot be written or deleted; the existing one may still be fine."""


def sealed(texts: Texts) -> dict[str, str]:
    """Return `texts`, whose manifest has no digest yet, with the line that holds it."""
    return {**texts, MANIFEST: f"{texts[MANIFEST]}{CONTENTS}: sha256 {contents_digest(texts)}\n"}


def unsealed(texts: Texts) -> dict[str, str]:
    """Return `texts` without the last line of the manifest."""
    *lines, _ = texts[MANIFEST].splitlines(keepends=True) or [""]
    return {**texts, MANIFEST: "".join(lines)}


def contents_digest(texts: Texts) -> str:
    """Return the SHA-256, in hexadecimal, of `texts` without their digest: each file's name, length and text, sorted.

    Everything that a golden says is covered, the trace and the informative fields of the manifest included.
    """
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        data = text.encode()
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def digest(texts: Texts) -> str:
    """Return the digest in the manifest's last line, by which a golden is the same as another."""
    return fields(texts)[CONTENTS].removeprefix("sha256 ")


def directory(root: Path, cell: Cell) -> Path:
    """Return the directory of the golden of `cell` under `root`; raise GoldenError for a path that leads elsewhere."""
    require_no_link(root)
    try:
        return untrusted.inside(root, cell.target, cell.case)
    except UntrustedError as error:
        raise GoldenError(root, str(error), "Move it away, or give the cell a name of its own.") from error


def require_no_link(root: Path) -> None:
    """Raise GoldenError where the folder of a release leads elsewhere."""
    if root.is_symlink():
        raise GoldenError(root, "is a link, which is not followed", "Put the folder itself there.")


def read(path: Path) -> dict[str, str] | None:
    """Read the golden in directory `path`; None if there is none.

    While a different run replaces it, the golden is the one before or the one after, whole.

    Raises
    ------
    GoldenError
        A format other than `FORMAT`, damage, or a hand edit.
    """
    for _ in range(ATTEMPTS):
        before = _standing(path)
        try:
            texts = _read(path)
        except GoldenError:
            if _standing(path) == before:
                raise
        else:
            if texts is not None or _standing(path) == before:
                return texts
    return _read(path)


def _standing(path: Path) -> tuple[int, ...]:
    """Return the state that changes when a golden is replaced: inode and time of its directory and of its parent.

    A file system gives a new directory the inode of one that was just deleted; only its time is another.
    """
    found = []
    for place in (path, path.with_name(path.name + REPLACED)):
        try:
            status = place.stat()
            found += [status.st_ino, status.st_ctime_ns]
        except OSError:
            found += [0, 0]
    return tuple(found)


def _read(path: Path) -> dict[str, str] | None:
    replaced = path.with_name(path.name + REPLACED)
    if not path.exists() and replaced.is_dir() and not replaced.is_symlink():
        # Between the two renames of `write`, or after it was interrupted there: the golden is the one before.
        path = replaced
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            raise GoldenError(path, "is a file where a golden's directory should be", "Move it away.")
        return None
    try:
        texts = {file.name: untrusted.text(file) for file in sorted(path.iterdir())}
    except (OSError, ValueError) as error:
        raise GoldenError(path, f"cannot be read ({error})", _again(path)) from error
    return checked(path, texts)


def _again(path: Path) -> str:
    # Whether or not the damage is committed.
    return (
        f"Find the commit before the damage with 'git log -- {path}' and bring it back with "
        f"'git checkout COMMIT -- {path}', or delete the directory and record it again."
    )


def checked(path: Path, texts: dict[str, str], program: str = GRAPH) -> dict[str, str]:
    """Return the texts of a golden unchanged; raise GoldenError unless they are a golden.

    Parameters
    ----------
    program
        The text that a golden has where it is no failure.
    """
    try:
        return _whole(path, texts, program)
    except GoldenError as error:
        if conflict := merging.conflict(path, texts):
            raise ConflictError(path, conflict, merging.WAY_OUT) from error
        raise


def _whole(path: Path, texts: dict[str, str], program: str) -> dict[str, str]:
    again = _again(path)
    try:
        untrusted.require_names(texts)
    except UntrustedError as error:
        raise GoldenError(path, str(error), again) from error
    if MANIFEST not in texts:
        raise GoldenError(path, f"has no {MANIFEST}", again)
    manifest = fields(texts)
    version = manifest.get("format", "")
    if not re.fullmatch("[0-9]{1,9}", version):
        raise GoldenError(path / MANIFEST, f"format {version[:20]!r} is not a number", again)
    if int(version) > FORMAT:
        way_out = "Use the harness that wrote it, or a later one; this one leaves it alone."
        raise GoldenError(
            path / MANIFEST, f"format {version} is newer than this harness knows ({FORMAT})", way_out
        )
    if int(version) < FORMAT:
        way_out = "Delete the directory and record it again with --snapshot-update."
        raise GoldenError(path / MANIFEST, f"format {version} is older than {FORMAT}", way_out)
    if sealed(unsealed(texts)) != texts:
        raise GoldenError(
            path, "is damaged or was edited by hand: its content does not match its digest", again
        )
    if missing := [name for name in NEEDED if name not in manifest]:
        raise GoldenError(path / MANIFEST, f"does not say {', '.join(missing)}", again)
    if FAILURE not in texts and program not in texts:
        raise GoldenError(path, f"has neither {program} nor {FAILURE}", again)
    return texts


def fields(texts: Texts) -> dict[str, str]:
    """Return the fields of the manifest."""
    return dict(line.partition(": ")[::2] for line in texts[MANIFEST].splitlines())


def write(path: Path, texts: Texts) -> None:
    """Replace the golden of directory `path` whole: written aside, then renamed; raise GoldenError."""
    aside = path.with_name(path.name + ASIDE)
    replaced = path.with_name(path.name + REPLACED)
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        shutil.rmtree(replaced, ignore_errors=True)
    try:
        durable.make_folder(path.parent)
        aside.mkdir()
        for name, text in texts.items():
            durable.write_new(aside / name, text)
        durable.sync_folder(aside)
        if path.exists():
            path.rename(replaced)
        aside.rename(path)
        durable.sync_folder(path.parent)
    except OSError as error:
        _take_back(path)
        raise _unwritable(path, error) from error
    shutil.rmtree(replaced, ignore_errors=True)


def _take_back(path: Path) -> None:
    """Restore the golden after a `write` that failed, where the disk allows it."""
    replaced = path.with_name(path.name + REPLACED)
    with contextlib.suppress(OSError):
        if replaced.exists() and not path.exists():
            replaced.rename(path)
    shutil.rmtree(path.with_name(path.name + ASIDE), ignore_errors=True)


def _unwritable(path: Path, error: OSError) -> UnwritableError:
    return UnwritableError(path, f"cannot be written ({error})", "Make room for it, then record it again.")


def rewrite_manifest(path: Path, texts: Texts) -> None:
    """Replace the manifest of the golden in directory `path`, whose other files are those of `texts`, in one step."""
    aside = path.with_name(path.name + ASIDE)
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir()
        durable.write_new(aside / MANIFEST, texts[MANIFEST])
        (aside / MANIFEST).replace(path / MANIFEST)
        durable.sync_folder(path)
        aside.rmdir()
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise _unwritable(path, error) from error


def recover(root: Path) -> None:
    """Complete interrupted writes under `root`: a replaced golden without its successor comes back.

    Only for runs that hold the lock of `root`: without it, a different run may be writing there.
    """
    for replaced in root.glob(f"*/*{REPLACED}"):
        path = replaced.with_name(replaced.name.removesuffix(REPLACED))
        if path.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(path)
    for left_over in root.glob(f"*/*{ASIDE}"):
        shutil.rmtree(left_over)
    durable.delete_left_over(root)


def recorded(root: Path) -> Iterator[Cell]:
    """Yield the cells that have a directory under `root`, sorted.

    Other files, and hidden folders, are no goldens.
    """
    found = set()
    for path in root.glob("*/*"):
        # Between the two renames of `write`, the one that is replaced is the golden.
        name = path.name.removesuffix(REPLACED)
        hidden = name.startswith(".") or path.parent.name.startswith(".")
        if path.is_dir() and not hidden and not name.endswith(ASIDE):
            found.add((path.parent.name, name))
    yield from (Cell(target, case) for target, case in sorted(found))
