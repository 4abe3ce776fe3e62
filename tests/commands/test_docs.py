"""README and docs: each command is run or checked, shown output is real, and every link leads somewhere.

A command is a line that begins with ``$ ``, of a block whose first line does. The lines under it are what it prints;
a line ``...`` matches any lines. A command that needs environments, a network or minutes is not run: a row of `UNRUN`
says why, and how it is checked instead. A command that no row covers is run.
"""

from __future__ import annotations

import argparse
import doctest
import fnmatch
import functools
import importlib
import itertools
import json
import linecache
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from syrupy.assertion import SnapshotAssertion

from executorch_goldens import cli, extensions, plugins
from executorch_goldens.commands.run import PYTEST
from executorch_goldens.errors import UsageError
from executorch_goldens.goldens import golden
from executorch_goldens.settings import config
from executorch_goldens.settings.config import KEYS
from executorch_goldens.toolchains.naming import Name
from executorch_goldens.zoo.targets import TARGETS
from lab.__main__ import INSTRUMENTS
from tests import REPOSITORY
from tests.support.commands import ended, inherited

pytest_plugins = ("pytester",)

GOLDENS = REPOSITORY / "goldens"
DOCS = REPOSITORY / "docs"
LAB_DOCS = REPOSITORY / "harness" / "lab" / "docs"
FINDINGS = REPOSITORY / "findings"
INDEX = DOCS / "README.md"
#: The folders of pages that have an index; the lab's are those about the harness itself.
INDEXED = (DOCS, LAB_DOCS, DOCS / "plugins", FINDINGS)
PAGES = (
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted(LAB_DOCS.rglob("*.md")),
    *sorted(FINDINGS.glob("*.md")),
)
#: The commands of the core and of plugins, with their modules.
MODULES = cli.MODULES | plugins.commands(cli.MODULES)
#: The long form of ``goldens run`` in pages.
LONG_FORM = ("-p", "executorch_goldens.running.plugin", "--pyargs", "executorch_goldens.running.cells")
#: The cell of the model that the tutorial makes.
OF_THE_TUTORIAL = "tosa-fp/wake-word"


@dataclass(frozen=True)
class Command:
    """A command line of a page.

    Attributes
    ----------
    place
        ``page:line``.
    words
        As a shell would split them.
    output
        The lines that the page shows under it; empty where it shows none.
    """

    place: str
    words: tuple[str, ...]
    output: tuple[str, ...]


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands of a page; those joined by ``&&`` one by one."""
    fence, block = "", list[tuple[int, str]]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if not fence:
            fence, block = (line, []) if line.startswith("```") else ("", [])
        elif line == "```":
            # What shows a session that takes minutes names no language, so that its output is not highlighted.
            if fence == "```console" or (fence == "```" and block and block[0][1].startswith("$ ")):
                yield from _of_block(page, block)
            fence = ""
        else:
            block.append((number, line))
    assert not fence, f"{page.name}: a block has no end"


def _of_block(page: Path, block: Sequence[tuple[int, str]]) -> Iterator[Command]:
    starts = [index for index, (_, line) in enumerate(block) if line.startswith("$ ")]
    assert starts[:1] == [0], f"{page.name}: a console block begins with no command"
    for start, end in zip(starts, [*starts[1:], len(block)], strict=True):
        number, line = block[start]
        output = tuple(text for _, text in block[start + 1 : end])
        *before, last = _split(shlex.split(line.removeprefix("$ "), comments=True))
        for words in before:
            yield Command(f"{page.name}:{number}", words, ())
        yield Command(f"{page.name}:{number}", last, output)


def _split(words: Sequence[str]) -> list[tuple[str, ...]]:
    found: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            found.append([])
        else:
            found[-1].append(word)
    return [tuple(part) for part in found]


def environment() -> dict[str, str]:
    paths = [str(REPOSITORY), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return inherited() | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


# Checks of what is not run


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import what tests use before pytester works: it forgets what was imported meanwhile, torch can only be once."""
    for name in (*WITH_EXAMPLES, *INSTRUMENTS.values(), *MODULES.values()):
        importlib.import_module(name)


#: Takes the words of a command and the test's request; raises where the words would be refused.
Check = Callable[[Sequence[str], pytest.FixtureRequest], None]


def subcommand(*prefix: str) -> Check:
    """Return a check that the parser of ``goldens`` takes `prefix` and the words, and their form the options."""

    def check(words: Sequence[str], _: pytest.FixtureRequest) -> None:
        subparsers = argparse.ArgumentParser().add_subparsers()
        importlib.import_module(MODULES[prefix[0]]).add_to(subparsers)
        command = subparsers.choices[prefix[0]]
        parsed = command.parse_args([*prefix[1:], *words])
        if hasattr(parsed, "forms"):
            parsed.forms.check(command, [*prefix[1:], *words], parsed)

    return check


def parsed(request: pytest.FixtureRequest, *words: str) -> pytest.Config:
    """Return pytest's reading of its words."""
    pytester: pytest.Pytester = request.getfixturevalue("pytester")
    return pytester.parseconfig(*words)


def is_run(words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Assert that a run takes the words, and that the goldens have the cells."""
    # The options of the command that never reach pytest as they are.
    taken = ("--toolchain" if word == "-t" else word for word in words if word != "--watch")
    option = parsed(request, *PYTEST, *taken).option
    recorded = {str(cell) for root in GOLDENS.iterdir() for cell in golden.recorded(root)}
    for pattern in option.cells or ():
        assert pattern == OF_THE_TUTORIAL or fnmatch.filter(recorded, pattern), pattern


def are_compared(words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Assert that ``compare`` takes the words, that two names are ones, and that the goldens have the cells."""
    subcommand("compare")(words, request)
    recorded = {str(cell) for root in GOLDENS.iterdir() for cell in golden.recorded(root)}
    for option, pattern in itertools.pairwise(words):
        assert option != "--cell" or fnmatch.filter(recorded, pattern), pattern
    names = [*itertools.takewhile(lambda word: not word.startswith("-"), words)]
    assert len(names) <= 2, names
    # One is a revision of the reader's clone.
    for word in names if len(names) == 2 else ():
        # A page names a checkout that its reader has.
        Name.parse(re.sub(r"\.\./executorch(@[\w^]+)?$", str(REPOSITORY), word))


def is_of_no_environment(words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Assert that what ``uvx`` takes are requirements, and that ``compare`` takes the other words."""
    *taken, command = (" ".join(words)).split(" goldens compare")
    assert len(taken) == 1, words
    for requirement in taken[0].split(" --with "):
        Requirement(f"any @ {requirement}" if requirement.startswith("git+") else requirement)
    are_compared(shlex.split(command), request)


def is_pytest(words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Assert that pytest, with the options of these tests, takes the words."""
    parsed(request, f"--rootdir={REPOSITORY}", str(REPOSITORY / "tests"), *words)


def takes_nothing(words: Sequence[str], _: pytest.FixtureRequest) -> None:
    assert not words


def is_instrument(words: Sequence[str], _: pytest.FixtureRequest) -> None:
    """Assert that an instrument of the lab takes the words."""
    name, *others = words
    parser = argparse.ArgumentParser()
    importlib.import_module(INSTRUMENTS[name]).add_to(parser.add_subparsers())
    parser.parse_args([name, *others])


#: Recipients of the arguments of ``nox -s SESSION -- ARGUMENTS``.
SESSIONS: dict[str, Check] = {
    "goldens": is_run,
    "tests": is_pytest,
    "review": subcommand("review"),
    "report": subcommand("report"),
    "explore": subcommand("show", "--explore"),
    "compile": subcommand("compile"),
    "worker": subcommand("worker"),
    "lab": is_instrument,
    "lint": takes_nothing,
    "docs": takes_nothing,
}


@functools.cache
def sessions() -> dict[str, str]:
    """Return the name of every session with, and without, its parameters, as nox lists them."""
    nox = shutil.which("nox")
    assert nox, "nox is not on the PATH: pip install nox"
    # Without an expression it lists the default session alone.
    listed = json.loads(ended([nox, "-l", "--json", "-k", "not nothing"], env=environment()).stdout)
    return {name: entry["name"] for entry in listed for name in (entry["session"], entry["name"])}


def is_session(words: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Assert that the sessions of ``nox -s`` exist and that their commands take the arguments."""
    end = words.index("--") if "--" in words else len(words)
    known = sessions()
    for name in words[:end]:
        assert name in known, f"{name} is no session: {', '.join(known)}"
        check = SESSIONS[known[name]]
        if words[end + 1 :]:
            check(words[end + 1 :], request)


def are_requirements(words: Sequence[str], _: pytest.FixtureRequest) -> None:
    assert words
    for word in words if words[0] != "-e" and not words[0].startswith("path/to/") else ():
        Requirement(word)


def are_paths(words: Sequence[str], _: pytest.FixtureRequest) -> None:
    for word in words:
        assert (REPOSITORY / word).exists(), word


def is_replay(words: Sequence[str], _: pytest.FixtureRequest) -> None:
    corpus, outputs, *chosen = words
    assert len(chosen) <= 1
    assert corpus != outputs


def is_one_word(words: Sequence[str], _: pytest.FixtureRequest) -> None:
    (name,) = words
    assert not name.startswith("-"), name


@dataclass(frozen=True)
class Unrun:
    """Commands that are not run here.

    Attributes
    ----------
    prefix
        Their beginning.
    reason
        Why they are not run.
    check
        Checks the words after the prefix.
    """

    prefix: tuple[str, ...]
    reason: str
    check: Check


#: Instruments on pages that run here as ``python -m lab``: they read goldens, and export nothing.
LAB = ("nox", "-s", "lab", "--")
READ = ("core",)
UNRUN = (
    Unrun(("python3", "-m", "venv"), "makes an environment in the reader's folder", is_one_word),
    Unrun((".",), "changes the reader's shell", is_one_word),
    Unrun(("pip", "install"), "needs a network", are_requirements),
    Unrun(("git", "diff"), "shows what the reader's work tree has", are_paths),
    Unrun(("git", "merge"), "needs two branches that change one golden", is_one_word),
    Unrun(("git", "add"), "changes the reader's index", are_paths),
    Unrun(("git", "commit"), "asks for a message", takes_nothing),
    Unrun(("./replay",), "test_thaw.py compiles it, and runs it with such words", is_replay),
    Unrun(("nox", "-s"), "makes environments, exports for minutes", is_session),
    Unrun(("goldens", "run"), "exports for minutes", is_run),
    Unrun(("python", "-m", "pytest", *LONG_FORM), "exports for minutes", is_run),
    Unrun(
        ("goldens", "show", "--explore"), "serves until it is interrupted", subcommand("show", "--explore")
    ),
    Unrun(("goldens", "freeze"), "exports for a minute", subcommand("freeze")),
    Unrun(("goldens", "thaw"), "needs the environment of another release", subcommand("thaw")),
    Unrun(
        ("goldens", "init"), "needs a repository without goldens, exports for a minute", subcommand("init")
    ),
    Unrun(("goldens", "compare"), "makes environments, exports for minutes", are_compared),
    Unrun(("uvx", "--from"), "needs a network", is_of_no_environment),
    Unrun(("goldens", "env"), "makes environments, and deletes them", subcommand("env")),
    Unrun(("goldens", "merge"), "needs the results of runs", subcommand("merge")),
    Unrun(("goldens", "review"), "needs the results of runs", subcommand("review")),
    Unrun(
        ("goldens", "repro"),
        "needs the environment of another release, exports for a minute",
        subcommand("repro"),
    ),
)
#: Commands that are run and take more than three seconds: they import ExecuTorch, or read two releases.
SLOW = (("python", "-m", "executorch_goldens.patches"), ("goldens", "diff", "1"), (*LAB, "core"))
#: Commands that end with 1 where they find a difference.
DIFFERING = ("goldens", "diff")


def unrun(command: Command) -> Unrun | None:
    if command.words[: len(LAB)] == LAB and command.words[len(LAB)] in READ:
        return None
    rows = [row for row in UNRUN if command.words[: len(row.prefix)] == row.prefix]
    assert len(rows) <= 1, command
    return rows[0] if rows else None


def is_slow(command: Command) -> bool:
    return any(shlex.join(command.words).startswith(shlex.join(prefix)) for prefix in SLOW)


ALL = list({command.words: command for page in PAGES for command in commands(page)}.values())


def parameters(chosen: Sequence[Command]) -> list[object]:
    return [
        pytest.param(
            command, id=shlex.join(command.words), marks=[pytest.mark.slow] if is_slow(command) else []
        )
        for command in chosen
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the files of the repository, in which a command may leave its own."""
    for path in REPOSITORY.iterdir():
        if path.name not in (".git", ".nox", "build"):
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


@pytest.mark.parametrize("command", parameters([command for command in ALL if not unrun(command)]))
def test_a_command_runs_and_prints_what_its_page_shows(command: Command, checkout: Path) -> None:
    run = ended(words_of(command), checkout, env=environment())
    differing = command.words[: len(DIFFERING)] == DIFFERING
    assert run.returncode == 0 or (differing and run.returncode == 1), run.stderr
    if command.output:
        assert shows(command.output, run.stdout), f"{command.place} shows another output than\n{run.stdout}"


def words_of(command: Command) -> list[str]:
    """Return the command to run for a page's command: in this environment."""
    if command.words[: len(LAB)] == LAB:
        return [sys.executable, "-m", "lab", *command.words[len(LAB) :]]
    program, *arguments = command.words
    modules = {"python": (), "goldens": ("-m", "executorch_goldens")}
    assert program in modules, f"{command.place}: neither run nor in UNRUN"
    return [sys.executable, *modules[program], *arguments]


def shows(shown: Sequence[str], printed: str) -> bool:
    """Say whether `shown` is `printed`, with a line ``...`` for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, printed) is not None


@pytest.mark.parametrize("row", UNRUN, ids=lambda row: shlex.join(row.prefix))
def test_commands_that_are_not_run_are_ones_that_would_be_taken(
    row: Unrun, request: pytest.FixtureRequest
) -> None:
    covered = [command for command in ALL if unrun(command) == row]
    assert covered, "no page has such a command: delete its row"
    for command in covered:
        try:
            row.check(command.words[len(row.prefix) :], request)
        except (AssertionError, SystemExit, InvalidRequirement, UsageError, pytest.UsageError) as error:
            pytest.fail(f"{command.place}: {shlex.join(command.words)}: {error!r}")


@pytest.mark.parametrize(
    "line",
    [
        "nox -s no-such-session",
        "nox -s goldens -- --no-such-option",
        "nox -s goldens -- --cell tosa-fp/no-such-case",
        "nox -s tests -- --no-such-option",
        "nox -s lint -- words",
        "nox -s lab -- mutants --no-such-option",
        "nox -s lab -- reach --no-such-option",
        "goldens run --no-such-option",
        "goldens repro 1.4.1",
        "goldens compare 1.4.1 1.5.1 1.5.1",
        "goldens compare 1.4.1 newest",
        "goldens compare 1.4.1 1.5.1 --no-such-option",
        "goldens compare 1.4.1 1.5.1 --cell tosa-fp/no-such-case",
        "goldens compare 1.4.1 '1.5.1 + no-such-requirement!'",
        "goldens env grow 1.4.1",
        "git diff no-such-folder",
        "git merge --no-such-option",
        "git add no-such-folder",
        "git commit words",
        "pip install no-such-requirement!",
    ],
)
def test_a_command_that_would_be_refused_is_found(line: str, request: pytest.FixtureRequest) -> None:
    command = Command("", tuple(shlex.split(line)), ())
    row = unrun(command)
    assert row is not None
    with pytest.raises((AssertionError, SystemExit, InvalidRequirement, UsageError, pytest.UsageError)):
        row.check(command.words[len(row.prefix) :], request)


def test_sessions_and_subcommands_named_in_a_sentence_exist() -> None:
    known = sessions()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`nox -s \"?([\w]+)", text):
            assert name in known, f"{page.name}: nox -s {name}"
        for name in re.findall(r"`goldens (\w+)", text):
            assert name in MODULES, f"{page.name}: goldens {name}"
        for name in re.findall(r"nox -s \"?lab(?:\([\d.]+\)\")? -- ([\w-]+)", text):
            assert name in INSTRUMENTS, f"{page.name}: nox -s lab -- {name}"


# Links and names


def prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


#: Modules of the harness whose docstrings have examples; the others are not imported.
WITH_EXAMPLES = tuple(
    ".".join(path.relative_to(REPOSITORY / "harness").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((REPOSITORY / "harness").rglob("*.py"))
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_examples_of_docstrings_give_what_they_say() -> None:
    # Each docstring looks on the disk for every file whose lines are kept: exports leave thousands.
    linecache.clearcache()
    found = {name: doctest.testmod(importlib.import_module(name)) for name in WITH_EXAMPLES}
    assert [name for name, result in found.items() if result.failed or not result.attempted] == []


def missing(page: Path, target: str) -> bool:
    """Say whether a link of a page leads to no file of the repository, or to no heading of it."""
    path, _, anchor = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    inside = REPOSITORY in (place, *place.parents) and place.exists()
    return not inside or (anchor != "" and anchor not in anchors(place))


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)\s]+)\)", prose(page))]
    own = [(page, target) for page, target in links if not target.startswith("https://")]
    assert [f"{page.name}: {target}" for page, target in own if missing(page, target)] == []


def test_every_path_named_in_a_sentence_exists() -> None:
    path = re.compile(r"`((?:harness|tests|models|docs|findings|\.github|\.ci)/[\w./-]*)`")
    named = [(page.name, place) for page in PAGES for place in path.findall(prose(page))]
    assert [each for each in named if not (REPOSITORY / each[1]).exists()] == []


@pytest.mark.parametrize("folder", INDEXED, ids=lambda folder: folder.name)
def test_the_index_of_a_folder_has_every_page(folder: Path) -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in folder.glob("*.md")} - {"README.md"}


def test_the_page_about_targets_has_every_target() -> None:
    text = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w+-]+)` \|[^|]*\| (every case|cases that ask) \|$", text, flags=re.MULTILINE)
    assert dict(rows) == {
        name: "cases that ask" if target.opt_in else "every case" for name, target in TARGETS.items()
    }


def test_python_on_a_page_about_cases_is_code_of_the_zoo() -> None:
    text = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    code, *_ = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert any(code in path.read_text(encoding="utf-8") for path in (REPOSITORY / "models").glob("*.py"))


def test_the_page_about_settings_has_every_key() -> None:
    text = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|(?:[^|]*\|){2}$", text, flags=re.MULTILINE) == list(KEYS)


def test_the_dashboard_on_the_page_about_results_runs_and_reads_no_words(snapshot: SnapshotAssertion) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (DOCS / "results.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    results = REPOSITORY / "tests" / "data" / "report_results" / "stock" / "1.2.0" / "results.jsonl"
    assert ended([sys.executable, "-c", code, results]).stdout == snapshot
    assert '"reason"' not in code


def test_settings_on_a_page_are_taken(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "own-repository.md").read_text(encoding="utf-8")
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    text = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    *_, points = re.findall(r"^```toml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(settings)
    assert config.load(tmp_path).models == ("firmware.models",)
    assert set(tomllib.loads(points)["project"]["entry-points"]) <= set(extensions.GROUPS)
