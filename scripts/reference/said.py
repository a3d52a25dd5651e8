"""What a class says of its own attributes: the strings below them."""

import ast
import inspect
import re
import textwrap
from functools import cache
from itertools import pairwise


def of_class(cls: type) -> str:
    """Its own docstring, without the one that a dataclass makes for itself."""
    said = ast.get_docstring(_body(cls)) or ""
    return _for_files(said)


@cache
def of_attributes(cls: type) -> dict[str, str]:
    body = _body(cls).body
    said: dict[str, str] = {}
    for statement, after in pairwise(body):
        match statement, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                said[name] = _for_files(text)
            case _:
                pass
    return said


def _for_files(text: str) -> str:
    """Python's None is null there."""
    return re.sub(r"\bNone\b", "`null`", " ".join(text.split()))


@cache
def _body(cls: type) -> ast.ClassDef:
    [found] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(found, ast.ClassDef)
    return found
