"""Best ridges over a plane against a search at every point."""

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, phase, predict
from resolvent.phase.best import best_ridge
from resolvent.phase.plane import best_ridges
from resolvent.setting.variation import varied

SHAPE = (193, 200)  # nested grids of 25 and 50 points a side are searched, those of 100 and 200 where rough
Y, X = (v.ravel() for v in np.meshgrid(*(np.linspace(0.0, 1.0, size) for size in SHAPE), indexing="ij"))
PAIRS = (("ratio", "snr"), ("align", "snr"), ("ratio", "label_noise"), ("label_noise", "snr"))
VALUES = {
    "ratio": np.geomspace(0.1, 4.0, 200),
    "snr": np.linspace(0.2, 8.0, 193),
    "align": np.linspace(-1.0, 1.0, 200),
    "label_noise": np.linspace(0.0, 0.4, 200),
}


def everywhere(error):
    """Both ways on a synthetic error, and how many evaluations each took."""
    asked = []

    def counted(ridge, rows):
        asked.append(rows.size)
        return error(np.log10(np.maximum(ridge, 1e-30)), rows)

    fast = best_ridges(counted, SHAPE).ravel()
    few, asked[:] = sum(asked), []
    return fast, best_ridge(counted, X.size).ridge, few, sum(asked)


@pytest.mark.parametrize("seed", range(8))
def test_random_settings_are_those_of_a_search_at_every_point(seed):
    rng = np.random.default_rng(seed)
    x, y = PAIRS[seed % len(PAIRS)]
    setting = Setting(
        Tokens(rng.uniform(0.2, 2.0), rng.uniform(0.5, 4.0), label_noise=rng.uniform(0.0, 0.3)),
        Weights.aligned(rng.uniform(-1.0, 1.0)),
        ("tanh", "relu", "t^3 - t", "sign")[(seed // 2) % 4],
        skip=rng.uniform(-0.5, 0.5),
    )
    plane = phase(setting, (x, VALUES[x]), (y, VALUES[y]), best_ridge=True)
    some = rng.integers(0, plane.converged.size, 300)
    j, i = np.unravel_index(some, plane.converged.shape)
    points = {x: VALUES[x][i], y: VALUES[y][j]}
    for k, (method, errors) in enumerate((("attention", plane.attention), ("linear", plane.linear))):

        def test(ridge, rows, method=method):
            at = {name: values[rows] for name, values in points.items()}
            return getattr(predict(varied(setting, at | {"ridge": ridge})), method).test

        want = best_ridge(test, some.size)
        np.testing.assert_allclose(errors[1, j, i], want.test, rtol=0, atol=2e-9)
        found, inside = plane.ridges[k, j, i], np.isfinite(want.ridge) & (want.ridge > 0.0)
        off = np.abs(np.log10(found[inside] / want.ridge[inside]))
        assert np.max(off, initial=0.0) < 2e-3
        np.testing.assert_array_equal(found[~inside], want.ridge[~inside])


def test_a_smooth_surface_is_searched_at_few_points():
    fast, slow, few, many = everywhere(lambda power, r: 0.1 + 0.01 * (power - np.sin(3.0 * X[r]) - Y[r]) ** 2)
    np.testing.assert_allclose(np.log10(fast), np.log10(slow), atol=1e-4)
    assert few < many / 3


def test_a_jump_between_two_minima_stays_sharp():
    def error(power, rows):
        depth = 0.1 * (X[rows] + 0.3 * np.sin(5.0 * Y[rows]) - 0.6)
        return (
            0.5
            - (0.2 + depth) * np.exp(-((power - 2.0) ** 2))
            - (0.2 - depth) * np.exp(-((power + 2.0) ** 2))
        )

    fast, slow, few, many = everywhere(error)
    assert {-2, 2} == set(np.round(np.log10(slow)))
    np.testing.assert_allclose(np.log10(fast), np.log10(slow), atol=1e-4)
    assert few < many


def test_the_ends_of_the_range_meet_in_the_plane():
    def error(power, rows):
        rising, inside = 1.0 / (1.0 + np.exp(-power)), 0.01 * (power - 8.0 * X[rows] + 4.0) ** 2
        right = 0.7 + 0.2 * Y[rows]
        return np.where(X[rows] < 0.3, 0.1 * rising, np.where(X[rows] > right, 2.0 - rising, inside))

    fast, slow, _, _ = everywhere(error)
    assert (slow == 0.0).any()
    assert np.isinf(slow).any()
    np.testing.assert_array_equal(fast == 0.0, slow == 0.0)
    np.testing.assert_array_equal(np.isinf(fast), np.isinf(slow))
    inside = np.isfinite(slow) & (slow > 0.0)
    np.testing.assert_allclose(np.log10(fast[inside]), np.log10(slow[inside]), atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 2), (2, 200), (33, 3), (46, 47)])
def test_any_shape(shape):
    y, x = (v.ravel() for v in np.meshgrid(*(np.linspace(0.0, 1.0, size) for size in shape), indexing="ij"))
    found = best_ridges(lambda ridge, r: (np.log10(np.maximum(ridge, 1e-30)) - x[r] + y[r] ** 2) ** 2, shape)
    np.testing.assert_allclose(np.log10(found).ravel(), x - y**2, atol=1e-4)
