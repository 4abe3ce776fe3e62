"""Committed results of the models, by release: ``kept/RELEASE.xz``.

Results of an operator are of models as they were when these were kept: where one of them is another one now, they are
left out. Models that came behind them change nothing.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from executorch_goldens.errors import HarnessError
from executorch_goldens.files import durable
from executorch_goldens.goldens.findings import Key
from executorch_goldens.settings import releases
from executorch_goldens_plugins.compare import calls
from executorch_goldens_plugins.compare.calls import CallModel
from lab.args import trying
from lab.args.trying import OUTCOMES, Tried

FOLDER = Path(__file__).with_name("kept")
FORMAT = 2
#: Bytes of an unpacked file that are read.
LARGEST = 1 << 26


class KeptError(HarnessError, ValueError):
    """Kept results that cannot be read; the message names the file and the way out."""

    def __init__(self, file: Path, what: str) -> None:
        super().__init__(f"{file} {what}; bring it back with 'git checkout -- {file}'")


class OfOperator(msgspec.Struct, frozen=True, array_like=True):
    """The results of the models of an operator.

    Attributes
    ----------
    digest
        Of the models that have a result.
    came
        The numbers of an outcome and of a finding, by the name of a model.
    """

    digest: str
    came: dict[str, tuple[int, int]]


class Kept(msgspec.Struct, frozen=True):
    """The content of a file; the first finding is the empty one."""

    format: int
    outcomes: tuple[str, ...]
    findings: tuple[Key, ...]
    operators: dict[str, OfOperator]


def file_of(release: str, folder: Path = FOLDER) -> Path:
    return folder / f"{release}.xz"


def digest(of_operator: Iterable[CallModel]) -> str:
    """Return a digest of models, without the releases that name their operator."""
    made = hashlib.sha256()
    for model in of_operator:
        made.update(msgspec.json.encode(msgspec.structs.replace(model, releases=())))
    return made.hexdigest()[:12]


def read(release: str, every: Iterable[CallModel], folder: Path = FOLDER) -> dict[str, Tried]:
    """Return the kept results of some models on a release, by name; none without a file; raise `KeptError`."""
    file = file_of(release, folder)
    if not file.is_file():
        return {}
    try:
        unpacker = lzma.LZMADecompressor(memlimit=1 << 28)
        kept = msgspec.json.decode(unpacker.decompress(file.read_bytes(), LARGEST), type=Kept)
    except (OSError, EOFError, lzma.LZMAError, msgspec.DecodeError) as error:
        raise KeptError(file, f"cannot be read ({error})") from error
    if kept.format != FORMAT:
        raise KeptError(file, f"has format {kept.format}, and this version reads {FORMAT}")
    named = {model.name: model for model in every}
    return {
        name: Tried(name, kept.outcomes[outcome], kept.findings[finding])
        for results in kept.operators.values()
        if results.digest == digest(named[name] for name in results.came if name in named)
        for name, (outcome, finding) in results.came.items()
    }


def encoded(results: Mapping[str, Tried], every: Iterable[CallModel]) -> bytes:
    """Return the content of the file of some results."""
    findings: dict[bytes, int] = {msgspec.json.encode({}): 0}
    operators = {}
    for operator, of_operator in sorted(calls.by_operator(every).items()):
        tried = [model for model in of_operator if model.name in results]
        came = {}
        for name in (model.name for model in tried):
            found = msgspec.json.encode(results[name].finding)
            came[name] = (OUTCOMES.index(results[name].outcome), findings.setdefault(found, len(findings)))
        if came:
            operators[operator] = OfOperator(digest(tried), came)
    kept = Kept(FORMAT, OUTCOMES, tuple(map(msgspec.json.decode, findings)), operators)
    return lzma.compress(msgspec.json.encode(kept), preset=9)


def keep(folder: Path = FOLDER) -> None:
    """Put what sessions found into the kept results, over those of before; print how many each release has."""
    every = calls.read().values()
    for release in releases.load().releases:
        known = read(release, every, folder)
        found = {each.model: each for each in trying.tried(trying.KEPT / release / trying.RESULTS)}
        if not found:
            continue
        made = encoded(known | found, every)
        durable.replace(file_of(release, folder), made)
        print(f"{release}: {len(known | found):,} results, {len(made):,} bytes")
