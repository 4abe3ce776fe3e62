"""The files that a repository with goldens begins with: their text, and writing all of them or none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2
from packaging.requirements import Requirement

from executorch_goldens.errors import UsageError
from executorch_goldens.registry import NAME_PATTERN
from executorch_goldens.settings import config
from executorch_goldens.starting.inputs import Input
from executorch_goldens.starting.source import ModelName

#: Module of the first zoo.
ZOO = "goldens_zoo"
#: Optional parts, by name: their files, each with its template.
OPTIONAL: Mapping[str, Mapping[Path, str]] = {
    "nox": {Path("noxfile.py"): "noxfile.py.jinja"},
    "workflow": {
        Path(".github/workflows/goldens.yml"): "workflow.yml.jinja",
        Path(".github/workflows/goldens-comment.yml"): "comment.yml.jinja",
    },
}
#: Names that the function of a case has for other things.
LOCALS = ("Data", "Example", "Path", "case", "data", "inputs", "model", "state", "torch")
#: Untracked files that runs leave in a repository, in git's words.
IGNORED = ("build/", ".nox/", ".venv/", "__pycache__/", "goldens/**/.*.lock")


@dataclass(frozen=True)
class Beginning:
    """The sources of the generated files.

    Attributes
    ----------
    inputs
        Of the model; empty where something of the repository makes them.
    example
        ``MODULE:FUNCTION`` that makes them; empty where something else does.
    gives_inputs
        Whether what makes the model returns them beside it.
    guess
        The layer that they are guessed from, in words; empty where they are no guess.
    has_own_weights
        Whether the model keeps its own weights.
    entry
        The key of the checkpoint's entry that has the state; empty where it is the state itself.
    targets
        The targets of the model.
    toolchain
        Name of what exports it.
    harness
        The requirement that installs this project.
    python
        Version of Python that the workflow sets up: it has wheels of what exports.
    """

    model: ModelName
    inputs: tuple[Input, ...]
    targets: tuple[str, ...]
    toolchain: str
    harness: str
    python: str
    example: str = ""
    gives_inputs: bool = False
    guess: str = ""
    has_own_weights: bool = True
    entry: str = ""

    @property
    def case(self) -> str:
        """Name of the case: ``WakeWord`` is ``wake-word``."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", "-", self.model.name)
        name = words.strip("-").lower()
        if self.model.is_program:
            # As `executorch_goldens.exporting.files` calls it.
            name = self.model.name.lower().replace("_", "-")
        return name if NAME_PATTERN.fullmatch(name) else "model"

    def calls(self) -> dict[str, str]:
        """Return the case's names of the functions that make the model and its inputs, by ``MODULE:FUNCTION``."""
        taken = {*LOCALS, self.case.replace("-", "_")}
        names: dict[str, str] = {}
        for each in filter(None, (f"{self.model.module}:{self.model.name}", self.example)):
            name = each.partition(":")[2]
            names[each] = f"make_{name}" if name in taken | set(names.values()) else name
        return names

    def imports(self) -> list[str]:
        """Return the lines that import them."""
        lines = []
        for each, called in sorted(self.calls().items()):
            module, _, name = each.partition(":")
            lines.append(f"from {module} import {name}{f' as {called}' if called != name else ''}")
        return lines

    def texts(self, folder: Path, without: Iterable[str]) -> dict[Path, str]:
        """Return the text of each file by its path in `folder`; raise UsageError where one is there already."""
        settings = folder / config.FILE
        before = settings.read_text(encoding="utf-8") if settings.exists() else ""
        chosen = {} if self.model.is_program else {Path(f"{ZOO}.py"): "zoo.py.jinja"}
        for word, names in OPTIONAL.items():
            chosen |= {} if word in without else names
        require_absent(folder, chosen, before)
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent),
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
        )
        read = tomllib.loads(before)
        values = {
            **vars(self),
            "case": self.case,
            "zoo": "" if self.model.is_program else ZOO,
            "function": self.case.replace("-", "_"),
            "comment": list(OPTIONAL["workflow"])[1].name,
            "harness_with_results": with_extras(self.harness, "report"),
            "is_project": "project" in read,
            "has_environment": "environment" in read.get("tool", {}).get("goldens", {}),
            "imports": self.imports(),
            "made": self.calls()[f"{self.model.module}:{self.model.name}"],
            "given": self.calls().get(self.example, ""),
            "uses_torch": self.model.checkpoint is not None
            or any("torch." in each.code for each in self.inputs),
        }
        table = environment.get_template("settings.toml.jinja").render(values)
        texts = {Path(config.FILE): with_table(settings, before, table), **ignoring(folder)}
        return texts | {path: environment.get_template(name).render(values) for path, name in chosen.items()}


def with_extras(requirement: str, *extras: str) -> str:
    """Return a requirement that has some extras as well.

    >>> with_extras("executorch-goldens==0.1.0", "report")
    'executorch-goldens[report]==0.1.0'
    """
    wanted = Requirement(requirement)
    wanted.extras |= set(extras)
    return str(wanted)


def require_absent(folder: Path, paths: Iterable[Path], settings: str) -> None:
    """Raise UsageError where one of the files is there, or `settings` has the table."""
    tool = tomllib.loads(settings).get("tool", {})
    there = [str(path) for path in paths if (folder / path).exists()]
    # Requirements of the models besides a release may be listed already.
    is_begun = "goldens" in tool and tool["goldens"].keys() != {"environment"}
    there += [f"[tool.goldens] in {config.FILE}"] if is_begun else []
    if there:
        words = [word for word, names in OPTIONAL.items() if any(str(path) in there for path in names)]
        left = "".join(
            f"; --without {word} leaves {' and '.join(map(str, OPTIONAL[word]))} as before" for word in words
        )
        raise UsageError(f"{folder} has {', '.join(there)} already, and nothing is overwritten{left}")


def with_table(file: Path, before: str, table: str) -> str:
    """Return TOML with one more table at its end, all else byte for byte as it was; raise UsageError."""
    gap = "\n" if before.endswith("\n") else "\n\n"
    after = f"{before}{gap}{table}" if before else table
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f'{file} takes no table [tool.goldens] at its end ({error}): write "tool" as tables, not in one line'
        ) from error
    return after


def ignoring(folder: Path) -> dict[Path, str]:
    """Return the ``.gitignore`` of a folder with the lines of `IGNORED` that it lacks at its end; nothing for none."""
    path = Path(".gitignore")
    before = (folder / path).read_text(encoding="utf-8") if (folder / path).exists() else ""
    missing = [line for line in IGNORED if line not in before.splitlines()]
    gap = "\n" if before and not before.endswith("\n") else ""
    return {path: before + gap + "".join(f"{line}\n" for line in missing)} if missing else {}


def write(folder: Path, texts: Mapping[Path, str]) -> None:
    """Write all files, or none; raise UsageError."""
    aside = {path: folder / path.with_name(f".{path.name}.partial") for path in texts}
    before = {folder / path: (folder / path).read_bytes() for path in texts if (folder / path).exists()}
    made: list[Path] = []
    try:
        for path, text in texts.items():
            aside[path].parent.mkdir(parents=True, exist_ok=True)
            made.append(aside[path])
            aside[path].write_text(text, encoding="utf-8")
        # Existing files come last.
        for path in sorted(texts, key=lambda path: folder / path in before):
            aside[path].replace(folder / path)
            made.append(folder / path)
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
            if path in before:
                path.write_bytes(before[path])
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
