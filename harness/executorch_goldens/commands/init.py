"""``goldens init``: goldens in a repository that has none, up to the first one."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from executorch_goldens import releases, targets
from executorch_goldens.artifact import Cell
from executorch_goldens.cli import SAME
from executorch_goldens.errors import UsageError, some
from executorch_goldens.goldens import golden
from executorch_goldens.judging.updating import UPDATE
from executorch_goldens.running.selection import require_flatc
from executorch_goldens.settings import config
from executorch_goldens.settings.arguments import share, with_short
from executorch_goldens.settings.exports import worker_environment
from executorch_goldens.starting.files import OPTIONAL, ZOO, Beginning, write
from executorch_goldens.starting.inputs import is_example, stated
from executorch_goldens.starting.source import ModelName, model_named, models_of
from executorch_goldens.toolchains import handing, interpreters
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.toolchains.toolchain import Toolchain, chosen
from executorch_goldens.workers.worker import with_harness

if TYPE_CHECKING:
    from executorch_goldens.exporting.first import Guess

DISTRIBUTION = "executorch-goldens"
#: Ways to treat a model's weights.
KEPT = "its weights are kept (fill=False): they are the same each time it is made"
DRAWN = "its weights differ each time it is made, so the harness draws them; FILE:NAME@CHECKPOINT loads yours"


def add_to(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "init",
        description="Write [tool.goldens], a zoo with your model, a nox session and a workflow into the working "
        "directory, export the model once and record its first golden. Nothing is overwritten.",
    )
    parser.add_argument(
        "model",
        nargs="?",
        metavar="FILE[:NAME][@CHECKPOINT]",
        help="the class of your model, or a function that returns it, or it and its inputs; with a checkpoint, a file "
        "of its state_dict; or a .pt2, a program that torch.export made (default: the only class there is)",
    )
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--input",
        action="append",
        metavar="SHAPE[:DTYPE]",
        help="an input, e.g. 1,3,224,224 or 1,16:int64; repeatable (default: a guess from the model's first layer)",
    )
    given.add_argument(
        "--example", metavar="MODULE:FUNCTION", help="function that returns the tuple of the model's inputs"
    )
    parser.add_argument(
        "--target",
        action="append",
        metavar="TARGET",
        help="target to export for; repeatable (default: those of every case)",
    )
    share(
        with_short(parser.add_argument),
        "--toolchain",
        help="ExecuTorch release, e.g. 1.4.1 (default: the matrix's)",
    )
    parser.add_argument(
        "--harness",
        metavar="REQUIREMENT",
        help="requirement that installs this project in the session (default: its own origin)",
    )
    parser.add_argument(
        "--without", action="append", choices=list(OPTIONAL), default=[], help="do not write this; repeatable"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="take the defaults, ask nothing")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask, write, and record the first golden; return the exit code of that run."""
    toolchain = chosen(arguments.toolchain)
    if handing.is_needed(toolchain.python):
        words = ["init", *arguments.forwarded, *(["--harness", found] if (found := _own(arguments)) else [])]
        handing.over(toolchain.python, words, (), config.load())
    folder = Path.cwd()
    release, interpreter = toolchain.release, toolchain.python
    require_flatc(interpreter)
    beginning = beginning_of(folder, arguments, toolchain)
    texts = beginning.texts(folder, arguments.without)
    write(folder, texts)
    for line in described(beginning):
        print(line)
    print(f"wrote {', '.join(map(str, texts))}")
    if "file:" in beginning.harness and "nox" not in arguments.without:
        print(
            f"only this machine has {beginning.harness}: put a requirement that CI can install into noxfile.py"
        )
    words = ["run", "--cell", f"{beginning.targets[0]}/{beginning.case}", UPDATE]
    print(f"$ {shlex.join(['goldens', *words])}", flush=True)
    command = [*with_harness(interpreter, handing.MAIN), *words, "-q"]
    code = subprocess.run(command, env=worker_environment(interpreter, 0)).returncode
    if code:
        print("the files stay as written: once the model is right, the command above records its golden")
        return code
    recorded = golden.directory(
        folder / "goldens" / release.version, Cell(beginning.targets[0], beginning.case)
    )
    if (failure := recorded / golden.FAILURE).exists():
        print(f"the model is not lowered, and its golden is the failure: {failure.relative_to(folder)}")
    others = f"goldens run {UPDATE} records the other targets; " if len(beginning.targets) > 1 else ""
    print(f"next: {others}review goldens/ and commit")
    return SAME


def beginning_of(folder: Path, arguments: argparse.Namespace, toolchain: Toolchain) -> Beginning:
    """Return the sources of the files, and ask for missing ones; raise UsageError."""
    ask = Questions(arguments.yes)
    model = _model(folder, arguments.model, ask)
    return Beginning(
        model=model,
        **_facts(folder, model, arguments, ask),
        targets=_targets(arguments.target, toolchain.release, ask),
        toolchain=_portable(toolchain),
        harness=_harness(arguments.harness, ask),
        python=interpreters.own(),
    )


def _portable(toolchain: Toolchain) -> str:
    """Return a toolchain's name for other machines: of an environment that is here, its release."""
    return toolchain.release.version if Name.read(toolchain.name).python is not None else toolchain.name


def _own(arguments: argparse.Namespace) -> str | None:
    """Return where this project is installed from, which the Python that takes over cannot know; None if given."""
    return None if arguments.harness is not None else installed_from()


class Questions:
    """Asks for values that have a default.

    Parameters
    ----------
    defaults
        Whether to take each default without asking.
    """

    def __init__(self, defaults: bool) -> None:
        self.defaults = defaults

    def __call__(self, question: str, default: str | None, option: str) -> str:
        """Return the answer; raise UsageError where there is nobody to give it and no default."""
        if self.defaults and default is not None:
            return default
        if self.defaults:
            raise UsageError(f"{question} has no default here: give {option}")
        try:
            answer = input(f"{question}{f' [{default}]' if default else ''}: ").strip()
        except EOFError:
            raise UsageError(
                f"nobody answered ({question}): give {option}, or --yes for the defaults"
            ) from None
        if not answer and default is None:
            raise UsageError(f"{question} has no default here: give {option}")
        return answer or str(default)


def _model(folder: Path, given: str | None, ask: Questions) -> ModelName:
    if given is not None:
        return model_named(given, folder)
    found = list(map(str, models_of(folder)))
    if len(found) > 1 and ask.defaults:
        raise UsageError(f"there are {len(found)} models: name one of {some(found)}")
    return model_named(ask("model", found[0] if len(found) == 1 else None, "FILE:NAME"), folder)


def _facts(folder: Path, model: ModelName, arguments: argparse.Namespace, ask: Questions) -> dict[str, Any]:
    """Return the facts that a run of the model shows, of `Beginning`; raise UsageError."""
    from executorch_goldens.exporting import archives, first

    if model.is_program:
        if arguments.input or arguments.example:
            raise UsageError(
                f'{model} runs on the inputs it was exported with: for others, write inputs = "FILE.npz" under '
                "[[tool.goldens.cases]] instead of passing --input or --example"
            )
        archives.example_of_files(folder, model.file, None)
        return {"inputs": ()}
    checkpoint = None if model.checkpoint is None else folder / model.checkpoint
    made = first.built(folder, model.module, model.name, checkpoint)
    facts: dict[str, Any] = {
        "has_own_weights": made.has_own_weights,
        "entry": made.entry,
        "gives_inputs": made.inputs is not None,
        "inputs": (),
    }
    given = arguments.example or " ".join(arguments.input or ())
    if not given and made.inputs is not None:
        first.require_runs(made.module, made.inputs, f"the second value that {model} returns")
        return facts
    guess = None if given else first.guessed(made.module)
    answer = given or _asked(guess, ask)
    if arguments.example or is_example(answer):
        if not is_example(answer):
            raise UsageError(f"--example {answer} is no MODULE:FUNCTION such as nets.examples:inputs")
        first.require_runs(made.module, first.example(folder, *answer.split(":")), f"the result of {answer}")
        return {**facts, "example": answer}
    is_guess = guess is not None and answer == guess.given.stated
    return {
        **facts,
        "inputs": first.named(made.module, [stated(word) for word in answer.split()]),
        "guess": guess.layer if guess is not None and is_guess else "",
    }


def _asked(guess: Guess | None, ask: Questions) -> str:
    default = guess.given.stated if guess else None
    why = f", a guess from {guess.layer}" if guess else ""
    return ask(
        f"inputs, or MODULE:FUNCTION that returns them{why}",
        default,
        "--example MODULE:FUNCTION, or --input 1,3,224,224 for each",
    )


def described(beginning: Beginning) -> Iterator[str]:
    """Yield the known and the unknown facts about the model."""
    if beginning.model.is_program:
        yield f"{beginning.model} is a case, with the inputs that it was exported with"
        return
    returned = f"the result of {beginning.example}" if beginning.example else "the inputs that it returns"
    guess = f" (a guess from {beginning.guess}: see {ZOO}.py)" if beginning.guess else ""
    yield f"{beginning.model} takes {', '.join(map(str, beginning.inputs)) or returned}{guess}"
    yield KEPT if beginning.has_own_weights else DRAWN


def _targets(given: Sequence[str] | None, release: releases.Release, ask: Questions) -> tuple[str, ...]:
    every = [
        name for name, target in targets.TARGETS.items() if not target.opt_in and name in release.targets
    ]
    chosen = tuple(dict.fromkeys(given or ask("targets", " ".join(every), "--target").split()))
    for name in chosen:
        targets.find(name)
        if name not in release.targets:
            raise UsageError(
                f"ExecuTorch {release.version} has no target {name!r}: {release.unsupported[name]}"
            )
    return chosen


def _harness(given: str | None, ask: Questions) -> str:
    requirement = given or ask(
        "where the harness is installed from", installed_from(), "--harness REQUIREMENT"
    )
    try:
        Requirement(requirement)
    except InvalidRequirement as error:
        raise UsageError(f"--harness {requirement}: {error}") from error
    return requirement


def installed_from() -> str | None:
    """Return the requirement that this project was installed by, or None where it is not installed.

    The record is ``direct_url.json`` (PEP 610); what has none came from an index.
    """
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
    record = distribution.read_text("direct_url.json")
    if record is None:
        return f"{DISTRIBUTION}=={distribution.version}"
    origin = json.loads(record)
    if "vcs_info" in origin:
        return (
            f"{DISTRIBUTION} @ {origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
        )
    return f"{DISTRIBUTION} @ {origin['url']}"
