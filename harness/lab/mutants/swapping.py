"""Every swap of two names of one type in one function: a name is read where another, which is bound there, was.

Types are read off the text: two names are of one type if both have one annotation, are bound by one unpacking, by calls
of one function, by items of one base or by expressions of one kind; so are attributes of ``self``. Bound means on every
way to that place. Left out is what no export shows, as `lab.mutants.mechanical.sites` has it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from executorch_goldens_plugins.compare.reach import code
from lab.mutants.mechanical.sites import TELLS

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
#: Annotations that are no type.
_NO_TYPE = frozenset(("Any", "object", "None"))
#: Calls whose results are pairs of unlike things, and those whose results are of any type.
_UNLIKE = frozenset(("enumerate", "items"))
_OF_ANY_TYPE = frozenset(("cast", "getattr", "next"))
#: The name of what nobody reads.
_NOTHING = "_"
#: Expressions that are of one type with all others of their kind.
_OF_A_KIND: dict[type[ast.expr], str] = {
    ast.BinOp: "number",
    ast.Compare: "boolean",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Tuple: "tuple",
    ast.JoinedStr: "str",
}
#: What is known of the type of a name.
Kinds = dict[str, set[str]]


@dataclass(frozen=True)
class Use:
    """A place where a name is read, and the names that can be read there instead.

    Attributes
    ----------
    function
        Its outermost function, dotted in its module.
    line, column
        From 1 and from 0, the column in characters.
    """

    function: str
    line: int
    column: int
    old: str
    others: tuple[str, ...]


def uses(source: str) -> Iterator[Use]:
    """Yield the places of a module's functions where a name can be swapped, in the order of its text."""
    functions = code.module(source).functions
    lines = source.splitlines()
    for within, node in _outermost(ast.parse(source).body, {}):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        name = next(name for name, each in functions.items() if each.first == first)
        finder = _Finder(within, set() if node.name == "__init__" else set(within))
        finder.function(node)
        for read, others in sorted(finder.found, key=lambda found: (found[0].lineno, found[0].col_offset)):
            before = lines[read.lineno - 1].encode()[: read.col_offset].decode()
            yield Use(name, read.lineno, len(before), ast.unparse(read), others)


def _outermost(body: Sequence[ast.stmt], attributes: Kinds) -> Iterator[tuple[Kinds, _Function]]:
    """Yield the functions of a module or of a class, with the types of the attributes of its objects."""
    for node in body:
        if isinstance(node, _Function):
            yield attributes, node
        elif isinstance(node, ast.ClassDef):
            yield from _outermost(node.body, _attributes(node))
        else:
            for block in code.blocks(node):
                yield from _outermost(block, attributes)


def _attributes(node: ast.ClassDef) -> Kinds:
    kinds: Kinds = defaultdict(set)
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            kinds[f"self.{each.target.id}"] |= _annotation(each.annotation)
        elif isinstance(each, _Function) and each.name == "__init__":
            own = _kinds(each)
            kinds.update((name, own[name]) for name in own if name.startswith("self."))
    return kinds


@dataclass
class _Finder:
    """Goes through one function, with the names that are bound on every way to where it is.

    Attributes
    ----------
    kinds
        Of each name, as ``name`` or ``self.name``.
    bound
        Attributes that are bound before the function runs.
    """

    kinds: Kinds
    bound: set[str]
    found: list[tuple[ast.Name | ast.Attribute, tuple[str, ...]]] = field(default_factory=list)

    def function(self, node: _Function) -> None:
        inner = _Finder({**self.kinds, **_kinds(node)}, set(self.bound), self.found)
        arguments = node.args
        parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        inner.block(node.body, inner.bound | {each.arg for each in parameters})

    def block(self, body: Sequence[ast.stmt], bound: set[str]) -> set[str] | None:
        """Return the names that are bound after a block; None where it is left in another way."""
        bound = set(bound)
        for node in body:
            after = self.statement(node, bound)
            if after is None:
                return None
            bound = after
        return bound

    def statement(self, node: ast.stmt, bound: set[str]) -> set[str] | None:
        if isinstance(node, _Function):
            attributes = {name for name in bound if name.startswith("self.")}
            _Finder(self.kinds, attributes, self.found).function(node)
            return bound
        if isinstance(node, ast.ClassDef | ast.Raise):
            return None if isinstance(node, ast.Raise) else bound
        inside = bound | set(_targets(node)) if isinstance(node, ast.For | ast.With) else bound
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "msg", "body", "orelse", "finalbody", "handlers", "cases"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    self.expression(each, bound)
        if isinstance(node, ast.Return | ast.Continue | ast.Break):
            return None
        if isinstance(node, ast.For | ast.While):
            self.block(node.body, inside)
            self.block(node.orelse, bound)
            return bound
        if isinstance(node, ast.With):
            return self.block(node.body, inside)
        if isinstance(node, ast.If):
            return _either(self.block(node.body, bound), self.block(node.orelse, bound))
        if isinstance(node, ast.Try):
            after = self.block((*node.body, *node.orelse), bound)
            for handler in node.handlers:
                after = _either(after, self.block(handler.body, bound))
            last = self.block(node.finalbody, bound)
            return None if after is None or last is None else after | last
        for block in code.blocks(node):
            self.block(block, bound)
        return bound | set(_targets(node))

    def expression(self, node: ast.AST, bound: set[str]) -> None:
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.Call) and TELLS.search(ast.unparse(node.func)):
            return
        if isinstance(node, ast.Lambda):
            self.expression(
                node.body, bound - {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            )
        elif isinstance(node, _Comprehension):
            self._comprehension(node, bound)
        elif isinstance(node, ast.Name | ast.Attribute) and (name := _name(node)) is not None:
            if isinstance(node.ctx, ast.Load) and name in bound:
                self._read(node, name, bound)
        else:
            for child in ast.iter_child_nodes(node):
                self.expression(child, bound)

    def _comprehension(self, node: _Comprehension, bound: set[str]) -> None:
        inner, own = set(bound), _Finder(dict(self.kinds), set(), self.found)
        for each in node.generators:
            own.expression(each.iter, inner)
            kinds: Kinds = defaultdict(set)
            _bind(each.target, _each(each.iter), _is_unlike(each.iter), kinds)
            own.kinds.update(kinds)
            inner |= set(_names(each.target))
            for condition in each.ifs:
                own.expression(condition, inner)
        for part in ("key", "value", "elt"):
            if hasattr(node, part):
                own.expression(getattr(node, part), inner)

    def _read(self, node: ast.Name | ast.Attribute, name: str, bound: set[str]) -> None:
        own = self.kinds.get(name, set())
        others = tuple(sorted(each for each in bound if each != name and own & self.kinds.get(each, set())))
        if others:
            self.found.append((node, others))


def _either(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _name(node: ast.AST) -> str | None:
    """Return what is read or bound, if it is a name or an attribute of ``self``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return None


def _names(target: ast.AST) -> Iterator[str]:
    name = _name(target)
    if name is not None:
        yield name
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _names(each)


def _targets(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds itself."""
    targets: Sequence[ast.AST] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.For) or (isinstance(node, ast.AnnAssign) and node.value is not None):
        targets = [node.target]
    elif isinstance(node, ast.With):
        targets = [each.optional_vars for each in node.items if each.optional_vars is not None]
    for target in targets:
        yield from _names(target)


def _kinds(function: _Function) -> Kinds:
    """Return what is known of the types of a function's names; functions in it have their own."""
    kinds: Kinds = defaultdict(set)
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        kinds[each.arg] |= _annotation(each.annotation)
    statements = list(function.body)
    while statements:
        node = statements.pop(0)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, _kind(node.value), _is_unlike(node.value), kinds, node.value)
        elif isinstance(node, ast.AnnAssign):
            _bind(node.target, _annotation(node.annotation), False, kinds)
        elif isinstance(node, ast.For):
            _bind(node.target, _each(node.iter), _is_unlike(node.iter), kinds)
        if not isinstance(node, _Function | ast.ClassDef):
            statements += [each for block in code.blocks(node) for each in block]
    return kinds


def _bind(
    target: ast.AST, kind: set[str], is_unlike: bool, kinds: Kinds, value: ast.expr | None = None
) -> None:
    name = _name(target)
    if name is not None and name != _NOTHING:
        kinds[name] |= kind
    elif isinstance(target, ast.Tuple | ast.List):
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        own = set() if is_unlike else {f"unpacked at {target.lineno}:{target.col_offset}"}
        for number, each in enumerate(target.elts):
            _bind(each, own if values is None else _kind(values[number]), False, kinds)


def _annotation(node: ast.expr | None) -> set[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    else:
        text = ast.unparse(node) if node is not None else "None"
    text = text if "[" in text or "|" in text else text.rpartition(".")[2]
    return set() if text in _NO_TYPE else {text}


def _kind(value: ast.expr) -> set[str]:
    """Return what an expression says of its type."""
    if isinstance(value, ast.IfExp):
        return _kind(value.body) | _kind(value.orelse)
    if isinstance(value, ast.Constant):
        return set() if value.value is None else {type(value.value).__name__}
    if isinstance(value, ast.UnaryOp):
        return {"bool"} if isinstance(value.op, ast.Not) else _kind(value.operand)
    if isinstance(value, ast.Call):
        return set() if _last(value.func) in _OF_ANY_TYPE else {f"result of {_last(value.func)}"}
    if isinstance(value, ast.Subscript):
        what = "part" if isinstance(value.slice, ast.Slice) else "item"
        return {f"{what} of {_last(value.value)}"}
    if isinstance(value, ast.Attribute):
        return {f"attribute {value.attr}"}
    found = _OF_A_KIND.get(type(value))
    return {found} if found else set()


def _each(iterated: ast.expr) -> set[str]:
    return {f"item of {_last(iterated)}"}


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def _is_unlike(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _last(value.func) in _UNLIKE
