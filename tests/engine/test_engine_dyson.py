"""The kernel: against naive iteration, on the right branch, with exact derivatives."""

import numpy as np
import pytest

from resolvent.equivalents.dyson import Dyson, certified, green_matrices
from resolvent.equivalents.pencil import derivative, solve, two_point


def semicircle(z):
    """T = (-z - T)^-1 for a Wigner matrix of entry variance 1/n."""
    z = np.atleast_1d(z)
    one = np.zeros((2, 1), dtype=int)
    return Dyson(-z.reshape(-1, 1, 1, 1), np.ones((1, 1)), np.ones((len(z), 1, 1)), one, one)


def attention(gamma, c=0.5, a1=0.6, sigma2=0.03):
    """The six-block pencil of the theory page, section 9: three n-blocks, three p-blocks."""
    gamma = np.atleast_1d(gamma)
    constant = np.zeros((len(gamma), 1, 6, 6))
    constant[:, 0, 0, 0] = gamma
    for (i, j), value in {(0, 1): -a1, (1, 2): 1.0, (3, 4): -1.0, (5, 5): -1 / c}.items():
        constant[:, 0, i, j] = constant[:, 0, j, i] = value
    eta = {}
    for i, a, x in ((0, 4, a1), (1, 3, 1.0), (2, 5, 1.0)):
        for j, b, y in ((0, 4, a1), (1, 3, 1.0), (2, 5, 1.0)):
            eta[(i, j), (a, b)] = eta.get(((i, j), (a, b)), 0) + x * y
            eta[(a, b), (i, j)] = eta.get(((a, b), (i, j)), 0) + x * y / c
    for i, j, a, b in ((0, 0, 1, 1), (1, 1, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1)):
        eta[(i, j), (a, b)] = eta.get(((i, j), (a, b)), 0) + sigma2 / c
    writes, reads = sorted({w for w, _ in eta}), sorted({r for _, r in eta})
    table = np.array([[eta.get((w, r), 0.0) for r in reads] for w in writes])
    tables = np.broadcast_to(table, (len(gamma), *table.shape)).copy()
    return Dyson(constant, np.ones((1, 6)), tables, np.array(writes).T, np.array(reads).T)


def naive_attention(gamma, c=0.5, a1=0.6, sigma2=0.03, steps=4000):
    """Half-damped iteration of the two 3 x 3 matrices as the theory page writes them."""
    A = np.array([[gamma, -a1, 0], [-a1, 0, 1], [0, 1, 0]])
    E = np.array([[0, 1.0, 0], [1, 0, 0], [0, 0, 0]])
    M = np.array([[0, a1, 0], [a1, 0, 0], [0, 0, c]])
    Tn = np.linalg.inv(A + 0.1 * np.eye(3))
    for _ in range(steps):
        Tp = -M @ np.linalg.inv(np.eye(3) + Tn @ M / c)
        Tn = 0.5 * Tn + 0.5 * np.linalg.inv(A - sigma2 / c * E @ Tn @ E - Tp)
    return Tn


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_attention_equals_naive_iteration(gamma):
    fixed = solve(attention(gamma))
    assert fixed.converged.all()
    assert fixed.traces[0, :3, :3] == pytest.approx(naive_attention(gamma), rel=1e-10, abs=1e-12)


def test_small_ridges_converge_and_solve_the_equation():
    dyson = attention(np.logspace(-9, 1, 200))
    fixed = solve(dyson)
    assert fixed.converged.all()
    assert fixed.residual.max() < 1e-11
    assert (np.diff(fixed.traces[:, 0, 0]) < 0).all()


def test_wrong_branch_is_told_from_the_right_one():
    z = 3.0
    dyson = semicircle(z)
    for sign, right in ((1, True), (-1, False)):
        m = (-z + sign * np.sqrt(z**2 - 4)) / 2
        unknowns = np.array([[m]])
        assert np.allclose(1 / (-z - m), m)
        assert certified(dyson, green_matrices(dyson, unknowns))[0] == right


def test_wrong_branches_of_the_attention_pencil_are_refused():
    """Newton from random starts finds many solutions; only the limit carries the certificate."""
    dyson = attention(0.1)
    exact = solve(dyson).unknowns
    random = np.random.default_rng(0)
    kept = refused = 0
    for _ in range(300):
        y = random.standard_normal(exact.shape) * 3
        for _ in range(60):
            green = green_matrices(dyson, y)
            t = green[:, 0, dyson.reads[0], dyson.reads[1]]
            products = (
                green[:, 0][:, dyson.reads[0][:, None], dyson.writes[0]]
                * green[:, 0][:, dyson.writes[1], dyson.reads[1][:, None]]
            )
            jacobian = np.eye(y.shape[1]) - dyson.eta @ products
            change = np.linalg.solve(jacobian, ((dyson.eta @ t[..., None])[..., 0] - y)[..., None])[..., 0]
            y = y + change
        if np.abs(change).max() < 1e-10:
            right = np.allclose(y, exact, rtol=1e-6)
            assert bool(certified(dyson, green_matrices(dyson, y))[0]) == right
            kept, refused = kept + right, refused + (not right)
    assert refused > 5


def test_inside_a_spectrum_there_is_no_real_solution():
    fixed = solve(semicircle([0.5, 3.0]))
    assert list(fixed.converged) == [False, True]
    assert np.isnan(fixed.traces[0]).all()


def test_density_at_the_real_axis():
    x = np.array([-1.5, 0.0, 1.9])
    fixed = solve(semicircle(x.astype(complex)))
    assert fixed.traces[:, 0, 0].imag == pytest.approx(np.sqrt(4 - x**2) / 2, rel=1e-10)


def test_scaling_of_blocks_changes_nothing():
    dyson = attention([1e-3, 0.1])
    scale = np.array([1e3, 1e-2, 1.0, 10.0, 0.1, 5.0])
    i, j = dyson.writes
    a, b = dyson.reads
    moved = Dyson(
        scale[:, None] * dyson.constant * scale,
        dyson.weights,
        (scale[i] * scale[j])[:, None] * dyson.eta * (scale[a] * scale[b]),
        dyson.writes,
        dyson.reads,
    )
    assert scale[:, None] * solve(moved).traces * scale == pytest.approx(
        solve(dyson).traces, rel=1e-9, abs=1e-10
    )


def test_derivative_and_two_points():
    gamma, step = 0.1, 1e-5
    dyson, up, down = attention(gamma), solve(attention(gamma + step)), solve(attention(gamma - step))
    fixed = solve(dyson)
    moved = np.zeros_like(dyson.constant)
    moved[:, 0, 0, 0] = 1.0
    slope = derivative(dyson, fixed, moved, np.zeros_like(dyson.eta))
    assert slope == pytest.approx((up.traces - down.traces) / (2 * step), rel=1e-6, abs=1e-6)
    inserted = np.zeros((6, 6))
    inserted[0, 0] = 1.0
    assert two_point(dyson, fixed, dyson, fixed, inserted) == pytest.approx(-slope, rel=1e-10)
    # the resolvent identity (Q - Q')/(gamma' - gamma) = Q Q'
    other = attention(0.7)
    second = solve(other)
    product = two_point(dyson, fixed, other, second, inserted)
    difference = (fixed.traces - second.traces)[0, 0, 0] / 0.6
    assert product[0, 0, 0] == pytest.approx(difference, rel=1e-11)


def test_nodes_are_averaged():
    """D + W with D = 1, 3, 7 in shares 1/4, 1/4, 1/2: m = sum w/(d - z - m)."""
    one = np.zeros((2, 1), dtype=int)
    values, weights = np.array([1.0, 3.0, 7.0]), np.array([0.25, 0.25, 0.5])
    constant = (values + 2.0).reshape(1, 3, 1, 1)
    fixed = solve(Dyson(constant, weights[:, None], np.ones((1, 1, 1)) * 0.3, one, one))
    m = fixed.traces[0, 0, 0]
    assert m == pytest.approx(np.sum(weights / (values + 2.0 - 0.3 * m)), rel=1e-13)
    assert 0 < m < 0.5
