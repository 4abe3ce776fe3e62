"""The part of a module that a function depends on: an edit outside of it changes nothing that the function does."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executorch_goldens.store.functions import part

ZOO = dedent(
    """\
    import torch
    from executorch_goldens import Example, case

    SIZE = 4


    def scaled(model):
        return model


    class Inner(torch.nn.Module):
        \"\"\"Of both.\"\"\"

        factor: int = 2

        @staticmethod
        def helper():
            return SIZE


    class Registering:
        def __init_subclass__(cls):
            Inner.factor = cls


    class Registered(Registering):
        pass


    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()


    @case(guards="one", also=("tosa-bf16",))
    def one(data):
        return Example(scaled(Outer()), (data.tensor("x", 1, SIZE),))


    @case(guards="two")
    def two(data):
        return Example(Inner(), (data.tensor("x", 1, 3),))
    """
)


@pytest.mark.parametrize(
    ("before", "after", "of"),
    [
        ('"x", 1, 3', '"x", 1, 5', {"two"}),
        ('guards="two"', 'guards="both"', {"two"}),
        ("factor: int = 2", "factor: int = 3", {"one", "two"}),
        ("super().__init__()", "super().__init__(  )", {"one"}),
        # A method, not the function of that name.
        ("return model", "return model.eval()", {"one"}),
        ("SIZE = 4", "SIZE = 5", {"one", "two"}),
        ("import torch\n", "import torch \n", {"one", "two"}),
        # Every line after it is another one.
        ("(data):\n    return Example(scaled", "(data):\n\n    return Example(scaled", {"one", "two"}),
        ('data.tensor("x", 1, 3),)', 'data.tensor("x", 1, 3),\n    )', {"two"}),
        # A case that names another.
        ("Inner(), (data", "one(data).model, (data", {"two"}),
    ],
)
def test_an_edit_counts_for_the_functions_that_may_depend_on_it(
    before: str, after: str, of: set[str]
) -> None:
    edited = ZOO.replace(before, after)
    assert edited != ZOO
    assert {name for name in ("one", "two") if part(ZOO, name) != part(edited, name)} == of


@pytest.mark.parametrize(
    "opaque",
    [
        "globals()['two']",
        "eval('two')",
        "vars()",
        "__import__('zoo').two",
        "importlib.import_module('zoo')",
        "sys.modules[__name__].two",
        "CASES['two']",
        "type(self).__subclasses__()",
    ],
)
def test_code_that_reaches_what_it_does_not_name_depends_on_all(opaque: str) -> None:
    assert part(ZOO, "one") is not None
    assert part(ZOO.replace("return model", f"return {opaque}"), "one") is None
    assert part(ZOO.replace("return model", f"return {opaque}"), "two") is not None
    assert part(f"{ZOO}\nlast = {opaque}\n", "two") is None


@pytest.mark.parametrize(
    "definition",
    [
        "@register\ndef third(data):\n    return 3",
        "from mine import case as kept\n\n\n@kept(guards='3')\ndef third(data):\n    return 3",
        "@case(guards=register())\ndef third(data):\n    return 3",
        "def third(data=register()):\n    return 3",
        "def third(data: register()):\n    return 3",
        "@dataclass\nclass third:\n    x: int = 3",
        "class third(register()):\n    x = 3",
        "class third(Registered):\n    x = 3",
        "class meta(type):\n    pass\n\n\nclass third(meta):\n    x = 3",
        "class third(torch.nn.Module, metaclass=Meta):\n    x = 3",
        "class third:\n    x = register(3)",
        "class third:\n    for x in range(3):\n        pass",
        "third = register(3)",
    ],
)
def test_a_definition_that_does_something_when_it_is_imported_counts(definition: str) -> None:
    assert part(f"{ZOO}\n\n{definition}\n", "two") != part(
        f"{ZOO}\n\n{definition.replace('3', '4')}\n", "two"
    )


@pytest.mark.parametrize(
    ("imported", "decorator"),
    [
        ("from executorch_goldens import Example, case as a_case", "@a_case"),
        ("import executorch_goldens\nfrom executorch_goldens import Example", "@executorch_goldens.case"),
        ("import executorch_goldens as goldens\nfrom executorch_goldens import Example", "@goldens.case"),
    ],
)
def test_a_case_is_one_by_any_name_of_the_decorator(imported: str, decorator: str) -> None:
    text = ZOO.replace("from executorch_goldens import Example, case", imported).replace("@case", decorator)
    assert part(text, "one") is not None
    assert part(text, "one") == part(text.replace('x", 1, 3', 'x", 1, 5'), "one")


@pytest.mark.parametrize("text", ["def (", "\0", "x = 1", "def one(): ...\ntwo = one"])
def test_a_function_that_is_not_there_depends_on_all(text: str) -> None:
    assert part(text, "two") is None


NAMES = ("a", "b", "c", "d")
CALLS = tuple(f"{name}()" for name in NAMES)
EXPRESSIONS = st.sampled_from((*CALLS, *CALLS, *CALLS, "1", "2", "globals()['b']()", "eval('c()')"))
#: A function, a class, and statements that run at import.
FORMS = (
    "def {0}():\n    return [{1}]",
    "class {0}:\n    value = 1\n    def __repr__(self): return repr({1})",
    "try:\n    {0} = {1}\nexcept Exception:\n    {0} = int",
    "@kept\ndef {0}(): return {1}, made[0]",
)
DEFINITIONS = st.tuples(st.sampled_from((FORMS[0], *FORMS)), EXPRESSIONS)
PREAMBLE = """
made = []
def kept(function):
    made.append(function)
    return function
"""


@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS, st.lists(DEFINITIONS, min_size=3, max_size=3), st.integers(1, 3), DEFINITIONS)
def test_a_function_does_the_same_where_its_part_is_the_same(
    called: str, others: list[tuple[str, str]], edited: int, definition: tuple[str, str]
) -> None:
    function = NAMES[0]
    drawn = [(FORMS[0], called), *others]
    after = [*drawn]
    after[edited] = definition
    texts = [
        PREAMBLE
        + "\n".join(form.format(name, value) for name, (form, value) in zip(NAMES, pieces, strict=True))
        for pieces in (drawn, after)
    ]
    parts = [part(text, function) for text in texts]
    if None not in parts and parts[0] == parts[1]:
        assert _does(texts[0], function) == _does(texts[1], function)


def _does(text: str, function: str) -> str:
    """Return what a function of a module returns or raises, as text."""
    made: dict[str, Any] = {}
    try:
        exec(text, made)
        return repr(made[function]()).partition(" at 0x")[0]
    except RecursionError:
        return "RecursionError"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
