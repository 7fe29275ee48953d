"""Algebra of 3x3 matrices held by their components.

A component is an array over the rows of a problem, or one number. Every formula on them is elementwise, so
that NumPy runs it over many rows at once and Numba compiles it for one row, from the same source.
"""

from __future__ import annotations

from typing import NamedTuple

from resolvent.equivalents.averages import Array

Vector = tuple[Array, Array, Array]


class Symmetric(NamedTuple):
    """The six entries of a symmetric matrix."""

    m00: Array
    m01: Array
    m02: Array
    m11: Array
    m12: Array
    m22: Array


def dot(u: Vector, v: Vector) -> Array:
    """u'v."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def cross(u: Vector, v: Vector) -> Vector:
    """The vector product."""
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


def along(factor: Array | float, v: Vector) -> Vector:
    """factor v."""
    return factor * v[0], factor * v[1], factor * v[2]


def plus_along(u: Vector, factor: Array, v: Vector) -> Vector:
    """u + factor v."""
    return u[0] + factor * v[0], u[1] + factor * v[1], u[2] + factor * v[2]


def transposed(u: Vector, v: Vector, w: Vector) -> tuple[Vector, Vector, Vector]:
    """The columns of the matrix with rows u, v and w."""
    return (u[0], v[0], w[0]), (u[1], v[1], w[1]), (u[2], v[2], w[2])


def times(S: Symmetric, v: Vector) -> Vector:
    """S v."""
    return (
        S.m00 * v[0] + S.m01 * v[1] + S.m02 * v[2],
        S.m01 * v[0] + S.m11 * v[1] + S.m12 * v[2],
        S.m02 * v[0] + S.m12 * v[1] + S.m22 * v[2],
    )


def scaled(factor: Array, S: Symmetric) -> Symmetric:
    """factor S."""
    return Symmetric(
        factor * S.m00, factor * S.m01, factor * S.m02, factor * S.m11, factor * S.m12, factor * S.m22
    )


def plus(S: Symmetric, T: Symmetric) -> Symmetric:
    """S + T."""
    return Symmetric(S.m00 + T.m00, S.m01 + T.m01, S.m02 + T.m02, S.m11 + T.m11, S.m12 + T.m12, S.m22 + T.m22)


def inverse(S: Symmetric) -> Symmetric:
    """S^-1 by cofactors."""
    c00 = S.m11 * S.m22 - S.m12 * S.m12
    c01 = S.m02 * S.m12 - S.m01 * S.m22
    c02 = S.m01 * S.m12 - S.m02 * S.m11
    c11 = S.m00 * S.m22 - S.m02 * S.m02
    c12 = S.m01 * S.m02 - S.m00 * S.m12
    c22 = S.m00 * S.m11 - S.m01 * S.m01
    return scaled(1.0 / (S.m00 * c00 + S.m01 * c01 + S.m02 * c02), Symmetric(c00, c01, c02, c11, c12, c22))


def solve(columns: tuple[Vector, Vector, Vector], right: Vector) -> Vector:
    """The solution of a system given by its columns, by Cramer's rule."""
    a, b, c = columns
    bc, ra = cross(b, c), cross(right, a)
    determinant = dot(a, bc)
    return dot(right, bc) / determinant, -dot(ra, c) / determinant, dot(ra, b) / determinant
