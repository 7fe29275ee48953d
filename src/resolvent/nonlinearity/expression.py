"""Safe expressions in `t`: a whitelisted syntax tree compiled to nested closures, never handed to eval.

Allowed: numbers, `t`, `pi`, `e`, the operators + - * / ** (or ^), parentheses, the one-argument functions
below and

    maximum(a, b), minimum(a, b), where(a < b, x, y)       with <, <=, > or >= in the condition

Numbers are floats from the start and exponents are bounded, so no expression can build a huge integer. The
text is bounded in length, the tree in depth.
"""

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.nonlinearity.functions import FUNCTIONS

LONGEST = 500
DEEPEST = 60
LARGEST_EXPONENT = 64
SLAB = 1 << 15

Array = NDArray[Any]
Value = Any  # a float, or an array of the shape of t
Closure = Callable[[Array], Value]

CONSTANTS = {"pi": np.pi, "e": np.e}
ONE_ARGUMENT: dict[str, Callable[..., Value]] = {
    **{name: function for name, (function, _) in FUNCTIONS.items()},
    "sqrt": np.sqrt,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arctan": np.arctan,
}
TWO_ARGUMENTS: dict[str, Callable[..., Value]] = {"maximum": np.maximum, "minimum": np.minimum}
OPERATORS: dict[type, Callable[..., Value]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
COMPARISONS: dict[type, Callable[..., Value]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
NAMES = ["t", *CONSTANTS, *ONE_ARGUMENT, *TWO_ARGUMENTS, "where"]


@dataclass(frozen=True)
class Expression:
    """A compiled expression in t: equal, hashed and pickled by its source.

    Raises ValueError naming the first piece that is not allowed.

    >>> Expression("t + t^2/2")(np.array([1.0, 2.0]))
    array([1.5, 4. ])
    """

    source: str
    _root: Closure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_root", _compile(self.source))

    def __call__(self, t: Array, out: Array | None = None) -> Array:
        """Values at t, with the shape and dtype of t, in a new array or in `out`, which may be t."""
        values = np.empty_like(t) if out is None else out
        with np.errstate(all="ignore"):
            for slab in _slabs(t):
                values[slab] = self._root(t[slab])
        return values

    def __reduce__(self) -> tuple[type["Expression"], tuple[str]]:
        return Expression, (self.source,)


def _slabs(t: Array) -> Iterator[Any]:
    """Index t by slabs along its longest stride, so that intermediate arrays stay in cache."""
    if t.ndim == 0:
        yield ...
        return
    axis = int(np.argmax(np.abs(t.strides)))
    length = max(1, SLAB * t.shape[axis] // max(t.size, 1))
    for begin in range(0, t.shape[axis], length):
        yield (slice(None),) * axis + (slice(begin, begin + length),)


def _compile(source: str) -> Closure:
    if len(source) > LONGEST:
        raise ValueError(f"expression is too long: {len(source)} characters, at most {LONGEST} are allowed")
    root = _build(_parse(source), 0)
    if isinstance(root, float):
        raise ValueError(f"expression must depend on t, got {source!r}")
    return root


def _parse(source: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"expression cannot be read, got {source!r}; write for example t*tanh(t)") from None


def _build(node: ast.expr, depth: int) -> Closure | float:
    """A closure for what depends on t, a float for what does not."""
    if depth > DEEPEST:
        raise ValueError(f"expression is nested too deeply, at most {DEEPEST} levels are allowed")
    match node:
        case ast.Constant(value=value):
            return _number(value)
        case ast.Name(id=name):
            return _name(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _apply(node, np.negative, _build(operand, depth + 1))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _build(operand, depth + 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(node, _build(left, depth + 1), _build(right, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _apply(node, OPERATORS[type(op)], _build(left, depth + 1), _build(right, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(node, name, args, depth + 1)
    raise ValueError(f"{_text(node)!r} is not allowed in an expression in t")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a real number")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise ValueError("a number in the expression is too large for double precision")
    return number


def _name(name: str) -> Closure | float:
    if name == "t":
        return lambda t: t
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name in NAMES:
        raise ValueError(f"{name} is a function: write {name}(t)")
    raise ValueError(_unknown(name))


def _unknown(name: str) -> str:
    close = get_close_matches(name, NAMES, n=1)
    return f"unknown name {name!r} in the expression" + (f", did you mean {close[0]!r}?" if close else "")


def _call(node: ast.expr, name: str, args: list[ast.expr], depth: int) -> Closure | float:
    if name == "where" and len(args) == 3:
        return _where(args, depth)
    if name in ONE_ARGUMENT and len(args) == 1:
        return _apply(node, ONE_ARGUMENT[name], _build(args[0], depth))
    if name in TWO_ARGUMENTS and len(args) == 2:
        return _apply(node, TWO_ARGUMENTS[name], *(_build(arg, depth) for arg in args))
    if name in CONSTANTS or name == "t":
        raise ValueError(f"{name} is not a function, got {_text(node)!r}")
    if name not in NAMES:
        raise ValueError(_unknown(name))
    wanted = 3 if name == "where" else 2 if name in TWO_ARGUMENTS else 1
    raise ValueError(f"{name} takes {wanted} argument{'s' * (wanted > 1)}, got {_text(node)!r}")


def _where(args: list[ast.expr], depth: int) -> Closure:
    match args[0]:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            compare = COMPARISONS[type(op)]
        case other:
            raise ValueError(f"where needs a condition such as t > 0, got {_text(other)!r}")
    first, second = _closure(_build(left, depth)), _closure(_build(right, depth))
    yes, no = _closure(_build(args[1], depth)), _closure(_build(args[2], depth))

    def choose(t: Array) -> Value:
        condition = np.broadcast_to(compare(first(t), second(t)), t.shape)
        return np.where(condition, yes(t), no(t))

    return choose


def _power(node: ast.expr, base: Closure | float, exponent: Closure | float) -> Closure | float:
    if callable(exponent):
        return _apply(node, np.power, base, exponent)
    if abs(exponent) > LARGEST_EXPONENT:
        raise ValueError(f"exponents must lie in [-{LARGEST_EXPONENT}, {LARGEST_EXPONENT}], got {exponent:g}")
    if exponent != int(exponent):
        return _apply(node, np.power, base, exponent)
    return _apply(node, lambda x: _integer_power(x, int(exponent)), base)


def _integer_power(x: Value, exponent: int) -> Value:
    """Binary powering: NumPy's power is slow for small integers."""
    if exponent < 0:
        return np.divide(1.0, _integer_power(x, -exponent))
    if exponent == 0:
        return np.ones_like(x)
    digits = bin(exponent)[3:]
    return reduce(lambda y, digit: y * y * x if digit == "1" else y * y, digits, x)


def _apply(node: ast.expr, function: Callable[..., Value], *parts: Closure | float) -> Closure | float:
    """Compose, or compute at once when nothing depends on t."""
    if any(callable(part) for part in parts):
        closures = [_closure(part) for part in parts]
        if len(closures) == 1:
            (inner,) = closures
            return lambda t: function(inner(t))
        left, right = closures
        return lambda t: function(left(t), right(t))
    with np.errstate(all="ignore"):
        value = float(function(*(part for part in parts)))
    if not np.isfinite(value):
        raise ValueError(f"{_text(node)!r} is not a finite number")
    return value


def _closure(part: Closure | float) -> Closure:
    return part if callable(part) else lambda _t: part


def _text(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        return type(node).__name__
    return text if len(text) <= 60 else text[:57] + "..."
