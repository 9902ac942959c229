"""Arithmetic that a YAML file may hold: `0.5 * upper_length ** 2`, `pi / 4`, `sqrt(mass)`.

simpleeval walks the syntax tree; nothing is ever given to Python's own `eval`. Only numbers come in and only finite
numbers come out: no text, no attributes, no subscripts, no comparisons.
"""

import ast
import math
from collections.abc import Mapping
from functools import lru_cache

from simpleeval import InvalidExpression, NameNotDefined, SimpleEval

from distpaml.errors import UserError
from distpaml.names import nearest

FUNCTIONS = {
    name: getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2")
} | {"abs": abs, "min": min, "max": max}
CONSTANTS = {"pi": math.pi, "e": math.e}
LONGEST = 500
"""Characters of an expression."""
_ARITHMETIC = (
    ast.Expression, ast.Expr, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Call, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub,
)  # fmt: skip


class ExpressionError(UserError):
    """An expression that has no value; the text says why, to go after "but"."""


def evaluate(expression: str | float, values: Mapping[str, float]) -> float:
    """The number that `expression` is, given the `values` of the names in it."""
    if isinstance(expression, int | float):
        return float(expression)
    evaluator = SimpleEval(functions=FUNCTIONS, names={**CONSTANTS, **values})
    try:
        result = float(evaluator.eval(expression, previously_parsed=_parsed(expression)))
    except NameNotDefined as error:
        raise ExpressionError(f"there is no parameter {error.name!r}{nearest(error.name, values)}") from error
    except InvalidExpression as error:
        raise ExpressionError(f"cannot be evaluated: {_plain(error)}") from error
    except (ArithmeticError, ValueError, TypeError) as error:
        raise ExpressionError(f"cannot be evaluated with {_described(values)}: {_plain(error)}") from error
    if not math.isfinite(result):
        raise ExpressionError(f"is {result} with {_described(values)}")
    return result


def names_in(expression: str | float) -> set[str]:
    """The names that an expression mentions, functions left out."""
    if isinstance(expression, int | float):
        return set()
    tree = _parsed(expression)
    functions = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_name(node.func)}  # type: ignore[attr-defined]
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - functions


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> ast.expr:
    if len(expression) > LONGEST:
        raise ExpressionError(f"has more than {LONGEST} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError("is not arithmetic, such as 0.5 * mass + 1") from error
    for node in ast.walk(tree):
        number = not isinstance(node, ast.Constant) or type(node.value) in (int, float)
        if not isinstance(node, _ARITHMETIC) or not number:
            raise ExpressionError("is not arithmetic: numbers, parameters, + - * / ** and functions such as sqrt")
        if isinstance(node, ast.Constant):
            node.value = _real(node.value)  # powers of whole numbers can take for ever, of real ones they overflow
    return tree


def _real(number: object) -> float:
    try:
        return float(number)  # type: ignore[arg-type]
    except OverflowError as error:
        raise ExpressionError("has a number that is too large") from error


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _described(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in values.items()) or "no parameters"


def _plain(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
