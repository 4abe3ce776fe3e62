"""Dependencies of a process: a program of random small modules is reused only where it would print the same."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from executorch_goldens.settings.exports import ROOT
from executorch_goldens.sweep import worker
from executorch_goldens.sweep.facts import Digests, Fact, UnknownDependencyError, View, changed_since
from tests.support.commands import ended

#: Runs a module with everything recorded, in a process that another one watches, as an exporting child does, or in a
#: child of one, and prints what it leaves in `result`.
PROGRAM = """
import os, selectors, socket, sys
sys.path.insert(0, sys.argv[1])
from executorch_goldens.exporting import system_calls
from executorch_goldens.exporting.recording import Recorder
del sys.path[0]
hearing, telling = socket.socketpair()
process = os.fork()
if process:
    _, (listener,), _, _ = socket.recv_fds(hearing, 16, 1)
    supervisor = system_calls.Supervisor(listener, os.path.dirname(os.path.dirname(sys.argv[3])), process)
    with selectors.DefaultSelector() as selector:
        for each in (listener, ended := os.pidfd_open(process)):
            selector.register(each, selectors.EVENT_READ)
        while ended not in (found := [key.fd for key, _ in selector.select()]):
            supervisor.serve()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
recorder = Recorder()
sys.path.insert(0, sys.argv[2])
sys.path.insert(1, sys.argv[2] + "/further")
recorder.install()
system_calls.watch(telling)
recorder.watched = True
from pathlib import Path
before, status = None, 0
if sys.argv[4] == "forked":
    before = sys.argv[3] + ".before"
    recorder.begin(Path(before))
    recorder.end()
    if child := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.exit(status)
recorder.begin(Path(sys.argv[3]), [], before)
import start
print(start.result)
recorder.end()
"""


@dataclass
class House:
    """A folder with modules and data, a program that runs them, and the record of its last run."""

    folder: Path
    record: Path
    variables: dict[str, str] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def run(self, how: str = "whole", record: bool = True) -> str:
        """Run it and return its result."""
        self.folder.mkdir(exist_ok=True)
        self.record.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-P", "-c", PROGRAM, str(ROOT), str(self.folder), str(self.record), how]
        done = ended(command, self.folder, env=self.environment)
        made = done.stdout + done.stderr.rpartition("\n  File")[2].rpartition("\n")[2]
        made = done.stdout if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1]}"
        if record and done.returncode == 0:
            self.facts = self.recorded()
        return made

    @property
    def environment(self) -> dict[str, str]:
        # What Python itself gets wrong is not meant: compiled code whose source has the same size and second.
        return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", **self.variables}

    def recorded(self) -> tuple[Fact, ...]:
        facts, before = self.view().facts(self.record)
        return facts if before is None else facts + self.view().facts(before)[0]

    def view(self) -> View:
        return View(
            {"here": self.folder, "python": Path(sys.base_prefix)},
            Digests(self.folder.parent / "digests"),
            self.environment,
        )

    def differing(self) -> Fact | None:
        return self.view().differing(self.facts)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "house", tmp_path / "records" / "export" / "record")


def settle(folder: Path) -> None:
    """Wait until new files are older than the next process, by the clocks of files."""
    while any(changed_since(str(path), time.time_ns()) for path in folder.rglob("*")):
        time.sleep(0.02)


NAMES = ("a", "b", "c")
NUMBERS = st.integers(0, 9)


def statement(draw: st.DrawFn, inside: bool) -> str:
    """Draw one line that depends on something."""
    name = draw(st.sampled_from(NAMES))
    lines = [
        f"import zoo.{name}; value += zoo.{name}.value",
        f"from zoo.{name} import value as other; value += other",
        f"import importlib; value += importlib.import_module('zoo.{name}').value",
        f"value += int(open('{name}.txt').read() or 0)",
        f"import os; value += os.path.exists('{name}.txt')",
        f"import pathlib; value += sum(1 for _ in pathlib.Path('data').glob('*.{name}'))",
        f"import os; value += len(os.environ.get('WORD_{name}', ''))",
        f"import spaces.{name}; value += spaces.{name}.value",
        f"import {name}; value += {name}.value",
    ]
    if inside:
        lines.append(f"from .{name} import value as other; value += other")
    line = draw(st.sampled_from(lines))
    return f"try:\n    {line}\nexcept (ImportError, OSError, AttributeError): value += 1000\n"


@st.composite
def module(draw: st.DrawFn, inside: bool = True) -> str:
    """Draw a module that makes a value from its dependencies, at once or in a function that it calls."""
    text = f"value = {draw(NUMBERS)}\n"
    for _ in range(draw(st.integers(0, 2))):
        lazy = draw(st.booleans())
        line = statement(draw, inside)
        if lazy:
            indented = "".join(f"    {each}\n" for each in line.splitlines())
            line = f"def later():\n    global value\n{indented}later()\n"
        text += line
    return text


FILES = (
    *(f"zoo/{name}.py" for name in NAMES),
    *(f"spaces/{name}.py" for name in NAMES),
    *(f"{name}.txt" for name in NAMES),
    *(f"data/1.{name}" for name in NAMES),
    *(f"{name}.py" for name in NAMES),
    *(f"further/{name}.py" for name in NAMES),
    "zoo/__init__.py",
    "unread.txt",
)


@st.composite
def content(draw: st.DrawFn, name: str) -> str:
    if name.endswith(".py"):
        return draw(module(inside=name.startswith("zoo/") and "__init__" not in name))
    return str(draw(NUMBERS))


@st.composite
def house_and_edit(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str | None], dict[str, str]]:
    names = draw(st.lists(st.sampled_from(FILES), min_size=3, max_size=10, unique=True))
    files = {name: draw(content(name)) for name in names}
    files["start.py"] = draw(module(inside=False)) + statement(draw, False) + "result = value\n"
    edited = draw(st.lists(st.sampled_from(FILES), min_size=1, max_size=2, unique=True))
    edits = {name: draw(st.one_of(st.none(), content(name))) for name in edited}
    variables = {
        f"WORD_{name}": "x" * draw(NUMBERS) for name in draw(st.sets(st.sampled_from(NAMES), max_size=1))
    }
    return files, edits, variables


def apply(house: House, edits: Mapping[str, str | None]) -> None:
    """Write and delete files; an arrow and a target are a link, the mark of a program lets a file be run."""
    for name, text in edits.items():
        path = house.folder / name
        if text is None or path.is_symlink():
            path.unlink(missing_ok=True)
        if text is None:
            continue
        if text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        elif text == "#!":
            path.chmod(0o755)
        else:
            house.write(name, text)


#: Reuses, and possible reuses, over all examples.
TALLY = {"same": 0, "reused": 0}


@settings(
    max_examples=int(os.environ.get("RECORDING_EXAMPLES", "25")),
    deadline=None,
    # A run takes its time, and a drawn house says enough.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=house_and_edit(), how=st.sampled_from(["whole", "forked"]))
@pytest.mark.slow
def test_what_would_be_another_is_never_used_again(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[dict[str, str], dict[str, str | None], dict[str, str]],
    how: str,
) -> None:
    files, edits, variables = drawn
    folder = tmp_path_factory.mktemp("drawn")
    house = House(folder / "house", folder / "records" / "export" / "record")
    apply(house, files)
    settle(house.folder)
    before = house.run(how)
    if before.startswith("failed"):
        return
    assert house.differing() is None
    apply(house, edits)
    house.variables = variables
    after = house.run(how, record=False)
    if after != before:
        assert house.differing() is not None, (before, after, edits)
    else:
        TALLY["same"] += 1
        TALLY["reused"] += house.differing() is None


def test_what_would_be_the_same_is_used_again_for_the_most_part() -> None:
    assert TALLY["same"] == 0 or TALLY["reused"] >= 0.3 * TALLY["same"], TALLY


#: A program's action, the files before, and the changes (None deletes).
Kind = tuple[str, Mapping[str, str], Mapping[str, str | None]]
#: Changes that must be noticed.
NOTICED: Mapping[str, Kind] = {
    "a helper after a form feed": (
        "from zoo.a import result",
        {"zoo/a.py": "x = 1\n\x0c\ndef helper():\n    return 100\nresult = helper()\n"},
        {"zoo/a.py": "x = 1\n\x0c\ndef helper():\n    return 200\nresult = helper()\n"},
    ),
    "a helper after a line separator": (
        "from zoo.a import result",
        {"zoo/a.py": "x = '\u2028'\ndef helper():\n    return 100\nresult = helper()\n"},
        {"zoo/a.py": "x = '\u2028'\ndef helper():\n    return 200\nresult = helper()\n"},
    ),
    "a package whose name begins with harness": (
        "from harness_acme import result",
        {"harness_acme/__init__.py": "result = 100\n"},
        {"harness_acme/__init__.py": "result = 200\n"},
    ),
    "a module that comes before the one that is imported": (
        "from c import result",
        {"further/c.py": "result = 1\n"},
        {"c.py": "result = 2\n"},
    ),
    "a package that comes before a module": (
        "from c import result",
        {"c.py": "result = 1\n"},
        {"c/__init__.py": "result = 2\n"},
    ),
    "an init of a namespace package": (
        "import spaces.a; result = getattr(spaces, 'x', 1)",
        {"spaces/a.py": "", "further/spaces/b.py": ""},
        {"spaces/__init__.py": "x = 2\n"},
    ),
    "a module that was not there": (
        "try:\n    import gone; result = gone.x\nexcept ImportError: result = 0",
        {},
        {"gone.py": "x = 1\n"},
    ),
    "a module with only its spec requested": (
        "import importlib.util; result = importlib.util.find_spec('gone') is None",
        {},
        {"gone.py": "x = 1\n"},
    ),
    "a file that was not there": (
        "try: result = open('gone.txt').read()\nexcept OSError: result = ''",
        {},
        {"gone.txt": "1"},
    ),
    "a path that was asked for": (
        "import pathlib; result = pathlib.Path('flag').exists()",
        {},
        {"flag": ""},
    ),
    "a name that was globbed": (
        "import pathlib; result = len(list(pathlib.Path().glob('flag')))",
        {},
        {"flag": ""},
    ),
    "whether a file may be run": (
        "import os; result = os.access('a.txt', os.X_OK)",
        {"a.txt": "1"},
        {"a.txt": "#!"},
    ),
    "where a link leads to": (
        "import os; result = os.readlink('link')",
        {"link": "-> a.txt"},
        {"link": "-> b.txt"},
    ),
    "whether there is a link": (
        "import pathlib; result = pathlib.Path('link').is_symlink()",
        {"link": "-> a.txt", "a.txt": "1"},
        {"link": "1"},
    ),
    "a link that leads nowhere yet": (
        "import os; result = os.path.exists('link')",
        {"link": "-> gone.txt"},
        {"gone.txt": "1"},
    ),
    "the size of a file that was listed": (
        "import os; result = [each.stat().st_size for each in os.scandir('data')]",
        {"data/1.a": "1"},
        {"data/1.a": "12"},
    ),
    "whether what was listed is a directory": (
        "import os; result = [each.is_dir() for each in os.scandir('data')]",
        {"data/1": ""},
        {"data/1": None, "data/1/a": ""},
    ),
    "the size of a file": (
        "import os; result = os.path.getsize('a.txt')",
        {"a.txt": "1"},
        {"a.txt": "12"},
    ),
    "a directory that was listed": (
        "import os; result = sorted(os.listdir('data'))",
        {"data/1.a": "1"},
        {"data/2.a": "1"},
    ),
    "a directory that was walked": (
        "import os; result = sum(len(names) for _, _, names in os.walk('data'))",
        {"data/deep/1.a": "1"},
        {"data/deep/2.a": "1"},
    ),
    "what a forked process read": (
        "import os\nif os.fork() == 0:\n    open('a.txt').read()\n    os._exit(0)\nos.wait(); result = 1",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "what a program was given": (
        "import subprocess; result = subprocess.run(['cat', 'a.txt'], capture_output=True).stdout",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "what a memory map read": (
        "import mmap; file = open('a.txt', 'rb'); result = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:]",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "a data base, which C reads": (
        "import sqlite3\ntry: result = sqlite3.connect('a.db').execute('select * from t').fetchall()\n"
        "except sqlite3.DatabaseError: result = 0",
        {"a.db": "1" * 200},
        {"a.db": "2" * 200},
    ),
    "what C's library read": (
        "import ctypes; c = ctypes.CDLL(None); f = c.open(b'a.txt', 0); t = ctypes.create_string_buffer(9)\n"
        "c.read(f, t, 9); result = t.value",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "what C's library did not find": (
        "import ctypes; result = ctypes.CDLL(None).access(b'gone.txt', 0)",
        {},
        {"gone.txt": "1"},
    ),
    "what C's library read by a folder and a link": (
        "import ctypes, os; os.chdir('data'); c = ctypes.CDLL(None); f = c.openat(os.open('..', 0), b'link', 0)\n"
        "t = ctypes.create_string_buffer(9); c.read(f, t, 9); result = t.value",
        {"link": "-> a.txt", "a.txt": "1", "data/1.a": ""},
        {"a.txt": "2"},
    ),
    "what a thread of C's read": (
        "import ctypes, threading; c = ctypes.CDLL(None); t = ctypes.create_string_buffer(9)\n"
        "def go(): c.read(c.open(b'a.txt', 0), t, 9)\n"
        "of = threading.Thread(target=go); of.start(); of.join(); result = t.value",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "what a shell read": (
        "import subprocess; result = subprocess.check_output('read x < a.txt; echo $x', shell=True)",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "what a program of a shell found": (
        "import os; result = os.system('test -e gone.txt')",
        {},
        {"gone.txt": "1"},
    ),
    "what a program listed": (
        "import subprocess; result = subprocess.check_output('ls data', shell=True)",
        {"data/1.a": "1"},
        {"data/2.a": "1"},
    ),
    "what a process read that it left behind": (
        "import subprocess\n"
        "left = subprocess.Popen('(sleep 0.2; cat a.txt) &', shell=True, stdout=subprocess.PIPE)\n"
        "result = left.wait(), left.stdout.read()",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "a file that it did not make, where it would make it": (
        "import os\ntry: open('a.txt', 'x')\nexcept FileExistsError: result = open('a.txt').read()",
        {"a.txt": "1"},
        {"a.txt": "2"},
    ),
    "a file in a directory that was there already": (
        "import os; os.makedirs('data', exist_ok=True); result = open('data/1.a').read()",
        {"data/1.a": "1"},
        {"data/1.a": "2"},
    ),
}
#: Changes of what the program has not read, or has made itself.
UNNOTICED: Mapping[str, Kind] = {
    "what a program wrote itself": (
        "import subprocess; result = subprocess.check_output('echo 1 > made.txt; cat made.txt', shell=True)",
        {},
        {"made.txt": "2"},
    ),
    "a directory that it opened, and that changes all the time": (
        "import os; os.close(os.open('data', os.O_RDONLY)); open('data/made', 'w').close(); result = 1",
        {"data/1.a": ""},
        {"data/2.a": ""},
    ),
    "what it did not read": (
        "result = 1",
        {"a.txt": "1", "zoo/a.py": ""},
        {"a.txt": "2", "zoo/a.py": "x"},
    ),
    "a file beside those that were imported": (
        "import zoo.a; result = 1",
        {"zoo/a.py": ""},
        {"zoo/b.py": ""},
    ),
    "what it wrote itself": (
        "open('made.txt', 'w').write('1'); result = open('made.txt').read()",
        {},
        {"made.txt": "2"},
    ),
    "a directory that it made": (
        "import os, tempfile; made = tempfile.mkdtemp(dir='.')\n"
        "open(made + '/x', 'x').close(); result = len(os.listdir(made))",
        {},
        {},
    ),
}


@pytest.mark.parametrize("how", [pytest.param("whole", marks=pytest.mark.slow), "forked"])
@pytest.mark.parametrize("kind", [*NOTICED, *UNNOTICED])
def test_what_each_kind_of_change_does(kind: str, how: str, house: House) -> None:
    program, files, edits = {**NOTICED, **UNNOTICED}[kind]
    house.write("start.py", program + "\n")
    apply(house, files)
    settle(house.folder)
    assert not house.run(how).startswith("failed")
    assert house.differing() is None or kind == "what it wrote itself"
    apply(house, edits)
    assert (house.differing() is not None) is (kind in NOTICED), house.differing()


def test_a_file_in_memory_counts_and_a_device_does_not(house: House) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as weights:
        weights.write(b"1")
        weights.flush()
        settle(Path(weights.name).parent)
        house.write("start.py", f"open('/dev/null').read(); result = open('{weights.name}').read()\n")
        settle(house.folder)
        house.run("forked")
        assert house.differing() is None
        assert not [fact for fact in house.facts if fact.place == "/dev/null"]
        weights.write(b"2")
        weights.flush()
        assert str(house.differing()) == weights.name


@pytest.mark.parametrize(
    ("program", "missed"),
    [
        (
            "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('127.0.0.1', 9))",
            "it connects to the network",
        ),
        ("import socket; s = socket.socketpair()", None),
    ],
)
def test_what_is_not_seen_is_not_kept(program: str, missed: str | None, house: House) -> None:
    house.write("start.py", f"{program}; result = 1\n")
    settle(house.folder)
    if missed is None:
        house.run("forked")
        return
    with pytest.raises(UnknownDependencyError, match=missed):
        house.run("forked")


#: Reads a file each by readers that no hook of Python sees.
READERS = """
import torch, safetensors.torch
from pathlib import Path
weights = safetensors.torch.load_file("weights.safetensors")
program = torch.export.load("program.pt2")
script = torch.jit.load("script.pt")
storage = torch.UntypedStorage.from_file("storage.bin", False, 4)
archive = torch._C.PyTorchFileReader("archive.pt").get_all_records()
tensor = torch.from_file("tensor.bin", size=1)
result = 1
"""


@pytest.mark.slow
def test_files_that_torch_and_safetensors_open_in_cpp_and_rust_count(house: House) -> None:
    house.folder.mkdir()
    module = torch.nn.Linear(2, 2)
    safetensors.torch.save_model(module, str(house.folder / "weights.safetensors"))
    torch.export.save(torch.export.export(module, (torch.ones(1, 2),)), house.folder / "program.pt2")
    torch.jit.script(module).save(str(house.folder / "script.pt"))
    torch.save(module.state_dict(), house.folder / "archive.pt")
    for name in ("storage.bin", "tensor.bin"):
        house.write(name, "1234")
    house.write("start.py", READERS)
    settle(house.folder)
    assert not house.run("forked").startswith("failed")
    seen = {fact.place for fact in house.facts if fact.kind == "file"}
    files = ("weights.safetensors", "program.pt2", "script.pt", "archive.pt", "storage.bin", "tensor.bin")
    assert {f"<here>/{name}" for name in files} <= seen


@pytest.mark.parametrize(
    ("program", "noticed"),
    [
        ("import os; result = os.environ.get('WORD', '')", True),
        ("import os; result = os.getenv('WORD')", True),
        ("import os; result = 'WORD' in os.environ", True),
        ("import os; result = os.environb.get(b'WORD')", True),
        ("import os; result = os.getenvb(b'WORD')", True),
        ("import os; result = os.path.expandvars('$WORD')", True),
        ("import os; result = sorted(os.environ)", True),
        ("import os; result = [name for name in os.environb if name == b'WORD']", True),
        ("import os; result = [value for name, value in os.environ.items() if name == 'WORD']", True),
        ("import os; result = dict(os.environ).get('WORD')", True),
        ("import os; os.environ['WORD'] = 'own'; result = os.environ['WORD']", False),
        # What passes it on as a whole may read any.
        ("import os; result = len(os.environ.copy()) > 0", True),
    ],
)
def test_a_variable_counts_where_it_is_asked_for(program: str, noticed: bool, house: House) -> None:
    house.write("start.py", program + "\n")
    settle(house.folder)
    house.run()
    assert house.differing() is None
    house.variables["WORD"] = "another"
    assert (house.differing() is not None) is noticed


@pytest.mark.parametrize(
    "program",
    [
        "for name in os.environ:\n    if name == 'WORD': break\nresult = os.environ[name]",
        "for name, value in os.environ.items():\n    if name == 'WORD': break\nresult = value",
        "result = [value for name, value in os.environb.items() if name == b'WORD']",
        "result = os.environ.copy()['WORD']",
    ],
)
def test_the_value_of_a_variable_that_a_loop_finds_counts(program: str, house: House) -> None:
    house.write("start.py", f"import os\n{program}\n")
    settle(house.folder)
    house.variables["WORD"] = "one"
    house.run()
    assert house.differing() is None
    house.variables["WORD"] = "another"
    assert str(house.differing()) == "variable WORD"


def test_a_file_under_another_path_to_the_home_is_known_by_its_own(house: House, tmp_path: Path) -> None:
    house.write("start.py", "import pathlib; result = (pathlib.Path.home() / 'weights.txt').read_text()\n")
    home, link = tmp_path / "me", tmp_path / "link"
    home.mkdir()
    link.symlink_to(home)
    (home / "weights.txt").write_text("1")
    settle(home)
    house.variables["HOME"] = str(link)
    house.run()
    link.unlink()
    assert house.differing() is None
    (home / "weights.txt").write_text("2")
    assert str(house.differing()) == str(home / "weights.txt")


def test_a_file_that_was_changed_while_a_process_read_it_is_told(house: House) -> None:
    house.write("start.py", "open('a.txt').read(); open('a.txt', 'a').write('more'); result = 1\n")
    house.write("a.txt", "1")
    settle(house.folder)
    with pytest.raises(UnknownDependencyError, match=r"a\.txt"):
        house.run()


#: A template that noted something after its record, and the fork that has it in its own.
LATE = """
import os, sys
from pathlib import Path
from executorch_goldens.exporting.recording import Recorder
recorder = Recorder()
before, record, late, later = sys.argv[1:]
def end(file):
    # As if it had been watched.
    Path(file + ".seen").write_text('""')
    recorder.watched = True
    recorder.end()
    recorder.watched = False
recorder.install()
recorder.begin(Path(before))
end(before)
# As if it had begun an hour ago.
recorder.began -= 3600 * 10**9
open(late).read()
if os.fork() == 0:
    recorder.begin(Path(record), [], before)
    open(later).read()
    end(record)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("hours", [0, 2])
def test_a_file_is_dated_by_the_process_that_read_it(hours: int, house: House) -> None:
    for name in ("late.txt", "later.txt"):
        house.write(name, "1")
    settle(house.folder)
    before, late, later = (str(house.folder / name) for name in ("before", "late.txt", "later.txt"))
    house.record.parent.mkdir(parents=True)
    written = time.time_ns() - hours * 3600 * 10**9
    os.utime(late, ns=(written, written))
    command = [sys.executable, "-c", LATE, before, str(house.record), late, later]
    subprocess.run(command, cwd=ROOT, env=house.environment, check=True)
    if hours:
        # What was written since the template began, only the fork has read.
        assert {Path(fact.place).name for fact in house.recorded()} >= {"late.txt", "later.txt"}
        return
    with pytest.raises(UnknownDependencyError) as raised:
        house.recorded()
    assert raised.value.changed == late


@pytest.mark.parametrize(
    ("meanwhile", "kept"),
    [
        # What an installer that links files does when it makes or deletes another environment.
        ("os.link('a.txt', 'b.txt')", True),
        ("os.link('a.txt', 'b.txt'); os.unlink('b.txt')", True),
        ("os.chmod('a.txt', 0o600)", True),
        ("os.unlink('a.txt')", False),
        ("open('b.txt', 'w').write('1'); os.rename('b.txt', 'a.txt')", False),
        ("open('a.txt', 'r+').write('2')", False),
        # Another file with the old time, as archives and rsync leave it.
        (
            "at = os.stat('a.txt').st_mtime_ns; open('b.txt', 'w').write('2'); os.utime('b.txt', ns=(at, at)); "
            "os.rename('b.txt', 'a.txt')",
            False,
        ),
    ],
)
def test_a_file_counts_as_changed_where_more_than_its_time_of_change_moved(
    meanwhile: str, kept: bool, house: House
) -> None:
    house.write("start.py", f"import os\nresult = open('a.txt').read()\n{meanwhile}\n")
    house.write("a.txt", "1")
    settle(house.folder)
    if not kept:
        with pytest.raises(UnknownDependencyError, match=r"a\.txt"):
            house.run()
        return
    house.run()
    assert house.differing() is None
    house.write("a.txt", "2")
    assert str(house.differing()) == "<here>/a.txt"


def test_a_record_holds_in_another_place(house: House, tmp_path: Path) -> None:
    house.write("start.py", "from zoo.a import value as result\n")
    house.write("zoo/a.py", "value = open('a.txt').read()\n")
    house.write("a.txt", "1")
    settle(house.folder)
    house.run()
    moved = House(tmp_path / "elsewhere", house.record, facts=house.facts)
    shutil.copytree(house.folder, moved.folder)
    assert moved.differing() is None
    moved.write("a.txt", "2")
    assert str(moved.differing()) == "<here>/a.txt"


def test_where_the_system_refuses_it_nothing_is_kept_and_why_is_said(house: House) -> None:
    """As in a process that somebody watches already."""
    hearing, telling = socket.socketpair()
    with hearing, telling:
        process = os.fork()
        if process == 0:
            said = [worker.watched(telling), worker.watched(telling)]
            os.write(telling.fileno(), json.dumps(said).encode())
            os._exit(0)
        _, listeners, _, _ = socket.recv_fds(hearing, 6, 1)
        first, again = json.loads(hearing.recv(4096))
        os.waitpid(process, 0)
        os.close(listeners[0])
    assert first is True
    assert again.startswith("this system does not show which files it opens (seccomp: ")
    house.write("start.py", "result = 1\n")
    settle(house.folder)
    house.run()
    lines = house.record.read_text().splitlines()
    house.record.write_text("\n".join([*lines[:-1], json.dumps(again)]))
    with pytest.raises(UnknownDependencyError, match="seccomp"):
        house.recorded()
