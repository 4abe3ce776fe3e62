"""Reads files of unknown origin, and displays their content safely: harness/lab/docs/supply-chain.md.

No link is followed, no device is read, and no more is read than a file of its kind may hold. A name that was read makes
a path only by `inside`. What a terminal or a CI service would obey is shown as text.
"""

from __future__ import annotations

import codecs
import html
import json
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: Bytes that a text may have.
LARGEST_TEXT = 16 << 20
#: Bytes that a configuration may have: TOML's parser is slow, and a person writes it.
LARGEST_TOML = 1 << 20
#: Brackets within brackets that JSON may have. No file of this project has more than 6.
DEEPEST = 64

#: The longest name: what the shortest limit of a file system leaves for a suffix of ours (255 bytes on most).
LONGEST_NAME = 200
#: Names of cases, targets, releases, variations and files.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
#: Names that Windows gives to devices, whatever suffix they have ("Naming Files, Paths, and Namespaces").
DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)

#: Characters that move a cursor, colour, ring, or turn the direction of writing: controls but for tabs and newlines
#: (ECMA-48, 5.2 to 5.4), marks of direction (UAX #9, 2.1 to 2.7), separators that some take for ends of lines, and
#: surrogates.
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: Commands that a job of GitHub Actions obeys: at the beginning of a line, or in the older form anywhere in it.
COMMAND = re.compile(r"^(\s*):(?=:)|##(?=\[)", re.MULTILINE)


class UntrustedError(ValueError):
    """A file or a name that is not used; the message says why. Readers say which file it was, and the way out."""


def contents(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    UntrustedError
        If it is a link or no file, or has more than `most` bytes.
    OSError
        If it cannot be read.
    """
    if path.is_symlink():
        raise UntrustedError(f"{path.name} is a link, which is not followed")
    # A pipe would be waited for.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise UntrustedError(f"{path.name} is no file")
        if state.st_size > most:
            raise UntrustedError(
                f"{path.name} has {state.st_size:,} bytes, more than the {most:,} of such a file"
            )
        # Not `most`: memory for that would be taken first.
        return file.read(state.st_size)


def text(path: Path, most: int = LARGEST_TEXT) -> str:
    """Return the text of a file; raises as `contents`, and ValueError unless it is UTF-8 without a byte-order mark."""
    read = contents(path, most)
    if read.startswith(codecs.BOM_UTF8):
        removed = f"sed -i '1s/^\\xef\\xbb\\xbf//' {shlex.quote(str(path))}"
        raise UntrustedError(f"it begins with a byte-order mark: {removed} removes it")
    return read.decode()


def line_ends(text: str, path: Path) -> tuple[str, str] | None:
    """Return that a text has the line ends of Windows, and the way out; None where it has none."""
    if "\r\n" not in text:
        return None
    file = shlex.quote(str(path))
    return (
        "has CRLF line ends, which a checkout of git made (core.autocrlf) or an editor",
        f"Write '* -text' into {path.parent}/.gitattributes, then: rm {file} && git checkout -- {file}",
    )


def json_of(source: str) -> Any:
    """Return the content of a JSON text; raise ValueError, also where it nests too deep.

    >>> json_of("[" * 65 + "]" * 65)
    Traceback (most recent call last):
    executorch_goldens.files.untrusted.UntrustedError: nests deeper than 64
    """
    try:
        value = json.loads(source)
    except RecursionError:
        raise UntrustedError(f"nests deeper than {DEEPEST}") from None
    layer, depth = [value], 0
    while layer := [
        item
        for each in layer
        if isinstance(each, list | dict)
        for item in (each.values() if isinstance(each, dict) else each)
        if isinstance(item, list | dict)
    ]:
        depth += 1
        if depth >= DEEPEST:
            raise UntrustedError(f"nests deeper than {DEEPEST}")
    return value


def toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raises as `text`, and ValueError unless it is TOML.

    It may be a link: a person's configuration may be elsewhere, and nothing of it is shown to others.
    """
    return toml_of(text(path.resolve(), LARGEST_TOML))


def toml_of(text: str) -> dict[str, Any]:
    """Return the content of a text; raise ValueError unless it is TOML."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UntrustedError("nests too deep") from None


def require_name(name: object) -> str:
    """Return a name that was read, if a file or folder may have it on every system; raise `UntrustedError`.

    >>> require_name("tosa-fp+cf"), require_name("linear.txt")
    ('tosa-fp+cf', 'linear.txt')
    >>> require_name("../etc")
    Traceback (most recent call last):
    executorch_goldens.files.untrusted.UntrustedError: '../etc' cannot be the name of a file or folder
    """
    fits = isinstance(name, str) and len(name) <= LONGEST_NAME and NAME.fullmatch(name)
    if not fits or not isinstance(name, str) or name.endswith(".") or DEVICES.fullmatch(name):
        raise UntrustedError(f"{name!r:.{LONGEST_NAME}} cannot be the name of a file or folder")
    return name


def require_names(names: Iterable[str]) -> None:
    """Raise `UntrustedError` unless all are names, and differ by more than upper and lower case.

    >>> require_names(["linear.txt", "Linear.txt"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    executorch_goldens.files.untrusted.UntrustedError: 'linear.txt' and 'Linear.txt' are one file where ...
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(require_name(name).casefold(), name)
        if other != name:
            raise UntrustedError(
                f"{other!r} and {name!r} are one file where upper and lower case are the same"
            )


def inside(root: Path, *names: str) -> Path:
    """Return the path below `root` that names give which were read; raise `UntrustedError`.

    Every name is one step down, and no step is a link.
    """
    path = root
    for name in names:
        path = path / require_name(name)
        if path.is_symlink():
            raise UntrustedError(f"{path} is a link, which is not followed")
    return path


def require_no_links(folder: Path) -> None:
    """Raise `UntrustedError` if there is a link in `folder`, at any depth."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(place, name)):  # noqa: PTH114, PTH118 - of thousands of files
                raise UntrustedError(f"{Path(place, name)} is a link: results hold none")


def escape_controls(words: str) -> str:
    r"""Return words with what a terminal would obey as text.

    >>> escape_controls("a\x1b[2Jb\tc\n")
    'a\\x1b[2Jb\tc\n'
    """
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), words)


def escape_ci(words: str) -> str:
    r"""Return words with what a terminal or a job of GitHub Actions would obey as text.

    >>> escape_ci("  ::error::x\n##[group]y")
    '  \\::error::x\n#\\#[group]y'
    """
    return COMMAND.sub(lambda match: "#\\#" if match[0] == "##" else f"{match[1]}\\:", escape_controls(words))


def markdown(words: str, most: int | None = None) -> str:
    r"""Return words as text in one line of Markdown, whatever Markdown or HTML is in them.

    Parameters
    ----------
    most
        Characters after which they are cut off.

    >>> markdown("<script> `x` |y| [z](u) @me http://a www.b")
    '&lt;script&gt; \\`x\\` \\|y\\| \\[z\\](u) @\u200bme http:\u200b//a www\u200b.b'
    """
    line = " ".join(escape_controls(words).split())
    short = line if most is None or len(line) <= most else f"{line[:most]}…"
    marked = re.sub(r"([\\`*_\[\]|#~!])", r"\\\1", html.escape(short, quote=False))
    # Nobody is called, no thread and no page is linked.
    return re.sub(r"@|:(?=//)|www(?=\.)", "\\g<0>\u200b", marked)
