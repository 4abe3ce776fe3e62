"""``goldens diff``: how payloads, goldens, folders of goldens or releases differ."""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from executorch_goldens import plugins
from executorch_goldens.cli import DIFFERENT, SAME
from executorch_goldens.commands.payload_files import STANDARD, add_schemas, decode_named, read_payload
from executorch_goldens.decode.decoded import KIND
from executorch_goldens.diff.changes import DigestChanged
from executorch_goldens.diff.payloads import Differences, compare
from executorch_goldens.diff.values import ABSENT
from executorch_goldens.errors import CommandError
from executorch_goldens.goldens import equality, golden, program, record
from executorch_goldens.goldens.outline import Outline, OutlineError, outline
from executorch_goldens.goldens.record import PROGRAM, TRACE, Record
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import Forms, share
from executorch_goldens.zoo.registry import RELEASE

EXAMPLES = """\
examples:
  goldens diff before.tosa after.tosa
  goldens diff goldens/1.4.1/tosa-int/conv.txt delegate.tosa
  goldens diff goldens/1.4.1/tosa-int/conv.txt goldens/1.5.1/tosa-int/conv.txt
  goldens diff goldens/1.4.1/tosa-int goldens/1.5.1/tosa-int
  goldens diff 1.3.1 1.4.1 --cell 'tosa-int/*'

exit code: 0 the same, 1 different, 2 error
"""

#: Beginning of the text of a decoded payload.
_PAYLOAD = re.compile(KIND.pattern.encode() + rb" \d+ bytes\n")
#: Ends a line of a trace.
_FINGERPRINT = re.compile(r" [0-9a-f]+$", re.MULTILINE)
#: The forms of the command, and the options of each.
RELEASES, FOLDERS, FILES = "two releases", "two folders", "two files"
OPTIONS = {
    RELEASES: ("--cell", "--goldens"),
    FOLDERS: ("--limit", "--schemas"),
    FILES: ("--limit", "--schemas"),
}
#: Lines shown of files that only compare line by line.
LINES_SHOWN = 40


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "diff",
        description="Show how two payloads, goldens, or folders of goldens differ, by structure: a mere "
        "rename or move is one line. For two releases with goldens, report the changes from one to the other, "
        "an entry per cause with its cells, as Markdown.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", metavar="A", help="a payload, a golden, a folder, a release; - for stdin")
    parser.add_argument("after", metavar="B", help="the other one")
    parser.add_argument("--limit", type=int, metavar="N", help="write out at most N differences of a payload")
    add_schemas(parser)
    of_releases = parser.add_argument_group("of two releases")
    of_releases.add_argument("--cell", metavar="TARGET/CASE", default="*", help="only these cells; wildcards")
    share(of_releases.add_argument, "--goldens")
    further = plugins.forms("diff")
    for form in further.values():
        form.add_to(parser)
    options = OPTIONS | {name: form.OPTIONS for name, form in further.items()}
    parser.set_defaults(run=run, forms=Forms(options, form_of))


def run(arguments: argparse.Namespace) -> int:
    """Compare two files or folders and print the differences."""
    files = (arguments.before, arguments.after)
    form = form_of(arguments)
    if form == RELEASES:
        return _releases(arguments)
    if form in (further := plugins.forms("diff")):
        code: int = further[form].run(arguments)
        return code
    differs = False
    for heading, lines in _folders(arguments) if form == FOLDERS else _files(files, arguments):
        if not differs:
            # A difference is written ``A -> B``.
            for side, name in zip("AB", files, strict=True):
                print(f"{side}: {'standard input' if name == STANDARD else name}")
        differs = True
        if heading:
            print(heading)
        for line in lines:
            print(line)
    return DIFFERENT if differs else SAME


def form_of(arguments: argparse.Namespace) -> str:
    """Return which form two words are of; raise CommandError for a mixture, and for missing files."""
    # Releases are versions, and no files.
    names = (arguments.before, arguments.after)
    if all(RELEASE.fullmatch(name) and not Path(name).exists() for name in names):
        return RELEASES
    for name, form in plugins.forms("diff").items():
        if form.takes(arguments):
            return name
    if missing := [name for name in names if name != STANDARD and not Path(name).exists()]:
        verb = "is" if len(missing) == 1 else "are"
        raise CommandError(f"{' and '.join(missing)} {verb} missing: No such file or directory")
    folders = [name for name in names if name != STANDARD and Path(name).is_dir()]
    if len(folders) == 1:
        raise CommandError(f"{folders[0]} is a folder and the other is not: name two folders or two files")
    return FOLDERS if folders else FILES


def _releases(arguments: argparse.Namespace) -> int:
    """Print the changes from one release to the other, from their goldens alone."""
    # Files do not wait for what reads whole releases.
    from executorch_goldens.words.drift import Drift

    goldens = arguments.goldens or config.load().goldens
    for version in (arguments.before, arguments.after):
        if not (goldens / version).is_dir():
            # Compiled goldens, those of further zoos and the like are of no release.
            found = sorted(path.name for path in goldens.glob("[0-9]*") if path.is_dir())
            raise CommandError(
                f"no goldens of {version!r} under {goldens}: it has {', '.join(found) or 'none'}"
            )
    drift = Drift.between(goldens, arguments.before, arguments.after, arguments.cell)
    print("\n".join(drift.markdown()))
    return DIFFERENT if drift.entries else SAME


#: Differences: a heading and lines under it.
_Difference = tuple[str, Iterator[str]]
#: Names of the two files.
_Files = tuple[str, str]


def _folders(arguments: argparse.Namespace) -> Iterator[_Difference]:
    before, after = Path(arguments.before), Path(arguments.after)
    names = {path.relative_to(folder) for folder in (before, after) for path in folder.rglob("*.txt")}
    if not names:
        raise CommandError(f"neither {before} nor {after} holds a golden (*.txt)")
    for name in sorted(names):
        present = [(folder / name).is_file() for folder in (before, after)]
        if not all(present):
            yield f"{name}: only in {before if present[0] else after}", iter(())
            continue
        for heading, lines in _files((str(before / name), str(after / name)), arguments):
            yield f"{name}{heading and f': {heading}'}", lines


def _files(files: _Files, arguments: argparse.Namespace) -> Iterator[_Difference]:
    ours, theirs = (_load(file, arguments.schemas) for file in files)
    if isinstance(ours, Record) and isinstance(theirs, Record):
        yield from _goldens(ours, theirs, files, arguments.limit)
    else:
        one, other = _payload(ours, theirs, files[0]), _payload(theirs, ours, files[1])
        yield from _sections("", one, other, files, arguments.limit)


def _goldens(ours: Record, theirs: Record, files: _Files, limit: int | None) -> Iterator[_Difference]:
    """Yield the sections of two goldens that differ, then the facts: the sections explain their digests."""
    explained = False
    left, right = ours.beside(theirs).sections, theirs.beside(ours).sections
    for name in dict.fromkeys([*left, *right]):
        if name not in left or name not in right:
            yield f"{name}: only in {files[0] if name in left else files[1]}", iter(())
            continue
        one, other = _section(left[name], name, files[0]), _section(right[name], name, files[1])
        for found in _sections(name, one, other, files, limit):
            explained = True
            yield found
    if facts := list(_facts(ours, theirs, explained)):
        yield "facts", iter(facts)


def _payloads(differences: Differences, files: _Files, limit: int | None) -> Iterator[str]:
    """Yield the differences of two payloads, and after that in a digest the files that have the whole text."""
    lines = differences.lines(limit)
    if limit != 0 and isinstance(differences.changes[0], DigestChanged):
        # Nothing else of their content differs: below the verdict, it comes first.
        yield from itertools.islice(lines, 2)
        places = (Path(file).with_suffix(golden.WHOLE) for file in files)
        yield from (f"    its whole text: {place}" for place in places if place.is_file())
    yield from lines


def _section(text: str, name: str, file: str) -> Outline | str:
    """Return a section of a golden, of a trace without fingerprints."""
    if _PAYLOAD.match(text.encode()):
        return _outline(text, file)
    return _FINGERPRINT.sub("", text) if name == TRACE else text


def _facts(ours: Record, theirs: Record, explained: bool) -> Iterator[str]:
    """Yield the compared facts of two goldens that differ; digests alone only if no section explains them."""
    exact = [equality.compared(*pair) for pair in ((ours, theirs), (theirs, ours))]
    shown = [equality.without_digests(each).facts for each in exact]
    for name in dict.fromkeys([*exact[0].facts, *exact[1].facts]):
        one, other = (each.get(name, ABSENT) for each in shown)
        if one != other:
            yield f"  {name}: {one} -> {other}"
        elif not explained and exact[0].facts.get(name) != exact[1].facts.get(name):
            yield f"  {name}: different bytes"


def _load(name: str, schemas: str | None) -> Record | Outline | str:
    """Return a golden, a payload, or the text of another file."""
    data = read_payload(name)
    if record.version(data.decode(errors="replace")) is not None and name != STANDARD:
        found = golden.read(Path(name))
        assert found is not None
        return found
    if _PAYLOAD.match(data):
        return _outline(data.decode(), name)
    if name.endswith(".txt"):
        return data.decode(errors="replace")
    return outline(decode_named(data, name, schemas))


def _outline(text: str, name: str) -> Outline:
    try:
        return outline(text)
    except OutlineError as error:
        raise CommandError(f"{name} is no golden of this version: {error}") from error


def _payload(side: Record | Outline | str, other: Record | Outline | str, name: str) -> Outline | str:
    """Return a side; of a golden, the only section that is of the other side's kind; raise CommandError.

    Of a program that is compared with a golden, it is what a golden has of it.
    """
    if not isinstance(side, Record):
        if isinstance(other, Record) and isinstance(side, Outline) and side.kind == PROGRAM:
            return outline(program.section(side.text))
        return side
    kind = other.kind if isinstance(other, Outline) else ""
    of_kind = [text for text in side.sections.values() if kind and text.startswith(f"{kind} ")]
    of_kind = [text for text in of_kind if _PAYLOAD.match(text.encode())]
    if len(of_kind) != 1:
        raise CommandError(
            f"{name} is a golden with {len(of_kind)} sections of the other's kind, {kind or 'no payload'}"
        )
    return _outline(of_kind[0], name)


def _sections(
    heading: str, ours: Outline | str, theirs: Outline | str, files: _Files, limit: int | None
) -> Iterator[_Difference]:
    if isinstance(ours, Outline) and isinstance(theirs, Outline):
        differences = compare(ours, theirs)
        if not differences.same:
            yield heading, _payloads(differences, files, limit)
    elif isinstance(ours, Outline) or isinstance(theirs, Outline):
        raise CommandError(f"{' and '.join(files)} are not both goldens of payloads")
    elif ours != theirs:
        yield heading, _by_line(ours, theirs, files)


def _by_line(ours: str, theirs: str, files: _Files) -> Iterator[str]:
    """Yield the lines that differ of files that hold no decoded payload, such as a graph."""
    lines = difflib.unified_diff(ours.splitlines(), theirs.splitlines(), *files, lineterm="", n=1)
    yield from itertools.islice(lines, LINES_SHOWN)
    if next(lines, None) is not None:
        yield "..."
