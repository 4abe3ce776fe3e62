"""Records the dependencies of an export, as a compiler's ``-MD`` does: opened, looked for, listed and queried paths.

`store.facts` reads a record: an artifact is used again if all of it is as it was. It is plain Python with the
standard library alone, so that a process records from its first lines on. What no hook shows, the page "Running" says.
"""

# ruff: noqa: PTH100, PTH113, PTH114, PTH118, PTH123
# What hooks are given is text, and what pathlib calls would be recorded.
from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

#: Kinds of what a record holds, and of `store.facts.Fact`: the content of a file, what is at a path,
#: names in a directory, an environment variable. Facts have one more: the part of a file that a function depends on.
FILE, PATH, LISTING, VARIABLE = "file", "path", "listing", "variable"
PART = "part"

#: Of a directory, every name; those of distributions; those of files that lengthen the path of imports.
ALL, DISTRIBUTIONS, PATHS = "*", "*-info", "*.pth"

#: Folders whose content is the machine's, and changes all the time.
NO_FILES = ("/proc/", "/dev/", "/sys/")
#: Names that Python looks for before anything can record it.
FIRST_NAMES = ("sitecustomize", "usercustomize")
#: Variables that name a folder where exports leave what is asked for besides: no input.
OUTPUTS = ("GOLDENS_BRANCHES", "GOLDENS_FIELDED", "GOLDENS_RECORDS")
#: Ends of paths that are written otherwise.
ODD = ("/", "/.", "/..")
#: The module that lists a directory to import from it: the names that are looked for count, not the others.
IMPORTER = "<frozen importlib._bootstrap_external>"

Handler = Callable[..., None]
_listdir, _stat = os.listdir, os.stat


class Recorder:
    """Records the files that this process and its forks have depended on.

    Attributes
    ----------
    began
        When, in nanoseconds: a file that was changed later may have been read before.
    facts
        Kind, place and, of a directory, the name that was looked for; to what was seen there: of a file that was read,
        `state_when_read`.
    case
        The file of the case's module, and the function there that makes the case; None if it is no such function.
    """

    def __init__(self) -> None:
        self.began = time.time_ns()
        self.facts: dict[tuple[str, str, str], Any] = {}
        self.case: tuple[str, str] | None = None
        self._before: frozenset[tuple[str, str, str]] = frozenset()
        # Made by this process: no input, and nor is what is in it.
        self._own_files: set[str] = set()
        self._own_folders: tuple[str, ...] = NO_FILES
        self._own_variables: set[str] = set()
        self._yielded: str | None = None
        # A variation may see the person's home by another path.
        home = os.environ.get("HOME", "")
        self._home = (home, os.path.realpath(home)) if home and os.path.islink(home) else None
        self._busy = False
        self._spill: int | None = None
        self._spill_file = Path()
        self._is_copy = False
        self._names: dict[str, tuple[int, dict[str, list[str]]]] = {}
        self._handlers: dict[str, Handler] = {
            "open": self._opened,
            "import": self._imported,
            "os.listdir": self._listed,
            "os.scandir": self._listed,
            "os.mkdir": self._made,
            "tempfile.mkdtemp": self._made,
            "os.rename": lambda source, target, *_: self._own_files.add(self._place(target)),
            "ctypes.dlopen": lambda name: self._file(name) if name and os.sep in os.fsdecode(name) else None,
            "subprocess.Popen": self._ran,
            "os.posix_spawn": lambda path, words, _: self._ran(path, words),
            "os.exec": lambda path, words, _: self._ran(path, words),
        }

    def install(self, own: Iterable[str] = ()) -> None:
        """Begin to record; there is no way back.

        Parameters
        ----------
        own
            Folders in which no input is.
        """
        self._own_folders += tuple(f"{self._place(folder)}/" for folder in own)
        # Earlier imports count as well.
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.has_location and spec.origin:
                self._file(spec.origin)
                parent, _, last = name.rpartition(".")
                around = getattr(sys.modules.get(parent), "__path__", ()) if parent else sys.path
                self.looked_for(last, around)
        self._file(str(Path(sys.prefix) / "pyvenv.cfg"))
        for folder in sys.path:
            for name in (*FIRST_NAMES, PATHS):
                self.looked_for(name, (folder,))
            for file in self._matching(folder, PATHS):
                self._file(os.path.join(folder, file))
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._hook())
        os.register_at_fork(after_in_child=self._forked)
        self._replace_stat("stat", _stat)
        self._replace_stat("lstat", os.lstat)
        self._replace_environment()

    def begin(self, spill: Path, own: Iterable[str], afresh: bool) -> None:
        """Begin with one request: later forks of this process write their dependencies to `spill`.

        Parameters
        ----------
        own
            Folders that are this process's alone.
        afresh
            Whether the record of the process that this one was forked from says what came before.
        """
        if afresh:
            self.began = time.time_ns()
            self._before = frozenset(self.facts)
            self.facts = {}
        left = (os.environ[name] for name in OUTPUTS if name in os.environ)
        self._own_folders += tuple(f"{self._place(folder)}/" for folder in (*own, *left))
        self._spill_file = spill
        self._own_files.add(self._place(spill))
        self._spill = os.open(spill, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def made_by(self, function: object) -> None:
        """Note the function that makes the case, where it is one of a module, by name."""
        code, name = getattr(function, "__code__", None), getattr(function, "__qualname__", ".")
        if code is not None and name.isidentifier() and name == code.co_name:
            self.case = (self._place(code.co_filename), name)

    def write(self, file: Path, before: str | None = None) -> None:
        """Leave the record: ``before`` names that of the process that this one was forked from."""
        self._busy = True
        if self._spill is not None:
            for line in self._spill_file.read_bytes().split(b"\n")[:-1]:
                key, value = json.loads(line)
                self.facts.setdefault(tuple(key), value)
        for library in mapped():
            self._file(library)
        facts = [[*key, value] for key, value in self.facts.items()]
        file.write_text(
            json.dumps({"began": self.began, "before": before, "case": self.case, "facts": facts})
        )
        self._busy = False

    # The finder of imports, which finds nothing

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Note that a module is looked for."""
        self.looked_for(name.rpartition(".")[2], sys.path if path is None else path)

    def looked_for(self, name: str, folders: Iterable[object]) -> None:
        """Note which names of each folder a look for `name` depends on."""
        for folder in folders:
            if isinstance(folder, str):
                place = self._place(folder)
                self._look(place, name)
                if name in (self.facts.get((LISTING, place, name)) or ()):
                    # Whether a directory is a package, or one of several parts of one, what is in it says.
                    self._look(os.path.join(place, name), "__init__")

    def _look(self, folder: str, wanted: str) -> None:
        self._note(LISTING, folder, wanted, lambda: self._matching(folder, wanted))

    def _matching(self, folder: str, wanted: str) -> list[str]:
        busy, self._busy = self._busy, True
        try:
            changed = _stat(folder or ".").st_mtime_ns
            if self._names.get(folder, (None,))[0] != changed:
                self._names[folder] = (changed, by_stem(_listdir(folder or ".")))
            return matching(self._names[folder][1], wanted)
        except OSError:
            return []
        finally:
            self._busy = busy

    # Events

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        handlers = self._handlers

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            # There is an event of each `id()`: what is none of these must cost nothing.
            if event not in handlers or self._busy:
                return
            self._busy = True
            try:
                handlers[event](*arguments)
            finally:
                self._busy = False

        return hook

    def _opened(self, path: object, mode: object, flags: int) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        key = (FILE, self._place(path), "")
        if flags & (os.O_TRUNC | os.O_EXCL):
            # From now on it holds this process's own output.
            if key not in self.facts and key not in self._before:
                self._own_files.add(key[1])
        elif flags & os.O_ACCMODE != os.O_WRONLY:
            self._file(path)

    def _imported(self, module: str, file: str | None, *_: object) -> None:
        if file is not None:
            self._file(file)

    def _listed(self, path: object = None) -> None:
        frame = sys._getframe(2)
        # The shuffler of listings (`executorch_goldens.variations`) lists for another.
        if frame.f_globals.get("__name__") == "executorch_goldens.variations" and frame.f_back is not None:
            frame = frame.f_back
        caller = frame.f_code.co_filename
        if caller == IMPORTER or not isinstance(path, str | bytes | os.PathLike | None):
            return
        wanted = DISTRIBUTIONS if caller.endswith("importlib/metadata/__init__.py") else ALL
        self._look(self._place(path or "."), wanted)

    def _made(self, path: object, *_: object) -> None:
        self._own_folders += (f"{self._place(path)}/",)

    def _ran(
        self, program: object, words: Iterable[object], folder: object = None, variables: Any = None
    ) -> None:
        """Record a program, where it was looked for, and the files among its arguments."""
        if isinstance(words, str | bytes | os.PathLike):
            words = [words]
        name = os.fsdecode(program) if isinstance(program, str | bytes | os.PathLike) else ""
        path = (variables or os.environ).get("PATH", os.defpath)
        if name and os.sep not in name:
            self.looked_for(name.partition(".")[0], str(path).split(os.pathsep))
            name = shutil.which(name, path=str(path)) or name
        for word in (name, *words):
            if isinstance(word, str | bytes | os.PathLike) and word:
                # An option may have it after an equals sign.
                text = os.fsdecode(word).rpartition("=")[2]
                with contextlib.suppress(OSError, ValueError):
                    self._given(os.path.join(os.fsdecode(folder), text) if folder else text)  # type: ignore[arg-type]

    def _given(self, path: str) -> None:
        """Note the file at a path, or the files of the folder; raise OSError where there is nothing."""
        place = self._place(path)
        if stat.S_ISREG(_stat(place).st_mode):
            self._file(place)
        elif place != "/":
            self._look(place, ALL)
            for inner in self._matching(place, ALL):
                if os.path.isfile(os.path.join(place, inner)):
                    self._file(os.path.join(place, inner))

    def _replace_stat(self, name: str, real: Callable[..., os.stat_result]) -> None:
        """Let this process record its queries of paths: there is no event for them."""

        def asked(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
            if (
                self._busy
                or not isinstance(path, str | bytes | os.PathLike)
                or named.get("dir_fd") is not None
            ):
                return real(path, *arguments, **named)
            place = self._place(path)
            try:
                found = real(path, *arguments, **named)
            except OSError:
                self._note(PATH, place, "", lambda: "nothing")
                raise
            # Of a link, what it leads to.
            with contextlib.suppress(OSError):
                self._note(PATH, place, "", lambda: seen(_stat(place)))
            return found

        setattr(os, name, asked)
        for supporting in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if real in supporting:
                supporting.add(asked)

    def _replace_environment(self) -> None:
        """Let this process note which variables it asks for; not those of an environment that is taken as a whole."""
        kind = type(os.environ)
        get, put, iterate = kind.__getitem__, kind.__setitem__, kind.__iter__

        def getitem(environment: Any, name: Any) -> Any:
            if isinstance(name, str) and name != self._yielded and name not in self._own_variables:
                self._note(
                    VARIABLE, name, "", lambda: environment._data.get(environment.encodekey(name), None)
                )
            return get(environment, name)

        def setitem(environment: Any, name: Any, value: Any) -> None:
            self._own_variables.add(name)
            put(environment, name, value)

        def iterated(environment: Any) -> Iterator[Any]:
            for name in iterate(environment):
                self._yielded = name
                yield name
            self._yielded = None

        kind.__getitem__, kind.__setitem__, kind.__iter__ = getitem, setitem, iterated  # type: ignore[method-assign]

    def _forked(self) -> None:
        self._is_copy = self._spill is not None

    def _file(self, path: object) -> None:
        place = source_of(self._place(path))
        self._note(FILE, place, "", lambda: state_when_read(place))

    def _note(self, kind: str, place: str, what: str, see: Callable[[], Any]) -> None:
        key = (kind, place, what)
        if key in self._before or key in self.facts:
            return
        if kind != VARIABLE and (place in self._own_files or f"{place}/".startswith(self._own_folders)):
            return
        if kind in (PATH, LISTING) and "__pycache__" in place:
            return
        value = see()
        value = os.fsdecode(value) if isinstance(value, bytes) else value
        self.facts[key] = value
        if self._is_copy and self._spill is not None:
            os.write(self._spill, json.dumps([key, value]).encode() + b"\n")

    def _place(self, path: object) -> str:
        """Return the absolute path by which something is known in every variation."""
        text = os.fsdecode(path)  # type: ignore[arg-type]
        # Most are absolute and plain, and there are very many.
        odd = text[:1] != "/" or "//" in text or "/./" in text or "/../" in text or text.endswith(ODD)
        place = os.path.abspath(text) if odd else text
        if self._home is not None and f"{place}/".startswith(f"{self._home[0]}/"):
            return self._home[1] + place[len(self._home[0]) :]
        return place


def source_of(file: str) -> str:
    """Return the source of compiled code; any other file itself."""
    if file.endswith(".pyc") and "__pycache__" in file:
        with contextlib.suppress(ValueError, NotImplementedError):
            return importlib.util.source_from_cache(file)
    return file


def state_when_read(file: str) -> tuple[int, int, int] | None:
    """Return a file's size, time of modification and inode, which further names of it do not change."""
    try:
        found = _stat(file)
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ino)


def seen(found: os.stat_result) -> str:
    """Return the recorded state of a path."""
    if stat.S_ISREG(found.st_mode):
        return f"file of {found.st_size} bytes"
    return "directory" if stat.S_ISDIR(found.st_mode) else "other"


def by_stem(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of a directory by the text before their first dot: modules are looked up by it."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(name.partition(".")[0], []).append(name)
    return found


def matching(names: dict[str, list[str]], wanted: str) -> list[str]:
    """Return those of `by_stem` that a look for `wanted` depends on.

    >>> names = by_stem(["a.py", "a", "b.py", "__pycache__", "b-1.dist-info"])
    >>> matching(names, "a"), matching(names, "*-info"), matching(names, "*")
    (['a', 'a.py'], ['b-1.dist-info'], ['a', 'a.py', 'b-1.dist-info', 'b.py'])
    """
    if not wanted.startswith("*"):
        return names.get(wanted, [])
    every = (name for of_stem in names.values() for name in of_stem)
    return sorted(
        name
        for name in every
        if name.endswith(wanted[1:]) and name != "__pycache__" and not name.endswith(".pyc")
    )


def mapped() -> Iterator[str]:
    """Yield the files that this process has mapped, libraries for the most part; nothing where no list of them is."""
    with (
        contextlib.suppress(OSError),
        open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps,
    ):
        found = {
            line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count(" ") > 5 and "/" in line
        }
        yield from sorted(path for path in found if path.startswith("/") and not path.endswith(" (deleted)"))
