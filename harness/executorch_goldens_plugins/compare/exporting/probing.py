"""Says of an export whether edited functions decide anything in it (weak mutation; W. E. Howden, 1982).

At a call of an edited function this process forks. The copy becomes the base (`EditedFile.become_base`), calls the
function, and hands back a digest of what came out: result or exception, all that the arguments lead to afterwards
(`states`), and the tensors that modules and programs among them had before, which others hold as well. Here the head's
function is called, and the digests are compared. Nothing that the copy does is seen here: the artifact is that of an
export without probes.

Outermost calls alone are compared: in the copy, what they call is the base's as well. A pass that runs edited functions
is compared as a whole, from graph to graph.

Whatever cannot be compared is unknown, and an error in becoming the base makes a difference: no edit is held to decide
nothing because of what this module does not know.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import copy
import functools
import gc
import inspect
import os
import select
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from executorch_goldens.artifact import DIFFERS, GAVE_THE_SAME, UNKNOWN, VERDICTS, ProbedFunction
from executorch_goldens.exporting.blame import handed_on
from executorch_goldens.exporting.limits import Idleness, limit_processor
from executorch_goldens.patches.guard import SEEN_THROUGH
from executorch_goldens_plugins.compare.exporting.operands import Operands
from executorch_goldens_plugins.compare.reach import code
from executorch_goldens_plugins.compare.reach.edits import of_functions

#: Names under which decorators find `Prober.mark`, and edited statements `Prober.look`.
NAME, LOOK_AT = "__executorch_goldens_probed__", "__executorch_goldens_read__"
#: Seconds of processor time of a copy, and seconds that it may be idle.
LONGEST, IDLE = 20.0, 20.0
#: Calls of a function that are compared in an export: a copy takes 30 to 60 ms, and an export of a small cell 0.4 s.
MOST = 20
#: Seconds between two looks at a copy.
LOOK = 1.0
#: Decorators that do no more than to change the function that they are given.
OWN = frozenset(
    (
        *("staticmethod", "classmethod", "property", "abstractmethod", "override", "final", "wraps"),
        *("cache", "lru_cache", "cached_property", "contextmanager", "no_grad"),
    )
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef


class _UnknownError(BaseException):
    """In a copy: nobody knows what the base would do. What catches an Exception does not catch this."""


@dataclass(eq=False)
class EditedFunction:
    """A function of the head whose calls are compared with those of the base's.

    Attributes
    ----------
    base
        What the base has under its name, in a copy that has become the base; None where it has nothing.
    """

    file: EditedFile
    name: str
    head: Callable[..., Any]
    base: Callable[..., Any] | None = None

    @handed_on
    def of_base(self, *given: Any, **named: Any) -> Any:
        """Call what the base would call."""
        if self.base is not None:
            return self.base(*given, **named)
        within, _, name = self.name.rpartition(".")
        inherited = (
            getattr(super(self.file.classes[within], given[0]), name, None)
            if within in self.file.classes
            else None
        )
        if inherited is None:
            raise _UnknownError
        return inherited(*given[1:], **named)


class EditedFile:
    """A file of the head, and what becomes of it in a copy.

    Attributes
    ----------
    functions
        Those that are compared, by their names.
    classes
        Its classes, by their names.
    nodes
        The functions of its tree, by their names.
    operands
        What edited statements read, by function.
    is_open
        Whether an effect of its edit may show without a call of these functions.
    """

    def __init__(self, inside: str, head: str, base: str, names: Sequence[str]) -> None:
        self.inside = inside
        self.functions: dict[str, EditedFunction] = {}
        self.classes: dict[str, type] = {}
        self.module: ModuleType | None = None
        self.now, self.was = code.module(head), code.module(base)
        self.tree, self.former = ast.parse(head), ast.parse(base)
        self.names = [name for name in names if name in self.now.functions]
        self.removed = [name for name in self.was.functions if name not in self.now.functions]
        former = dict(_definitions(self.former, self.was))
        self.nodes = dict(_definitions(self.tree, self.now))
        self.operands = {
            edit.function: Operands(edit, self.nodes[edit.function], former.get(edit.function))
            for edit in of_functions(inside, self.was, self.now)
            if edit.function in self.names
        }
        self.is_open = self._has_open_decorators(former) or self._differs_outside()
        self.makers = {
            name: self._maker(node, wrapped=name in self.names)
            for name, node in former.items()
            if name in self.names or name in self.removed
        }

    def marked(self) -> ast.Module:
        """Return the head's tree: functions and classes are handed to `Prober.mark`, edited statements looked at."""
        for name, node in (*self.nodes.items(), *_classes(self.tree)):
            if name in self.operands:
                self._look(name, node.body)
            if name in self.names or isinstance(node, ast.ClassDef):
                mark = ast.Call(
                    ast.Name(NAME, ast.Load()), [ast.Constant(self.inside), ast.Constant(name)], []
                )
                node.decorator_list.append(ast.copy_location(mark, node))
        return self.tree

    def _look(self, name: str, body: list[ast.stmt]) -> None:
        """Put a call before each edited statement of a block, and of the blocks in it."""
        for node in body[:]:
            for block in code.blocks(node):
                self._look(name, block)
            if node.lineno in self.operands[name].read:
                given: list[ast.expr] = [ast.Constant(each) for each in (self.inside, name, node.lineno)]
                call = ast.Expr(ast.Call(ast.Name(LOOK_AT, ast.Load()), given, []))
                body.insert(body.index(node), ast.copy_location(call, node))

    def _has_open_decorators(self, former: Mapping[str, Definition]) -> bool:
        """Return whether decorators differ, or those of functions that one side lacks do more than to change them."""
        now, was = ({name: _decorators(node) for name, node in side.items()} for side in (self.nodes, former))
        return any(
            now[name] != was[name] if name in now and name in was else not _are_own((now | was)[name])
            for name in {*self.names, *self.removed} & {*now, *was}
        )

    def _differs_outside(self) -> bool:
        """Return whether more differs outside of functions than what the head adds: imports, classes and names."""
        was, now = (
            [(within, each.text) for within, each in side.outside if not each.is_import]
            for side in (self.was, self.now)
        )
        if [each for each in now if each in was] != was or not _imports(self.former) <= _imports(self.tree):
            return True
        had = {name for within, each in self.was.outside if not within for name in each.names}
        old, new = (dict(_classes(tree)) for tree in (self.former, self.tree))
        return any(
            not each.names
            or (within in old if within else not had.isdisjoint(each.names))
            or not all(_are_own(_decorators(new[name])) for name in each.names if name in new)
            for within, each in self.now.outside
            if (within, each.text) not in was and not (each.is_import and not within)
        )

    def _compiled(self, body: list[ast.stmt]) -> CodeType:
        tree = ast.fix_missing_locations(ast.Module(copy.deepcopy(body), []))
        lazy = any(
            isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in self.former.body
        )
        flags = __future__.annotations.compiler_flag if lazy else 0
        made: CodeType = compile(tree, f"<base of {self.inside}>", "exec", flags, dont_inherit=True)
        return made

    def _maker(self, node: Definition, wrapped: bool) -> tuple[str, CodeType]:
        """Return the code of a function that makes the base's, within which `super` finds its class."""
        own = copy.deepcopy(node)
        if wrapped:
            # What is wrapped is within the decorators.
            own.decorator_list = []
        make = ast.parse(f"def make(__class__):\n    return {node.name}").body[0]
        assert isinstance(make, ast.FunctionDef)
        make.body.insert(0, own)
        return node.name, self._compiled([make])

    def missed(self) -> bool:
        """Return whether a class has, from those that it is made from, what its edit removes."""
        return any(
            within in self.classes and any(name in vars(of) for of in self.classes[within].__mro__[1:])
            for within, _, name in (each.rpartition(".") for each in self.removed)
        )

    def become_base(self) -> None:
        """Make this process run the base's functions; raises what statements of the base raise here."""
        assert self.module is not None
        namespace = vars(self.module)
        for qualified, (name, maker) in self.makers.items():
            within = qualified.rpartition(".")[0]
            holder: Any = self.classes.get(within)
            if within and holder is None:
                continue
            made: dict[str, Any] = {}
            exec(maker, namespace, made)  # noqa: S102
            function = made["make"](holder)
            if qualified in self.functions:
                self.functions[qualified].base = function
            else:
                setattr(holder or self.module, name, function)
        for value in list(namespace.values()):
            if isinstance(value, FunctionType | functools._lru_cache_wrapper) and hasattr(
                value, "cache_clear"
            ):
                value.cache_clear()


def _definitions(tree: ast.Module, module: code.Module) -> Iterator[tuple[str, Definition]]:
    """Yield the functions of a tree with the names that its module has for them."""
    names = {function.first: name for name, function in module.functions.items()}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first in names:
                yield names[first], node


def _classes(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the classes of a tree, which are in no function, with their dotted names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield f"{within}{node.name}", node
            yield from _classes(node, f"{within}{node.name}.")


def _imports(tree: ast.Module) -> set[tuple[str, str | None]]:
    """Return what a file imports, and as what."""
    return {
        (f"{'.' * getattr(node, 'level', 0)}{getattr(node, 'module', '')}.{alias.name}", alias.asname)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _decorators(node: Definition | ast.ClassDef) -> list[str]:
    return [ast.unparse(each) for each in node.decorator_list]


def _are_own(decorators: Sequence[str]) -> bool:
    return all(each.partition("(")[0].rpartition(".")[2] in OWN for each in decorators)


@dataclass
class Prober:
    """Compares the edited functions of files with those of the base, in each export from nothing.

    Attributes
    ----------
    wanted
        See `executorch_goldens.settings.exports.Instrumentation.probes`.
    inside
        The edited functions that the call which is compared has run; None where none is compared.
    passes
        Classes of passes that run edited functions.
    running
        The class of the pass that runs.
    """

    wanted: Mapping[str, tuple[str, tuple[str, ...]]]
    files: dict[str, EditedFile] = field(default_factory=dict)
    found: dict[EditedFunction, tuple[int, str]] = field(default_factory=dict)
    at_import: set[EditedFunction] = field(default_factory=set)
    inside: set[EditedFunction] | None = None
    passes: set[type] = field(default_factory=set)
    running: type | None = None
    is_exporting: bool = False
    is_copy: bool = False

    def install(self) -> None:
        """Let the decorators find this."""
        setattr(builtins, NAME, self.mark)

        def look(inside: str, name: str, line: int) -> None:
            if self.is_exporting and not self.is_copy:
                self.files[inside].operands[name].look(line)

        # See `executorch_goldens_plugins.compare.exporting.reaching.reached`.
        vars(look)["_dynamo_marked_constant"] = True
        setattr(builtins, LOOK_AT, look)

    def marked(self, inside: str, source: bytes) -> ast.Module:
        """Return the tree of a file of the head, with the decorators of its edited functions."""
        head = source.decode(errors="replace")
        if inside not in self.wanted:
            return ast.parse(head)
        place, names = self.wanted[inside]
        self.files[inside] = EditedFile(inside, head, code.text_of(Path(place)), names)
        return self.files[inside].marked()

    def loaded(self, inside: str, module: ModuleType) -> None:
        """Note that a file was imported."""
        if inside in self.files:
            self.files[inside].module = module
            self.files[inside].is_open |= self.files[inside].missed()

    def mark(self, inside: str, name: str) -> Callable[[Any], Any]:
        """Return the innermost decorator of a class, or of a function that is compared."""
        return functools.partial(self._marked, self.files[inside], name)

    def _marked(self, file: EditedFile, name: str, marked: Any) -> Any:
        if isinstance(marked, type):
            file.classes[name] = marked
            return marked
        # No earlier: what is imported first is varied.
        global is_dynamo_compiling
        from torch.compiler import is_dynamo_compiling

        edited = file.functions[name] = EditedFunction(file, name, marked)

        @functools.wraps(marked)
        @handed_on
        def call(*given: Any, **named: Any) -> Any:
            # Dynamo reads what it traces, and takes this for true.
            if is_dynamo_compiling():
                return marked(*given, **named)
            return self.called(edited, given, named)

        SEEN_THROUGH.add(cast(FunctionType, call).__code__)
        return call

    def begin(self) -> None:
        """Forget what was found; an export begins."""
        self.found.clear()
        for operands in (each for file in self.files.values() for each in file.operands.values()):
            operands.forget()
        self.is_exporting = True
        self.watch_passes()

    def taken(self, reach: Mapping[str, Sequence[int]]) -> tuple[ProbedFunction, ...]:
        """Return what was found; unknown for functions that ran, by their lines, and were not seen to be called."""
        self.is_exporting = False
        for file in self.files.values():
            for name in file.names:
                edited = file.functions.get(name)
                function, lines = file.now.functions[name], reach.get(file.inside, ())
                ran = any(function.first <= abs(line) <= function.last for line in lines)
                if edited in self.found or not (ran or file.is_open or edited in self.at_import):
                    continue
                self.found[edited or EditedFunction(file, name, _nothing)] = (0, UNKNOWN)
            if file.is_open and not file.names:
                self.found[EditedFunction(file, "", _nothing)] = (0, UNKNOWN)
        made = (
            ProbedFunction(each.file.inside, each.name, *found, *_read(each))
            for each, found in self.found.items()
        )
        return tuple(sorted(made, key=lambda each: (each.file, each.function)))

    @handed_on
    def called(self, edited: EditedFunction, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call an edited function, and compare it with the base's if no call around it is compared."""
        if self.is_copy:
            return edited.of_base(*given, **named)
        if self.running is not None:
            self.passes.add(self.running)
        if self.inside is not None:
            self.inside.add(edited)
        elif not self.is_exporting:
            if _is_importing():
                self.at_import.add(edited)
        elif (known := self.found.get(edited, (0, GAVE_THE_SAME)))[1] == GAVE_THE_SAME:
            if known[0] < MOST:
                again = functools.partial(self.called, edited, given, named)
                return self._compared(again, (given, named), {edited})
            self.found[edited] = (known[0], UNKNOWN)
        return edited.head(*given, **named)

    @handed_on
    def _compared(self, run: Callable[[], Any], roots: tuple[Any, ...], inside: set[EditedFunction]) -> Any:
        """Return what `run` does here; compare it with what it does in a copy that has become the base."""
        roots = (*roots, [*_tensors(roots)])
        if any(file.is_open for file in self.files.values()):
            reading, process = None, 0
        else:
            reading, process = _copy(functools.partial(self._in_base, run, roots))
        self.inside = inside
        own = None
        try:
            try:
                result = run()
            except Exception as error:
                own = _came_out(_raised(error), roots)
                raise
            own = _came_out(result, roots)
            return result
        finally:
            self.inside = None
            other = _answer(reading, process) if reading is not None else None
            same = GAVE_THE_SAME if own == other else DIFFERS
            for each in inside:
                calls, verdict = self.found.get(each, (0, GAVE_THE_SAME))
                verdict = max(verdict, same if own and other else UNKNOWN, key=VERDICTS.index)
                self.found[each] = (calls + 1, verdict)

    def _in_base(self, run: Callable[[], Any], roots: tuple[Any, ...]) -> bytes:
        """Return the digest of what comes out of a call in the base, which this copy becomes."""
        from executorch_goldens_plugins.compare.exporting.states import digest

        self.is_copy = True
        for file in self.files.values():
            if file.module is not None:
                file.become_base()
        try:
            came = run()
        except Exception as error:
            came = _raised(error)
        return digest(came, roots, may_change=True)

    def watch_passes(self) -> None:
        """Let each pass that is known to run edited functions be compared as a whole."""
        from executorch_goldens.exporting.compat import pass_classes

        for cls in pass_classes():
            plain = vars(cls)["__call__"]
            if not hasattr(plain, NAME):
                cls.__call__ = self._watched(plain)

    def _watched(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Return a pass's method for its calls, which compares them."""

        @functools.wraps(plain)
        @handed_on
        def call(instance: Any, *given: Any) -> Any:
            before, self.running = self.running, type(instance)
            try:
                idle = self.is_copy or self.inside is not None or not self.is_exporting
                if idle or not self._runs_edited(type(instance)):
                    return plain(instance, *given)
                return self._compared(lambda: plain(instance, *given), (instance, *given), set())
            finally:
                self.running = before

        setattr(call, NAME, True)
        return call

    def _runs_edited(self, cls: type) -> bool:
        own = (
            file.classes.get(name.rpartition(".")[0]) for file in self.files.values() for name in file.names
        )
        return cls in self.passes or any(each in cls.__mro__ for each in own)


def _tensors(values: Iterable[Any], deep: bool = True) -> Iterator[Any]:
    """Yield the tensors of modules and exported programs in some values, in containers, and among their attributes."""
    import torch

    for value in values:
        if isinstance(value, torch.nn.Module):
            yield from (*value.parameters(), *value.buffers())
        elif isinstance(value, torch.export.ExportedProgram):
            held = (*value.state_dict.values(), *value.constants.values())
            yield from (each for each in held if isinstance(each, torch.Tensor))
        elif isinstance(value, tuple | list | dict):
            yield from _tensors(value.values() if isinstance(value, dict) else value, deep)
        elif deep and hasattr(value, "__dict__") and not isinstance(value, type):
            yield from _tensors(vars(value).values(), deep=False)


def _read(edited: EditedFunction) -> tuple[tuple[str, ...], bool]:
    """Return what the edited statements of a function read, and whether that infected one of them."""
    known = edited.file.operands.get(edited.name)
    return (known.taken(), known.infected) if known is not None else ((), False)


def _nothing() -> None:
    """The head of a function that is not there."""


def _raised(error: Exception) -> tuple[str, str, str]:
    return "raised", type(error).__qualname__, str(error)


def _came_out(*values: Any) -> bytes | None:
    """Return the digest of what came out of a call; None where something of it cannot be read."""
    from executorch_goldens_plugins.compare.exporting.states import UnreadableError, digest

    try:
        return digest(*values)
    except UnreadableError:
        return _answer(*_copy(functools.partial(digest, *values, may_change=True)))


def _copy(work: Callable[[], bytes]) -> tuple[int, int]:
    """Let a copy of this process do something; return where its answer comes, and its number."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return reading, process
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        limit_processor(LONGEST)
        gc.disable()
        os.write(writing, work())
    finally:
        os._exit(0)


def _answer(reading: int, process: int) -> bytes | None:
    """Return the answer of a copy; None where it ends without one, or is idle for long."""
    idleness = Idleness(process)
    while not select.select([reading], [], [], LOOK)[0]:
        idleness.look(2 * LOOK)
        if idleness.idle > IDLE:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, 9)
    answer = os.read(reading, 64)
    os.close(reading)
    os.waitpid(process, 0)
    return answer or None


def _is_importing() -> bool:
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
