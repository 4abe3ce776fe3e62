"""Every edit that the operators of mutation can make of a source; only functions are edited, and by position.

Left out is what no export shows: annotations, docstrings, messages (arguments of ``raise``, f-strings, calls that log
or warn), decorators, and bodies of ``if TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

#: Replacements of operators, by their text.
COMPARISONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("+",), "//": ("*",), "/": ("*",), "%": ("*",)}
BOOLEANS = {"and": ("or",), "or": ("and",)}
#: Any of these, the longest first; one text may have spaces in it.
OPERATOR = re.compile(r"\bnot\s+in\b|\bis\s+not\b|\b(?:in|is|and|or)\b|//|<=|>=|==|!=|[<>+\-*/%]")

#: Replacements of data types, by the last part of their name.
TORCH = {
    "int8": "int32",
    "uint8": "int8",
    "int16": "int32",
    "int32": "int64",
    "int64": "int32",
    "float": "float16",
    "float16": "float32",
    "float32": "float16",
    "float64": "float32",
    "bfloat16": "float32",
    "bool": "int8",
}
TOSA = {
    "INT4": "INT8",
    "INT8": "INT32",
    "INT16": "INT8",
    "INT32": "INT8",
    "INT48": "INT32",
    "FP16": "FP32",
    "FP32": "FP16",
    "BF16": "FP32",
    "BOOL": "INT8",
}
XNNPACK = {
    "xnn_datatype_fp32": "xnn_datatype_fp16",
    "xnn_datatype_fp16": "xnn_datatype_fp32",
    "xnn_datatype_qint8": "xnn_datatype_quint8",
    "xnn_datatype_quint8": "xnn_datatype_qint8",
    "xnn_datatype_qint32": "xnn_datatype_qint8",
    "xnn_datatype_qcint8": "xnn_datatype_qint8",
    "xnn_datatype_qcint32": "xnn_datatype_qint32",
    "xnn_datatype_qcint4": "xnn_datatype_qcint8",
}
#: By what the attribute is of.
DTYPES = {"torch": TORCH, "DType": TOSA, "XNNDatatype": XNNPACK}

#: Names of what holds a dimension, and methods whose arguments are dimensions.
AXIS = re.compile(r"(^|_)(dims?|axis|axes)\d?$")
OF_AXES = frozenset(("size", "squeeze", "unsqueeze", "permute", "transpose", "flatten", "unbind"))
#: Calls that only tell a person.
TELLS = re.compile(
    r"^(logger|logging|warnings|log)\.|^(print|warn)$|\._?log\w*$|\.reporter\.|^self\.reporter"
)
#: Functions that raise for any program if their arguments are swapped.
FIXED = frozenset(("isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast", "range"))


@dataclass(frozen=True, order=True)
class Site:
    """One edit of one function.

    Attributes
    ----------
    file
        Relative to the package ``executorch``, with ``/``.
    start, end
        Of what is replaced, in bytes of the file.
    new
        The replacement.
    old
        The original.
    operator
        One of `lab.mutants.mechanical.OPERATORS`.
    function
        Qualified name, within its module, of the outermost function around it.
    line
        Where that function begins, its decorators included; from 1.
    first, last
        Lines; an export that reaches the place runs one of them.
    """

    file: str
    start: int
    end: int
    new: str
    old: str
    operator: str
    function: str
    line: int
    first: int
    last: int

    @property
    def module(self) -> str:
        return f"executorch.{self.file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")

    def applied(self, source: bytes) -> bytes:
        """Return `source` with the edit made; raise ValueError where it is not the source that was read."""
        if source[self.start : self.end] != self.old.encode():
            raise ValueError(f"{self.file} has no {self.old!r} at {self.start}")
        return source[: self.start] + self.new.encode() + source[self.end :]


def sites(file: str, source: bytes) -> list[Site]:
    """Return every edit of `source`, in the order of its text.

    Parameters
    ----------
    file
        The content of `Site.file`.
    """
    finder = _Finder(file, source)
    finder.outside(ast.parse(source), ())
    return sorted(set(finder.found))


class _Finder(ast.NodeVisitor):
    """Collects the edits of one file; methods are called by the name of a node's class."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.source = source
        self.starts = [0]
        for line in source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.found: list[Site] = []
        self.function = ""
        self.line = 0
        self.lines = (0, 0)
        #: Constants that are dimensions, or defaults, are edited as such and not as integers.
        self.claimed: set[ast.AST] = set()

    # Places of functions

    def outside(self, node: ast.AST, names: tuple[str, ...]) -> None:
        """Look for functions in a module or a class."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                self.outside(child, (*names, child.name))
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                self.function = ".".join((*names, child.name))
                self.line = min(each.lineno for each in (child, *child.decorator_list))
                self.visit(child)

    def in_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.lines = (node.body[0].lineno, node.end_lineno or node.lineno)
        outermost = self.line == min(each.lineno for each in (node, *node.decorator_list))
        arguments = node.args
        named = (*arguments.posonlyargs, *arguments.args)[-len(arguments.defaults) or 999 :]
        pairs = zip(
            (*named, *arguments.kwonlyargs), (*arguments.defaults, *arguments.kw_defaults), strict=True
        )
        for parameter, default in pairs:
            if default is not None and outermost:
                self.default(parameter, default)
        for statement in node.body:
            self.visit(statement)

    in_asyncfunctiondef = in_functiondef

    def in_classdef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def in_lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.lines = (node.lineno, _last_of_head(node))
        getattr(self, f"in_{type(node).__name__.lower()}", self.generic_visit)(node)

    # Exclusions

    def in_joinedstr(self, node: ast.JoinedStr) -> None:
        pass

    def in_raise(self, node: ast.Raise) -> None:
        pass

    def in_assert(self, node: ast.Assert) -> None:
        self.visit(node.test)

    def in_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assigned([node.target], node.value)

    # The operators.

    def in_compare(self, node: ast.Compare) -> None:
        for left, right in pairwise((node.left, *node.comparators)):
            self.between(left, right, COMPARISONS, "comparison")
        self.generic_visit(node)

    def in_boolop(self, node: ast.BoolOp) -> None:
        for left, right in pairwise(node.values):
            self.between(left, right, BOOLEANS, "boolean")
        self.generic_visit(node)

    def in_binop(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(each, ast.JoinedStr)
            or (isinstance(each, ast.Constant) and isinstance(each.value, str))
            for each in (node.left, node.right)
        )
        if not texts:
            self.between(node.left, node.right, ARITHMETIC, "arithmetic")
        self.generic_visit(node)

    def in_unaryop(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            # With the operand's own parentheses.
            self.edit(node, self.text(node).removeprefix("not").lstrip(), "boolean")
        self.generic_visit(node)

    def in_constant(self, node: ast.Constant) -> None:
        if node in self.claimed:
            return
        if isinstance(node.value, bool):
            self.edit(node, str(not node.value), "boolean")
        elif isinstance(node.value, int):
            for new in (node.value + 1, node.value - 1):
                self.edit(node, f"({new})" if new < 0 else str(new), "bound")

    def in_slice(self, node: ast.Slice) -> None:
        for end in (node.lower, node.upper):
            if end is not None and _integer(end) is None:
                for step in ("+", "-"):
                    self.edit(end, f"({self.text(end)}) {step} 1", "bound")
        self.generic_visit(node)

    def in_subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            self.axis(node.slice)
        self.generic_visit(node)

    def in_keyword(self, node: ast.keyword) -> None:
        if node.arg is not None and AXIS.search(node.arg):
            self.axis(node.value)
        self.generic_visit(node)

    def in_assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.delete(node)
        self.assigned(node.targets, node.value)

    def in_augassign(self, node: ast.AugAssign) -> None:
        self.delete(node)
        self.generic_visit(node)

    def in_continue(self, node: ast.Continue) -> None:
        self.delete(node)

    def in_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not TELLS.search(self.text(node.value.func)):
            self.delete(node)
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def in_attribute(self, node: ast.Attribute) -> None:
        of = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        new = DTYPES.get(of, {}).get(node.attr)
        if new is not None:
            self.edit(node, f"{self.text(node.value)}.{new}", "dtype")
        self.generic_visit(node)

    def in_list(self, node: ast.List | ast.Tuple) -> None:
        if isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            self.swap(node.elts[0], node.elts[-1])
        self.generic_visit(node)

    in_tuple = in_list

    def in_call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if TELLS.search(self.text(node.func)):
            return
        if name in OF_AXES:
            for argument in node.args:
                self.axis(argument)
        if name == "reversed" and len(node.args) == 1:
            self.edit(node, f"list({self.text(node.args[0])})", "order")
        if name not in FIXED and not any(isinstance(each, ast.Starred) for each in node.args):
            for left, right in pairwise(node.args):
                self.swap(left, right)
        self.generic_visit(node)

    def in_for(self, node: ast.For) -> None:
        self.edit(node.iter, f"reversed(list({self.text(node.iter)}))", "order")
        self.generic_visit(node)

    def in_if(self, node: ast.If | ast.IfExp) -> None:
        if "TYPE_CHECKING" in self.text(node.test):
            return
        for new in ("True", "False", f"not ({self.text(node.test)})"):
            self.edit(node.test, new, "branch")
        self.generic_visit(node)

    in_ifexp = in_if

    def in_while(self, node: ast.While) -> None:
        # One that is always true has no end.
        self.edit(node.test, "False", "branch")
        self.generic_visit(node)

    # Edits

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def add(self, start: int, end: int, new: str, operator: str) -> None:
        old = self.source[start:end].decode()
        if old != new:
            place = (self.function, self.line, *self.lines)
            self.found.append(Site(self.file, start, end, new, old, operator, *place))

    def edit(self, node: ast.expr | ast.stmt, new: str, operator: str) -> None:
        self.add(*self.span(node), new, operator)

    def delete(self, statement: ast.stmt) -> None:
        self.edit(statement, "pass", "branch")

    def between(
        self, left: ast.expr, right: ast.expr, table: Mapping[str, tuple[str, ...]], operator: str
    ) -> None:
        """Replace the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        written = list(
            OPERATOR.finditer(
                re.sub("#.*", lambda found: " " * len(found[0]), self.source[start:end].decode())
            )
        )
        if len(written) == 1:
            for new in table.get(" ".join(written[0][0].split()), ()):
                self.add(start + written[0].start(), start + written[0].end(), new, operator)

    def swap(self, left: ast.expr, right: ast.expr) -> None:
        """Exchange two expressions, keeping the text between them."""
        first, second = self.text(left), self.text(right)
        if first != second and not isinstance(right, ast.Starred) and not isinstance(left, ast.Starred):
            start, end = self.span(left)[0], self.span(right)[1]
            between = self.source[self.span(left)[1] : self.span(right)[0]].decode()
            self.add(start, end, f"{second}{between}{first}", "order")

    def axis(self, node: ast.expr) -> None:
        """Edit the integers of an expression that gives one dimension, or several."""
        for each in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
            value = _integer(each)
            if value is not None:
                self.claimed.update(ast.walk(each))
                for new in {value + 1, -value if value else -1}:
                    self.edit(each, f"({new})" if new < 0 else str(new), "axis")

    def assigned(self, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if AXIS.search(name):
                self.axis(value)
            self.visit(target)
        self.visit(value)

    def default(self, parameter: ast.arg, node: ast.expr) -> None:
        if AXIS.search(parameter.arg):
            self.axis(node)
            if _integer(node) is not None:
                return
        value = node.value if isinstance(node, ast.Constant) else _integer(node)
        if isinstance(value, bool):
            self.edit(node, str(not value), "default")
        elif isinstance(value, int | float):
            for new in (value + 1, value - 1):
                self.edit(node, str(new), "default")
        elif isinstance(value, str) and value:
            self.edit(node, '""', "default")


def _integer(node: ast.expr) -> int | None:
    """Return the value of an integer that is written as one, with its sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _last_of_head(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the statements in it."""
    within = [
        each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt | ast.ExceptHandler)
    ]
    end = statement.end_lineno or statement.lineno
    return max(statement.lineno, min([end, *(each.lineno - 1 for each in within)]))
