"""From an expression to its deterministic equivalent: traces, forms, derivatives, two-point functions.

Sizes are in units of the expression's own dimension (its rows), n say: tr Q/n, and u'Qv with |y|^2 = n
counted as 1. Every number carries the residual and the certificate of the fixed point behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from resolvent.engine.entrywise import Entrywise
from resolvent.engine.expression import Expression, Inverse, Sum
from resolvent.engine.forms import Forms
from resolvent.engine.letters import Deterministic, Random
from resolvent.engine.pencil import Assembly, Pencil, pencil
from resolvent.engine.ratios import sizes
from resolvent.engine.result import Measurement, Spectrum, Value
from resolvent.engine.scalar import Dim, Scalar
from resolvent.engine.vectors import Outer, Vector
from resolvent.equivalents.dyson import Array, Dyson
from resolvent.equivalents.pencil import Fixed, derivative, solve, two_point


@dataclass(frozen=True)
class Points:
    """Solved parameter points: their common shape, flat values, equation and solution."""

    shape: tuple[int, ...]
    values: dict[str, Array]
    dyson: Dyson
    fixed: Fixed

    def report(self, flat: Array) -> Value:
        """Give numbers (one per point) their shape and certificate."""
        fixed = self.fixed
        nothing = complex(np.nan, np.nan) if np.iscomplexobj(flat) else np.nan
        flat = np.where(fixed.converged, flat, nothing)
        parts = (flat, fixed.residual, fixed.iterations, fixed.converged)
        return Value(*(part.reshape(self.shape)[()] for part in parts))


@dataclass(frozen=True, repr=False)
class Equivalent:
    """Deterministic equivalent of an expression, dimensions in units of its rows; made by `equivalent`."""

    expression: Expression
    sizes: Mapping[Dim, Scalar] = field(hash=False)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shape = ", ".join(f"{dim} = {size}" for dim, size in self.sizes.items())
        return f"equivalent of {self.expression} ({shape}; {len(self.pencil)} blocks)"

    @cached_property
    def pencil(self) -> Pencil:
        """The self-adjoint linear pencil behind it; print it, or its `latex`."""
        return pencil(self.expression)

    @cached_property
    def assembly(self) -> Assembly:
        """The pencil, ready for numbers."""
        return Assembly(self.pencil, self.sizes)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names that every evaluation needs; quadratic forms also need those of the Gram matrices."""
        return _names([*_scalars(self.expression), *self.sizes.values()])

    @cached_property
    def gram_symbols(self) -> frozenset[str]:
        """Names in the Gram matrices of the low-rank parts."""
        return _names([entry for v in _vectors(self.expression) for row in v.gram for entry in row])

    @cached_property
    def _denominators(self) -> frozenset[Scalar]:
        return frozenset[Scalar]().union(
            *(s.substitute(self.sizes).denominators for s in _scalars(self.expression))
        )

    def points(self, values: Mapping[str, object], vectors: tuple[Vector, ...] = ()) -> Points:
        """Solve at the given values of the symbols, numbers or arrays that broadcast."""
        more = _names([entry for v in vectors for row in v.gram for entry in row])
        needed = self.symbols | more | (self.gram_symbols if vectors else frozenset())
        missing, extra = needed - set(values), set(values) - needed - self.gram_symbols
        if missing or extra:
            given = ", ".join(sorted(values)) or "none"
            raise ValueError(f"values are needed for {', '.join(sorted(needed)) or 'no symbol'}, got {given}")
        arrays = {name: _numeric(name, value) for name, value in values.items()}
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        flat = {
            name: np.broadcast_to(array, shape).ravel() if array.ndim else array
            for name, array in arrays.items()
        }
        for denominator in self._denominators:
            if not np.all(denominator(flat)):
                raise ValueError(f"{denominator} must not be zero: the expression divides by it")
        count = int(np.prod(shape))
        dyson = self.assembly.dyson(flat, count)
        return Points(shape, flat, dyson, _solve(dyson))

    def block(self, i: int, j: int, /, **values: object) -> Value:
        """Limit of the normalised trace of block (i, j) of the inverse pencil; zero across dimensions."""
        size = len(self.pencil)
        if not (0 <= i < size and 0 <= j < size):
            raise ValueError(f"blocks are numbered 0 to {size - 1}, got ({i}, {j})")
        points = self.points(values)
        same = self.pencil.dims[i] == self.pencil.dims[j]
        return points.report(points.fixed.traces[:, i, j] * same)

    def trace(self, **values: object) -> Value:
        """Limit of tr Q/n, n the dimension of the (square) expression."""
        _require_square(self.expression)
        i, j = self.pencil.read
        return self.block(i, j, **values)

    def quadratic(self, left: Vector, right: Vector, /, **values: object) -> Value:
        """Limit of u'Qv, low-rank parts included, in units of n: with |y|^2 = n this is y'Qy/n."""
        points = self.points(values, (left, right))
        forms = Forms(self.assembly, left, right)
        return points.report(forms.value(points.fixed.traces, points.values))

    def derivative(self, symbol: str, /, *vectors: Vector, **values: object) -> Value:
        """Exact derivative in a symbol of the trace, or of the quadratic form if two vectors are given."""
        if len(vectors) not in (0, 2):
            raise ValueError(f"a derivative takes no vector or two, got {len(vectors)}")
        if symbol not in values:
            raise ValueError(f"the derivative must be in one of {', '.join(sorted(values))}, got {symbol}")
        points = self.points(values, vectors)
        constant, eta, outer = self.assembly.slope(symbol, points.values, len(points.fixed.residual))
        moved = derivative(points.dyson, points.fixed, constant, eta)
        if vectors:
            forms = Forms(self.assembly, *vectors)
            slope = forms.slope(points.fixed.traces, moved, outer, symbol, points.values)
            return points.report(slope)
        _require_square(self.expression)
        return points.report(moved[:, self.pencil.read[0], self.pencil.read[1]])

    def two_point(self, first: Mapping[str, object], second: Mapping[str, object]) -> Value:
        """Limit of tr Q(first) Q(second)/n for the same random matrices at two values of the symbols.

        The two may differ in symbols that multiply deterministic parts only; otherwise write the product as
        one expression. For first = second = gamma of inv(gamma I + ...) this is minus the derivative.
        """
        if self.pencil.read != (0, 0) or not isinstance(self.expression, Inverse):
            raise ValueError("two_point needs a symmetric inverse; write any other product as one expression")
        one, two = self.points(first), self.points(second)
        if one.shape != two.shape or not np.allclose(one.dyson.eta, two.dyson.eta, rtol=1e-14, atol=0):
            raise ValueError("two_point needs equal shapes and the same random part at both points")
        inserted = np.zeros((len(self.pencil), len(self.pencil)))
        inserted[0, 0] = 1.0
        both = Points(
            one.shape,
            one.values,
            one.dyson,
            Fixed(
                one.fixed.traces,
                one.fixed.unknowns,
                np.maximum(one.fixed.residual, two.fixed.residual),
                one.fixed.iterations + two.fixed.iterations,
                one.fixed.converged & two.fixed.converged,
            ),
        )
        return both.report(two_point(one.dyson, one.fixed, two.dyson, two.fixed, inserted)[:, 0, 0])

    def density(self, grid: object, /, **values: object) -> Value:
        """Density of the spectrum on a grid (atoms left out), of a symmetric expression.

        For Q = inv(gamma I + B) without a value for the bare symbol gamma it is the spectrum of B, otherwise
        that of the expression itself.
        """
        from resolvent.engine import spectrum

        return spectrum.density(self, grid, values)

    def spectrum(self, **values: object) -> Spectrum:
        """Edges of the bulks and atoms of the law whose `density` this is."""
        from resolvent.engine import spectrum

        return spectrum.support(self, values)

    def measure(
        self,
        n: int,
        draws: int = 10,
        seed: int = 0,
        vectors: tuple[Vector, Vector] | None = None,
        **values: object,
    ) -> Measurement:
        """Simulate the same expression at size n (rows), f applied entry by entry, beside the limit.

        The trace, or u'Qv if two vectors are given; the seed decides every draw.
        """
        from resolvent.engine.measure import simulate

        predicted = self.quadratic(vectors[0], vectors[1], **values) if vectors else self.trace(**values)
        numbers = simulate(self.expression, self.sizes, n, draws, seed, vectors, values)
        return Measurement(
            float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(draws)), draws, n, predicted
        )


def equivalent(expression: Expression, ratios: Mapping[Scalar, object] | None = None) -> Equivalent:
    """Return the deterministic equivalent of an expression of random matrices.

    `ratios` fixes the shape of the limit: {p / n: 0.5}, or a symbol in place of the number. Raises ValueError
    if terms of a sum grow differently with the dimensions, if the expression as a whole grows, or if a ratio
    is missing.
    """
    degree = expression.degree
    if degree:
        raise ValueError(f"the expression must stay bounded, it grows like {expression.rows}^{degree}")
    dims = {expression.rows, expression.cols}
    dims |= {dim for node in _walk(expression) for dim in (node.rows, node.cols)}
    dims |= {dim for s in _scalars(expression) for dim in s.dims}
    known = sizes(expression.rows, dims, ratios or {})
    both = sorted(_names(_scalars(expression)) & {dim.name for dim in dims})
    if both:
        raise ValueError(f"{', '.join(both)} names a symbol and a dimension")
    _check_letters(expression, known)
    return Equivalent(expression, known)


def _check_letters(expression: Expression, known: Mapping[Dim, Scalar]) -> None:
    """One matrix to a name; given matrices of the shape that the ratios say."""
    seen: dict[str, Random | Deterministic] = {}
    for node in _walk(expression):
        if isinstance(node, Deterministic) or (isinstance(node, Random) and node.source is None):
            plain = node.T if node.flipped else node
            other = seen.setdefault(node.name, plain)
            if other != plain or getattr(other, "values", None) is not getattr(plain, "values", None):
                raise ValueError(f"two different matrices are named {node.name}")
            if isinstance(node, Deterministic):
                node.fits(known[node.rows] / known[node.cols])


def _solve(dyson: Dyson) -> Fixed:
    """Solve; for parameters that move the pencil into the upper half plane through the conjugate equation."""
    constant = dyson.constant
    if not np.iscomplexobj(constant) or not constant.imag.any():
        return solve(replace(dyson, constant=constant.real))
    values = np.linalg.eigvalsh(constant.imag)
    small = 1e-12 * np.abs(values).max()
    above = (values >= -small).all(axis=(1, 2)) & (values > small).any(axis=(1, 2))
    if not (above | (values <= small).all(axis=(1, 2))).all():
        raise ValueError("complex values must move a symmetric pencil into one half plane")
    mirror = above[:, None, None, None]
    fixed = solve(replace(dyson, constant=np.where(mirror, constant.conj(), constant)))
    traces = np.where(mirror[:, 0], fixed.traces.conj(), fixed.traces)
    return replace(
        fixed, traces=traces, unknowns=np.where(above[:, None], fixed.unknowns.conj(), fixed.unknowns)
    )


def _walk(expression: Expression) -> list[Expression]:
    """The expression and everything in it, entry-wise parts linearised."""
    below = (expression.linearised,) if isinstance(expression, Entrywise) else expression.children
    return [expression, *(node for child in below for node in _walk(child))]


def _scalars(expression: Expression) -> list[Scalar]:
    nodes = _walk(expression)
    found = [value for node in nodes if isinstance(node, Sum) for _, value in node.terms]
    return found + [node.variance for node in nodes if isinstance(node, Random)]


def _vectors(expression: Expression) -> set[Vector]:
    return {v for node in _walk(expression) if isinstance(node, Outer) for v in (node.left, node.right)}


def _names(scalars: Iterable[Scalar]) -> frozenset[str]:
    return frozenset(name for value in scalars for name in value.symbols)


def _numeric(name: str, value: object) -> Array:
    array = np.asarray(value)
    if array.dtype.kind not in "iufc" or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers, got {value!r}")
    return array.astype(complex if array.dtype.kind == "c" else float)


def _require_square(expression: Expression) -> None:
    if expression.rows != expression.cols:
        raise ValueError(f"only a square expression has a trace, got {expression.shape}")
