"""A golden: a file ``<root>/<target>/<case>.txt``, and how it is read and written.

`executorch_goldens.goldens.record` has the form of the file. It ends its facts with a digest over every section and
every fact, so that a damaged or hand-edited golden is not taken for a changed artifact. What all goldens of a release
share is in ``<root>/release.toml``. Files are replaced whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from executorch_goldens.artifact import Cell
from executorch_goldens.errors import FileError
from executorch_goldens.files import durable, merging, untrusted
from executorch_goldens.files.untrusted import UntrustedError
from executorch_goldens.goldens import program
from executorch_goldens.goldens.record import FAILURE, FORMAT, GRAPH, PROGRAM, Record, RecordError, version

#: Fact with the digest of the payloads and the program that holds on every architecture
#: (`executorch_goldens.decode.layout`).
LAYOUT = "layout"

#: Fact that names the architectures for which the digests of the payloads and the program hold; without it they hold
#: on `FIRST`. Where they are different on a further one, ``digests <architecture>`` has its own.
DIGESTS = "digests"
FIRST = "x86-64"

#: Prefix of the fact of a data file.
DATA = "data "
#: Fact that says how a program was made that its case made by itself, and what is not known of it.
RECIPE = "recipe"

#: The file in a release's folder with the facts that its goldens share.
RELEASE = "release.toml"
#: Ends the name of a golden.
SUFFIX = ".txt"
#: Ends the name of the file beside an artifact that a run left, with the whole text of its program.
WHOLE = ".pte-text"


class GoldenError(FileError):
    """A golden that cannot be used as it is."""


class ConflictError(GoldenError):
    """A golden that git could not merge, and left as it is on neither side."""


class UnwritableError(GoldenError):
    """A golden cannot be written or deleted; the existing one may still be fine."""


def file_of(root: Path, cell: Cell) -> Path:
    """Return the file of the golden of `cell` under `root`; raise GoldenError for a path that leads elsewhere."""
    require_no_link(root)
    try:
        return untrusted.inside(root, cell.target, f"{cell.case}{SUFFIX}")
    except UntrustedError as error:
        raise GoldenError(root, str(error), "Move it away, or give the cell a name of its own.") from error


def require_no_link(root: Path) -> None:
    """Raise GoldenError where the folder of a release leads elsewhere."""
    if root.is_symlink():
        raise GoldenError(root, "is a link, which is not followed", "Put the folder itself there.")


def shared(folder: Path) -> Mapping[str, str]:
    """Return the facts that the goldens in a release's folder share; raise GoldenError."""
    path = folder / RELEASE
    try:
        state = path.lstat()
    except OSError:
        return {}
    return _shared(path, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=16)
def _shared(path: Path, *_state: int) -> Mapping[str, str]:
    try:
        found = untrusted.toml_of(untrusted.text(path, untrusted.LARGEST_TOML))
    except (OSError, ValueError) as error:
        raise GoldenError(path, f"cannot be read ({error})", f"{merging.bring_back(path, '')}.") from error
    if odd := [name for name, value in found.items() if not isinstance(value, str)]:
        raise GoldenError(path, f"{odd[0]} is no string", f"{merging.bring_back(path, '')}.")
    return found


def read(path: Path) -> Record | None:
    """Read the golden in file `path`; None if there is none.

    Of an artifact that a run left, the whole text of the program is read as well.

    Raises
    ------
    GoldenError
        A format other than `FORMAT`, damage, or a hand edit.
    """
    try:
        text = untrusted.text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise GoldenError(path, f"cannot be read ({error})", _again(path)) from error
    try:
        return _whole(path, text)
    except GoldenError as error:
        if conflict := merging.conflict(text):
            raise ConflictError(path, conflict, merging.WAY_OUT) from error
        if why := untrusted.line_ends(text, path):
            raise GoldenError(path, *why) from error
        raise


def _again(path: Path) -> str:
    # Whether or not the damage is committed.
    return (
        f"Find the commit before the damage with 'git log -- {path}' and bring it back with "
        f"'git checkout COMMIT -- {path}', or delete the file and record it again."
    )


def _whole(path: Path, text: str) -> Record:
    found = version(text)
    if found is None:
        raise GoldenError(path, f"line 1: a golden begins with 'golden: {FORMAT}'", _again(path))
    if found != FORMAT:
        age = "newer than this harness knows" if found > FORMAT else "older than this harness reads"
        way_out = (
            "Use the harness that wrote it, or a later one; this one leaves it alone."
            if found > FORMAT
            else "Delete the file and record it again with --snapshot-update."
        )
        raise GoldenError(path, f"format {found} is {age} ({FORMAT})", way_out)
    try:
        record = Record.parse(text, shared(path.parent.parent), path)
    except RecordError as error:
        raise GoldenError(path, str(error), _again(path)) from error
    if "variations" not in record.facts:
        raise GoldenError(path, "does not say variations", _again(path))
    if FAILURE not in record.sections and GRAPH not in record.sections:
        raise GoldenError(path, f"has neither {GRAPH} nor {FAILURE}", _again(path))
    with contextlib.suppress(OSError, ValueError):
        whole = untrusted.text(path.with_suffix(WHOLE))
        if program.is_of(whole, record.sections.get(PROGRAM, "")):
            return dataclasses.replace(record, whole=whole)
    return record


def write(path: Path, record: Record, *, kept: bool = False) -> None:
    """Replace the golden in file `path`, whole or not at all; raise GoldenError.

    Parameters
    ----------
    kept
        Whether it is an artifact that a run leaves: with the whole text of its program in a file beside it.
    """
    text = record.text(shared(path.parent.parent))
    try:
        durable.replace(path, text)
        if kept and record.whole is not None:
            durable.replace(path.with_suffix(WHOLE), record.whole)
    except OSError as error:
        what = f"cannot be written ({error})"
        raise UnwritableError(path, what, "Make room for it, then record it again.") from error


def recover(root: Path) -> None:
    """Delete what interrupted writes left under `root`.

    Only for runs that hold the lock of `root`: without it, a different run may be writing there.
    """
    for folder in (root, *root.glob("*/")):
        durable.delete_left_over(folder)


def recorded(root: Path) -> Iterator[Cell]:
    """Yield the cells that have a golden under `root`, sorted; hidden files and folders hold none."""
    files = sorted(root.glob(f"*/*{SUFFIX}"))
    yield from (
        Cell(path.parent.name, path.name.removesuffix(SUFFIX))
        for path in files
        if not path.name.startswith(".") and not path.parent.name.startswith(".")
    )
