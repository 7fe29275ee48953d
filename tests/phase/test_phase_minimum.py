"""The vectorised minimum against scipy's, one problem at a time."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from resolvent.phase.best import best_ridge
from resolvent.phase.minimum import Bracket, minimum

CENTRES = np.linspace(-0.7, 0.7, 29)
FUNCTIONS = [
    lambda x, m: (x - m) ** 2,
    lambda x, m: np.abs(x - m) ** 1.5,
    lambda x, m: (x - m) ** 4 + 0.3 * (x - m) ** 2,
    lambda x, m: np.cosh(3.0 * (x - m)) + 0.5 * x,
    lambda x, m: -1.0 / (1.0 + 25.0 * (x - m) ** 2) - 0.1 * x,
    lambda x, m: np.abs(x - m),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_minima_are_those_of_scipy(f):
    def values(x, rows):
        return f(x, CENTRES[rows])

    rows = np.arange(CENTRES.size)
    a, c = np.full(rows.size, -1.5), np.full(rows.size, 1.5)
    b = np.clip(CENTRES + 0.2, -1.0, 1.0)
    place, value = minimum(values, Bracket(a, b, c, values(a, rows), values(b, rows), values(c, rows)), 1e-3)
    for i, m in enumerate(CENTRES):
        want = minimize_scalar(f, args=(m,), bracket=(-1.5, b[i], 1.5), options={"xtol": 1e-10})
        assert place[i] == pytest.approx(want.x, abs=1e-3)
        assert value[i] <= want.fun + 1e-3
        if f is not FUNCTIONS[-1]:
            assert value[i] == pytest.approx(want.fun, abs=2e-5)


def test_every_problem_stops_by_itself():
    asked = []

    def values(x, rows):
        asked.append(rows.size)
        return np.where(rows == 0, (x - 0.1) ** 2, np.abs(x - 0.1) ** 1.1)

    start = [np.full(2, v) for v in (-1.0, 0.0, 1.0)]
    rows = np.arange(2)
    minimum(values, Bracket(*start, *(values(v, rows) for v in start)), 1e-6)
    assert {1, 2} <= set(asked)


@pytest.mark.parametrize("best", [1e-6, 3e-4, 0.02, 1.7, 3e5])
def test_the_best_ridge_is_found_over_twelve_decades(best):
    found = best_ridge(lambda ridge, _: np.log10(np.maximum(ridge, 1e-30) / best) ** 2 / 100.0, 3)
    np.testing.assert_allclose(found.ridge, best, rtol=1e-3)
    np.testing.assert_allclose(found.test, 0.0, atol=1e-8)


def test_a_ridgeless_and_an_infinite_ridge_are_candidates():
    rising = best_ridge(lambda ridge, _: 0.5 + 0.1 * ridge / (1.0 + ridge), 2)
    assert list(rising.ridge) == [0.0, 0.0]
    falling = best_ridge(lambda ridge, _: 1.0 + 1.0 / (1.0 + ridge), 2)
    assert list(falling.ridge) == [np.inf, np.inf]
    assert list(falling.test) == [1.0, 1.0]
