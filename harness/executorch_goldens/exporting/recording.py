"""Records the dependencies of an export, as a compiler's ``-MD`` does: the files it opened, and what it looked for.

A template that imports its release is seen by hooks of Python. From then on `exporting.system_calls` sees what any code
does with files; hooks only tell which modules were looked for and which variables were asked for.

`sweep.facts` reads a record: lines of JSON, of which the first says when it began and where its template's is, each
further one is a fact, and the last is empty, or says why the record does not hold all.
"""

# ruff: noqa: PTH100, PTH114, PTH118, PTH123
# Hooks are given text, and what pathlib calls would be recorded.
from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from executorch_goldens.zoo.variations import replace_in_os

#: Kinds of facts: the content of a file; what there is where something was looked for.
FILE, LOOK = "file", "look"
#: Places of a `LOOK` beside paths: names in a folder, of all, distributions, files that lengthen the path of imports,
#: and those with any suffix; a variable; the names of all variables.
ALL, DISTRIBUTIONS, PATHS, SUFFIXES, VARIABLE, VARIABLES = "/*", "/*-info", "/*.pth", ".*", "$", "$*"
NOTHING = "nothing"
#: A listing of all names with what each is; kinds of listings, each of which says more than the one before.
ENTRIES = f"{ALL}+"
LISTED = ("", DISTRIBUTIONS, ALL, ENTRIES)
#: Ends the name of the file with what `exporting.system_calls` has seen, beside a record.
SEEN = ".seen"

#: Variables that name a folder where exports leave what is asked for besides: no input.
OUTPUTS = ("GOLDENS_BRANCHES", "GOLDENS_FIELDED", "GOLDENS_RECORDS")
#: Variables that name places of a machine or a person, or that a variation sets, and `OUTPUTS`: none may matter.
NO_VARIABLES = (
    *("PATH", "PYTHONPATH", "PYTHONHASHSEED", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHLVL", "_"),
    *("TMPDIR", "TEMP", "TMP", "COLUMNS", "LINES", "TERM", "VIRTUAL_ENV", "TZ", "LC_ALL", "HOSTNAME"),
    *OUTPUTS,
)
#: The module that lists a directory to import from it: the names that are looked for count, not the others.
IMPORTER = "<frozen importlib._bootstrap_external>"

#: Events of Python that are system calls as well, each in its turn with those of others.
SEEN_BELOW = ("open", "os.mkdir", "os.rename")

#: Age, in ns, up to which a file may change again without a new modification time.
SETTLED_NS = 2_000_000_000
#: Types of paths.
NAMED = (str, bytes, os.PathLike)
_listdir, _stat, _access, _readlink = os.listdir, os.stat, os.access, os.readlink


@functools.cache
def _by_stem(folder: str, changed: int) -> dict[str, list[str]]:
    """Return the names in a folder by the text before their first dot: modules are looked up by it."""
    found: dict[str, list[str]] = {}
    for name in sorted(_listdir(folder)):
        found.setdefault(name.partition(".")[0], []).append(name)
    return found


def names_at(place: str) -> list[str]:
    """Return the names at a place that ends like `ALL`, but for compiled code, or like `SUFFIXES`."""
    folder, _, pattern = place.rpartition("/")
    try:
        changed = _stat(folder or "/").st_mtime_ns
        # A folder that is as young as this may change again without a new time.
        listed = _by_stem if changed < time.time_ns() - SETTLED_NS else _by_stem.__wrapped__
        by_stem = listed(folder or "/", changed)
    except (OSError, ValueError):
        return []
    if not pattern.startswith("*"):
        return by_stem.get(pattern.removesuffix(SUFFIXES), [])
    every = (name for names in by_stem.values() for name in names if name.endswith(pattern[1:]))
    return sorted(name for name in every if name != "__pycache__" and not name.endswith(".pyc"))


def look(place: str, variables: Mapping[str, str]) -> str:
    """Return what there is at a place, for a process with these variables."""
    if place == VARIABLES:
        found = " ".join(sorted({*variables} - {*NO_VARIABLES}))
    elif place.startswith(VARIABLE):
        found = f"={variables[place[1:]]}" if place[1:] in variables else NOTHING
    else:
        found = "/".join(names_at(place)) if "*" in place.rpartition("/")[2] else _at(place)
    return found.encode(errors="backslashreplace").decode()


def _at(path: str) -> str:
    """Return whether a path is a file, of which size, or a directory; how it may be accessed; where its link leads."""
    link = ""
    with contextlib.suppress(OSError, ValueError):
        link = f" -> {_readlink(path)}"
    try:
        found = _stat(path)
    except (OSError, ValueError):
        return NOTHING + link
    size = f" {found.st_size} bytes" if stat.S_ISREG(found.st_mode) else ""
    access = "".join(str(int(_access(path, mode))) for mode in (os.R_OK, os.W_OK, os.X_OK))
    return f"{stat.filemode(found.st_mode)[0]} {access}{size}{link}"


def state_when_read(file: str) -> str:
    """Return a file's size, time of modification and inode, which further names of it do not change."""
    try:
        found = _stat(file)
    except (OSError, ValueError):
        return NOTHING
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}" if stat.S_ISREG(found.st_mode) else NOTHING


def of_the_machine(place: str) -> bool:
    """Return whether a path is no input, but a device or what the kernel says; what is in memory may be one."""
    return f"{place}/".startswith(("/proc/", "/dev/", "/sys/")) and not place.startswith("/dev/shm/")


class Recorder:
    """Records what this process and its forks depend on."""

    def __init__(self) -> None:
        self.began = time.time_ns()
        # What no record has yet, and what one has.
        self.facts: dict[tuple[str, str], str] = {}
        self._before: set[tuple[str, str]] = set()
        # When the process began that noted what a fork of it has to record.
        self._since: dict[tuple[str, str], int] = {}
        # Made by this process: no input, and nor is what is in it.
        self._own: tuple[str, ...] = ()
        self._variables = dict(os.environ)
        # A variation may see the person's home by another path.
        home = os.environ.get("HOME", "")
        self._home = (home, os.path.realpath(home)) if home and os.path.islink(home) else None
        self._busy = False
        self._file: int | None = None
        self._path = ""
        #: Whether others see what this process does with files; else why not.
        self.watched: bool | str = False
        # What the names in folders that Python lists are for: those that are looked for (empty), distributions, all of
        # them; what each of them is, too, where anything else lists a folder.
        self._listings: dict[str, str] = {}

    def install(self, own: Iterable[str] = ()) -> None:
        """Begin to record; there is no way back. No input is in the folders `own`."""
        for folder in own:
            self._make(folder)
        # What came before: imports, and what Python looks for when it starts.
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.has_location and spec.origin:
                self._read(spec.origin)
                around = getattr(sys.modules.get(name.rpartition(".")[0]), "__path__", sys.path)
                self.find_spec(name, around)
        self._read(os.path.join(sys.prefix, "pyvenv.cfg"))
        self._read(os.path.realpath(sys.executable))
        for folder in sys.path:
            self.find_spec("sitecustomize", [folder])
            self.find_spec("usercustomize", [folder])
            self._note(LOOK, self._place(folder) + PATHS)
            for name in names_at(self._place(folder) + PATHS):
                self._read(os.path.join(folder, name))
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._hook())
        os.register_at_fork(after_in_child=self._forked)
        for name in ("stat", "lstat", "access", "readlink"):
            self._record_queries(name)
        self._record_variables()

    def pause(self, paused: bool) -> None:
        """Record nothing: what a process looks at that watches others is no dependency; or go on."""
        self._busy = paused

    def begin(self, file: Path, own: Iterable[str] = (), before: str | None = None) -> None:
        """Write to `file` what no record has yet, and each fact from now on; `before` is the template's record."""
        for each in (*own, *(os.environ[name] for name in OUTPUTS if name in os.environ), file):
            self._make(each)
        self._busy = True
        self._path = str(file)
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        noted = ([*key, value, self._since.get(key, self.began)] for key, value in self.facts.items())
        self._write([self.began, before], *noted)
        self._busy = False
        if before is None:
            # What is mapped from now on is seen when it is opened.
            for library in mapped():
                self._read(library)

    def end(self) -> None:
        """End the record: one without its end is none."""
        self._busy = True
        missed = (
            self._add_seen() if self.watched is True else self.watched or "nothing sees which files it opens"
        )
        self._write(missed or [])
        self._busy = False
        os.close(self._file)  # type: ignore[arg-type]
        self._file = None
        self._before |= self.facts.keys()
        self.facts, self._since = {}, {}

    def _add_seen(self) -> str:
        """Add what was seen to the record; return what was not, if anything."""
        with open(self._path + SEEN, encoding="utf-8") as seen:
            missed, *found = map(json.loads, seen)
        for kind, path, value in found:
            place = self._source(self._place(path))
            if kind == LOOK and place.endswith(ALL):
                folder = place.removesuffix(ALL)
                self._note_listing(folder, self._listings.get(folder, ENTRIES))
            elif not self._is_known(kind, place):
                # Of a file, as it was when it was first opened: one that changed since is no dependency that is known.
                self.facts[kind, place] = value if place == path else self._now(kind, place)
                self._write([kind, place, self.facts[kind, place]])
        return str(missed)

    def _write(self, *lines: object) -> None:
        assert self._file is not None
        os.write(self._file, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def _forked(self) -> None:
        if self._file is None:
            self._since = dict.fromkeys(self.facts, self.began) | self._since
            self.began = time.time_ns()

    def _is_known(self, kind: str, place: str) -> bool:
        """Return whether something is in a record already, or is no input."""
        key = (kind, place)
        own = f"{place}/".startswith(self._own) or (kind == LOOK and "__pycache__" in place)
        return own or key in self.facts or key in self._before or of_the_machine(place)

    def _now(self, kind: str, place: str) -> str:
        self._listings.setdefault(place.rpartition("/")[0], "")
        return look(place, self._variables) if kind == LOOK else state_when_read(place)

    def _note(self, kind: str, place: str) -> None:
        if self._is_known(kind, place):
            return
        busy, self._busy = self._busy, True
        self.facts[kind, place] = value = self._now(kind, place)
        if self._file is not None:
            self._write([kind, place, value])
        self._busy = busy

    def _make(self, path: Any) -> None:
        """Let what is at a path, or a variable, be this process's own from now on."""
        text = os.fsdecode(path)
        self._own += (f"{text if text.startswith(VARIABLE) else self._place(text)}/",)

    def _read(self, path: Any) -> None:
        """Note a file; of compiled code, its source."""
        self._note(FILE, self._source(self._place(path)))

    def _source(self, place: str) -> str:
        """Return the source of compiled code; of anything else, itself."""
        if place.endswith(".pyc") and "__pycache__" in place:
            with contextlib.suppress(ValueError, NotImplementedError):
                return importlib.util.source_from_cache(place)
        return place

    def _place(self, path: Any) -> str:
        """Return the absolute path by which something is known in every variation."""
        text = os.fsdecode(path)
        # Most are absolute and plain, and there are very many.
        odd = text[:1] != "/" or "//" in text or "/." in text or text.endswith("/")
        place = os.path.abspath(text) if odd else text
        if self._home is not None and f"{place}/".startswith(f"{self._home[0]}/"):
            return self._home[1] + place[len(self._home[0]) :]
        return place

    def find_spec(self, name: str, path: Iterable[object] | None = None, target: object = None) -> None:
        """Note that a module is looked for: this finder of imports finds nothing."""
        for folder in sys.path if path is None else path:
            if isinstance(folder, str):
                place = os.path.join(self._place(folder), name.rpartition(".")[2])
                self._note(LOOK, place + SUFFIXES)
                if place.rpartition("/")[2] in self.facts.get((LOOK, place + SUFFIXES), "").split("/"):
                    # Whether a directory is a package, or one of several parts of one, what is in it says.
                    self._note(LOOK, f"{place}/__init__{SUFFIXES}")

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        handlers: dict[str, Callable[..., None]] = {
            "open": self._opened,
            "import": lambda module, file, *_: self._read(file) if file else None,
            "os.listdir": self._listed,
            "os.scandir": functools.partial(self._listed, entries=True),
            # It is an event where there is one already, too.
            "os.mkdir": lambda path, *_: None if os.path.lexists(path) else self._make(path),
            "os.rename": lambda source, target, *_: self._make(target),
        }

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            # There is an event of each `id()`: what is none of these must cost nothing.
            if event not in handlers or self._busy or (self.watched is True and event in SEEN_BELOW):
                return
            self._busy = True
            try:
                handlers[event](*arguments)
            finally:
                self._busy = False

        return hook

    def _opened(self, path: Any, mode: object, flags: int) -> None:
        if not isinstance(path, NAMED):
            return
        if flags & os.O_TRUNC or (flags & os.O_EXCL and not os.path.lexists(path)):
            key = (FILE, self._place(path))
            if key not in self.facts and key not in self._before:
                self._make(path)
        elif flags & os.O_ACCMODE != os.O_WRONLY:
            self._read(path)

    def _listed(self, path: Any = None, entries: bool = False) -> None:
        # The shuffler of listings (`executorch_goldens.zoo.variations`) lists for another.
        frame = sys._getframe(2)
        caller, other = frame.f_code.co_filename, (frame.f_back or frame).f_code.co_filename
        folder = self._place(_readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path or ".")
        of_metadata = "importlib/metadata/" in caller + other
        listed = "" if caller == IMPORTER else DISTRIBUTIONS if of_metadata else ENTRIES if entries else ALL
        self._listings[folder] = max(self._listings.get(folder, ""), listed, key=LISTED.index)
        if self.watched is not True:
            self._note_listing(folder, listed)

    def _note_listing(self, folder: str, listed: str) -> None:
        """Note the names in a folder that count."""
        if listed:
            self._note(LOOK, folder + listed.removesuffix("+"))
        # Each entry of a scan says what it is without a query.
        for name in names_at(folder + ALL) if listed == ENTRIES else ():
            self._note(LOOK, os.path.join(folder, name))

    def _record_queries(self, name: str) -> None:
        """Let this process record a kind of its queries of paths: there is no event for them."""
        real = getattr(os, name)

        def asked(path: Any, *arguments: Any, **named: Any) -> Any:
            by_path = isinstance(path, NAMED) and named.get("dir_fd") is None
            if by_path and not self._busy and self.watched is not True:
                self._note(LOOK, self._place(path))
            return real(path, *arguments, **named)

        replace_in_os(name, asked)
        for supporting in (each for each in vars(os).values() if isinstance(each, set)):
            supporting.update({asked} if real in supporting else ())

    def _record_variables(self) -> None:
        """Let this process record which variables it asks for, and whether its case asks for the names of all."""
        kind = type(os.environ)

        def note(name: str) -> None:
            # While they are imported, libraries loop over all, for a prefix: that is no dependency.
            loops = self._file is None and sys._getframe(2).f_code.co_name == "__iter__"
            if name not in NO_VARIABLES and not loops:
                self._note(LOOK, VARIABLE + name)

        def record(method: str) -> None:
            real = getattr(kind, method)

            def asked(environment: Any, *arguments: Any) -> Any:
                if arguments and isinstance(arguments[0], str | bytes):
                    if method != "__setitem__":
                        note(os.fsdecode(arguments[0]))
                    if method != "__getitem__":
                        self._make(VARIABLE + os.fsdecode(arguments[0]))
                elif method == "__iter__" and self._file is not None:
                    self._note(LOOK, VARIABLES)
                return real(environment, *arguments)

            setattr(kind, method, asked)

        for method in ("__getitem__", "__setitem__", "__delitem__", "__iter__"):
            record(method)


def mapped() -> Iterator[str]:
    """Yield the files that this process has mapped, libraries for the most part; nothing where no list of them is."""
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="surrogateescape") as maps:
        found = {
            line.rstrip("\n").split(maxsplit=5)[5] for line in maps if line.count(" ") > 5 and "/" in line
        }
        yield from sorted(path for path in found if path.startswith("/") and not path.endswith(" (deleted)"))
