"""The files that a repository with goldens begins with: their text, and writing all of them or none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from executorch_goldens.errors import UsageError
from executorch_goldens.settings import config
from executorch_goldens.zoo.registry import NAME_PATTERN
from executorch_goldens_plugins.start.model import Input, ModelName

#: Module of the first zoo.
ZOO = "goldens_zoo"
COMMENT = Path(".github/workflows/goldens-comment.yml")
#: Written files that are new, each with its template.
TEMPLATES: Mapping[Path, str] = {
    Path(f"{ZOO}.py"): "zoo.py.jinja",
    Path("noxfile.py"): "noxfile.py.jinja",
    Path(".github/workflows/goldens.yml"): "workflow.yml.jinja",
    COMMENT: "comment.yml.jinja",
}
#: Names that the function of a case has for other things.
LOCALS = ("Data", "Example", "case", "data", "inputs", "model", "torch")
#: Untracked files that runs leave in a repository, in git's words.
IGNORED = ("build/", ".nox/", ".venv/", "__pycache__/", "goldens/**/.*.lock")


@dataclass(frozen=True)
class StarterFiles:
    """The sources of the generated files.

    Attributes
    ----------
    has_own_weights
        Whether the model keeps its own weights.
    harness
        The requirement that installs this project.
    python
        Version of Python that the workflow sets up: it has wheels of what exports.
    """

    model: ModelName
    inputs: tuple[Input, ...]
    has_own_weights: bool
    targets: tuple[str, ...]
    toolchain: str
    harness: str
    python: str

    @property
    def case(self) -> str:
        """Name of the case: ``WakeWord`` is ``wake-word``."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", "-", self.model.name)
        name = words.strip("-").lower()
        return name if NAME_PATTERN.fullmatch(name) else "model"

    def texts(self, folder: Path) -> dict[Path, str]:
        """Return the text of each file by its path in `folder`, without those that are there; raise UsageError."""
        settings = folder / config.FILE
        before = settings.read_text(encoding="utf-8") if settings.exists() else ""
        read = tomllib.loads(before)
        own = read.get("tool", {}).get("goldens")
        # Requirements of the models besides a release may be listed already.
        if (folder / f"{ZOO}.py").exists() or (own is not None and own.keys() != {"environment"}):
            raise UsageError(f"{folder} has {ZOO}.py or [tool.goldens] already: add your model there")
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent),
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
        )
        function = self.case.replace("-", "_")
        is_taken = self.model.name in (*LOCALS, function)
        values = {
            **vars(self),
            "zoo": ZOO,
            "function": function,
            "comment": COMMENT.name,
            "is_project": "project" in read,
            "has_environment": own is not None,
            "made": f"make_{self.model.name}" if is_taken else self.model.name,
            "uses_torch": any("torch." in each.code for each in self.inputs),
        }
        table = environment.get_template("settings.toml.jinja").render(values)
        texts = {Path(config.FILE): with_table(settings, before, table), **ignoring(folder)}
        new = {path: name for path, name in TEMPLATES.items() if not (folder / path).exists()}
        return texts | {path: environment.get_template(name).render(values) for path, name in new.items()}


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
