"""The closed-form averages against midpoint quadrature, and their slopes against differences of it."""

import numpy as np
import pytest
from naive_equivalent import marchenko_pastur

from resolvent.equivalents.averages import averages, slopes

NODES = 4000
KINDS = ["generic", "a1 = 0", "c = 1", "x = 0", "b0 = 0", "far shift", "equal roots"]


def cases(kind: str, count: int = 30) -> tuple[np.ndarray, ...]:
    """c, a1, rho, b0, x. Quadrature is poor for c near but not equal to 1, so c stays away from there."""
    rng = np.random.default_rng(KINDS.index(kind))
    c, a1 = np.exp(rng.choice([-1.0, 1.0], count) * rng.uniform(0.05, 3.0, count)), rng.normal(size=count)
    rho, b0, x = np.exp(rng.uniform(-2.0, 3.0, count)), rng.normal(size=count), rng.exponential(size=count)
    match kind:
        case "a1 = 0":
            a1 = np.zeros(count)
        case "c = 1":
            c = np.ones(count)
        case "x = 0":
            x = np.zeros(count)
        case "b0 = 0":
            b0 = np.zeros(count)
        case "far shift":
            b0 = 30.0 * b0
        case "equal roots":  # g2 = g3 where x + b0 y1 + 3/4 y1^2 = 0, y1 = -a1 rho
            b0, x = a1 * rho * (0.75 + x), (a1 * rho) ** 2 * x
    return c, a1, rho, b0, x


def quadrature(c: float, a1: float, alpha: float, b0: float, x: float) -> np.ndarray:
    g, weights = marchenko_pastur(c, NODES)
    b = a1 * g + b0
    Delta = alpha + c * g * (x + b * b)
    return np.array([weights @ (f / Delta) for f in (g, g * b, g * b * b, alpha * np.ones_like(g))])


@pytest.mark.parametrize("kind", KINDS)
def test_averages_agree_with_midpoint_quadrature(kind: str) -> None:
    c, a1, rho, b0, x = cases(kind)
    with np.errstate(all="ignore"):
        av = averages(c, a1, rho, b0, x)
    mine = np.stack([av.j0, av.j1, av.j2, av.i0], axis=-1)
    for row in range(c.size):
        Delta_at_root = av.alpha[row] - c[row] * rho[row] * (x[row] + (b0[row] - a1[row] * rho[row]) ** 2)
        assert abs(Delta_at_root) <= 1e-12 * av.alpha[row]
        exact = quadrature(c[row], a1[row], av.alpha[row], b0[row], x[row])
        scale = np.abs(exact)
        scale[1] = np.sqrt(exact[0] * exact[2])  # j1 has no sign
        assert np.all(np.abs(mine[row] - exact) <= 1e-11 * scale)


@pytest.mark.parametrize("kind", ["generic", "a1 = 0", "c = 1", "b0 = 0"])
def test_slopes_are_derivatives_of_the_averages(kind: str) -> None:
    c, a1, rho, b0, x = cases(kind)
    in_rho, in_b0, in_x = slopes(averages(c, a1, rho, b0, x), c, a1, rho)

    def change(**moved: np.ndarray) -> np.ndarray:
        av = averages(c, a1, moved.get("rho", rho), moved.get("b0", b0), moved.get("x", x))
        return np.stack([np.log(av.alpha), av.j0, av.j1, av.j2])

    def difference(along) -> np.ndarray:
        """Fourth-order central difference."""
        h = 1e-3
        near, far = along(h) - along(-h), along(2 * h) - along(-2 * h)
        return (8.0 * near - far) / (12.0 * h)

    directions = [
        (in_rho, lambda h: change(rho=rho * np.exp(h))),
        (in_b0, lambda h: change(b0=b0 + h * 0.1) * 10.0),
        (in_x, lambda h: change(x=x * np.exp(h)) / x),
    ]
    for exact, along in directions:
        numeric = difference(along)
        size = np.abs(numeric).max(axis=1, keepdims=True) + np.abs(numeric)
        assert np.all(np.abs(np.stack(exact) - numeric) <= 1e-7 * size)
