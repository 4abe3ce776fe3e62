"""Records the dependencies of an export, as a compiler's ``-MD`` does: opened, looked for, listed and queried paths.

`store.facts` reads a record: an artifact is used again if all of it is as it was. It is plain Python with the
standard library alone, so that a process records from its first lines on. What no hook shows, the page "Running" says.
"""

# ruff: noqa: PTH100, PTH113, PTH114, PTH118, PTH123
# What hooks are given is text, and what pathlib calls would be recorded.
from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from executorch_goldens.variations import replace_in_os

#: Kinds of what a record holds, and of `store.facts.Fact`: the content of a file, what is at a path,
#: names in a directory, an environment variable. Facts have one more: the part of a file that a function depends on.
FILE, PATH, LISTING, VARIABLE = "file", "path", "listing", "variable"
PART = "part"

#: Of a directory or the environment, every name; those of distributions; those of files that lengthen the path of
#: imports.
ALL, DISTRIBUTIONS, PATHS = "*", "*-info", "*.pth"

#: Of a path: where a link leads to. A number asks whether it may be accessed so, nothing what is there.
LINK = "link"
#: Value of what is not there, or not readable.
NOTHING = "nothing"

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
#: Folders of libraries: of Python, of packages, of this project. They loop over all variables to pass them on, or to
#: find those with a prefix of their own. Only for other code is such a loop a dependency.
PACKAGES = ("/site-packages/", "/dist-packages/")
LIBRARIES = ("<frozen ", f"{Path(os.__file__).parent}/", f"{Path(__file__).parents[1]}/")

Handler = Callable[..., None]
_listdir, _stat, _access, _readlink = os.listdir, os.stat, os.access, os.readlink


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
        self._first_variables = tuple(os.environ)
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
            "os.scandir": functools.partial(self._listed, entries=True),
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
        for name in ("stat", "lstat", "access", "readlink"):
            self._replace_query(name)
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

    def _listed(self, path: object = None, entries: bool = False) -> None:
        frame = sys._getframe(2)
        # The shuffler of listings (`executorch_goldens.variations`) lists for another.
        if frame.f_globals.get("__name__") == "executorch_goldens.variations" and frame.f_back is not None:
            frame = frame.f_back
        caller = frame.f_code.co_filename
        if caller == IMPORTER or not isinstance(path, str | bytes | os.PathLike | None):
            return
        wanted = DISTRIBUTIONS if caller.endswith("importlib/metadata/__init__.py") else ALL
        place = self._place(path or ".")
        self._look(place, wanted)
        if entries:
            # Each says what it is without a query.
            for name in self._matching(place, wanted):
                self._queried(os.path.join(place, name))

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

    def _queried(self, place: str, what: str = "") -> None:
        self._note(PATH, place, what, lambda: queried(place, what))

    def _replace_query(self, name: str) -> None:
        """Let this process record its queries of paths: there is no event for them."""
        real = getattr(os, name)

        def asked(path: Any, *arguments: Any, **named: Any) -> Any:
            plain = isinstance(path, str | bytes | os.PathLike) and named.get("dir_fd") is None
            if plain and not self._busy:
                place = self._place(path)
                if name == "access":
                    self._queried(place, str(*(arguments[:1] or (named["mode"],))))
                elif name != "readlink":
                    self._queried(place)
                if name == "readlink" or is_link(place, name, named):
                    self._queried(place, LINK)
            return real(path, *arguments, **named)

        replace_in_os(name, asked)
        ways = (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids)
        for supporting in ways:
            if real in supporting:
                supporting.add(asked)

    def _replace_environment(self) -> None:
        """Let this process note which variables it asks for, and whether its case asks for the names of all."""
        kind = type(os.environ)
        get, put, delete = kind.__getitem__, kind.__setitem__, kind.__delitem__

        def note(environment: Any, name: Any) -> None:
            place = os.fsdecode(name) if isinstance(name, str | bytes) else None
            if place is not None and place not in self._own_variables and not is_passed_on(sys._getframe(2)):
                self._note(VARIABLE, place, "", lambda: environment._data.get(os.fsencode(place)))

        def getitem(environment: Any, name: Any) -> Any:
            note(environment, name)
            return get(environment, name)

        def setitem(environment: Any, name: Any, value: Any) -> None:
            put(environment, name, value)
            self._own_variables.add(os.fsdecode(name))

        def delitem(environment: Any, name: Any) -> None:
            note(environment, name)
            delete(environment, name)
            self._own_variables.add(os.fsdecode(name))

        def whole(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def asked(environment: Any) -> Any:
                if not is_of_library(sys._getframe(1)):
                    self._note(VARIABLE, ALL, "", lambda: "\0".join(self._first_variables))
                return real(environment)

            return asked

        kind.__getitem__, kind.__setitem__, kind.__delitem__ = getitem, setitem, delitem  # type: ignore[method-assign]
        kind.__iter__, kind.__len__ = whole(kind.__iter__), whole(kind.__len__)  # type: ignore[method-assign]
        if os.supports_bytes_environ:
            # A plain dictionary, which both are made of.
            sys.modules["posix"].environ = os.environb  # type: ignore[attr-defined]

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


def is_of_library(frame: Any) -> bool:
    """Return whether a library asks, through views of a mapping or at once."""
    while frame.f_back is not None and "_collections_abc" in frame.f_code.co_filename:
        frame = frame.f_back
    file = frame.f_code.co_filename
    return file.startswith(LIBRARIES) or any(folder in file for folder in PACKAGES)


def is_passed_on(frame: Any) -> bool:
    """Return whether a variable is read because a library loops over all of them, with their values."""
    is_view = frame.f_code.co_name == "__iter__" and "_collections_abc" in frame.f_code.co_filename
    return is_view and is_of_library(frame)


def is_link(place: str, query: str, named: Mapping[str, Any]) -> bool:
    """Return whether a query finds a link instead of what it leads to."""
    of_itself = query == "lstat" or named.get("follow_symlinks") is False
    return of_itself and queried(place, LINK) != NOTHING


def queried(path: str, what: str = "") -> str:
    """Return what a query of a path finds: `LINK`, a mode of access, or by default the state."""
    try:
        if what == LINK:
            return _readlink(path)
        return str(_access(path, int(what))) if what else seen(_stat(path))
    except (OSError, ValueError):
        return NOTHING


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
