"""The ridge curve by bidiagonalisation against eigenpairs, and when it is chosen."""

import numpy as np
import pytest

from resolvent.nonlinearity import nonlinearity
from resolvent.simulate import bidiagonal as module
from resolvent.simulate.bidiagonal import bidiagonal, quicker, steps_needed, worth
from resolvent.simulate.features import Attention, features
from resolvent.simulate.probe import Probe, fitted


def problem(name, p, n, snr=1.0, align=0.0, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.choice([-1.0, 1.0], n)
    mu = np.zeros(p)
    mu[0] = np.sqrt(snr)
    tokens = rng.standard_normal((p, n)) + np.outer(mu, target)
    return features(Attention(nonlinearity(name).evaluate, align * mu, align * mu), tokens), target


CASES = [
    ("tanh", 120, 240, 2.0, 1.0),
    ("tanh", 200, 200, 1.0, 0.0),
    ("relu", 80, 300, 1.0, 0.0),
    ("t^3 - 3*t", 200, 130, 1.0, 0.5),
    ("abs", 150, 60, 0.0, 0.0),
]


@pytest.mark.parametrize("smallest", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("case", CASES)
def test_errors_and_weights_are_those_of_the_eigenpairs(case, smallest):
    H, t = problem(*case)
    ridge = smallest * np.geomspace(1.0, 1e3, 12)
    found, exact = bidiagonal(H, t, smallest, 2 * min(H.shape)), Probe.fit(H, t)
    train, w = found.solve(ridge)
    np.testing.assert_allclose(train, exact.train(ridge), rtol=0, atol=1e-12)
    outputs, wanted = w @ H, exact.weights(ridge) @ H
    assert np.linalg.norm(outputs - wanted, axis=1).max() < 1e-8 * np.linalg.norm(t)
    assert found.alpha.size <= min(H.shape)


@pytest.mark.parametrize("case", CASES)
def test_the_bound_on_the_outputs_holds_and_is_not_idle(case, monkeypatch):
    H, t = problem(*case)
    for accuracy in (1e-2, 1e-5):
        monkeypatch.setattr(module, "ACCURACY", accuracy)
        _, w = bidiagonal(H, t, 0.01, min(H.shape)).solve(np.array([0.01]))
        error = np.linalg.norm((w - Probe.fit(H, t).weights(np.array([0.01]))) @ H) / np.linalg.norm(t)
        assert 1e-3 * accuracy < error <= accuracy


def test_it_stops_where_nothing_is_left():
    rng = np.random.default_rng(0)
    H, t = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 90)), rng.choice([-1.0, 1.0], 90)
    found = bidiagonal(H, t, 1e-6, 50)
    assert found.alpha.size == 3
    np.testing.assert_allclose(
        found.solve(np.array([1e-6]))[0], Probe.fit(H, t).train(np.array([1e-6])), rtol=1e-10
    )
    for features_, target in ((np.zeros((5, 9)), np.ones(9)), (np.ones((5, 9)), np.zeros(9))):
        train, w = bidiagonal(features_, target, 0.1, 9).solve(np.array([0.1, 1.0]))
        np.testing.assert_array_equal(train, np.full(2, target @ target / 9))
        np.testing.assert_array_equal(w, np.zeros((2, 5)))


def test_it_gives_up_after_so_many_steps():
    H, t = problem(*CASES[1])
    assert bidiagonal(H, t, 1e-4, 20) is None


@pytest.mark.parametrize(
    ("p", "n", "ridge", "chosen"),
    [
        (4096, 8192, [0.01, 1.0], True),
        (4096, 8192, [1e-5, 1.0], False),  # too many steps
        (4096, 8192, [0.0, 1.0], False),
        (4096, 8192, [1.0], True),
        (4096, 8192, [0.1], False),  # a solve is quicker than eigenpairs
        (4096, 16384, [1e-5, 1.0], True),  # the spectrum ends far from zero
        (8192, 4096, [0.1, 1.0], True),
        (1024, 2048, [0.01, 1.0], False),
        (1024, 4096, [1e-3, 1.0], False),  # the eigenpairs of a small matrix are cheap
    ],
)
def test_the_cost_model_chooses(p, n, ridge, chosen):
    assert quicker(p, n, np.array(ridge), mean_eigenvalue=1.0) is chosen


def test_expected_steps_are_those_taken():
    for name, p, n, ridge in (("tanh", 200, 400, 0.1), ("relu", 200, 400, 1.0), ("tanh", 300, 300, 0.1)):
        H, t = problem(name, p, n)
        taken = bidiagonal(H, t, ridge, 300).alpha.size
        mean = np.vdot(H, H) / (n * min(p, n))
        assert 0.4 < taken / steps_needed(mean, min(p, n) / max(p, n), ridge) < 1.6


def test_a_factorisation_is_worth_steps_in_proportion_to_the_size():
    assert worth(4096, 8192, 50) / worth(2048, 4096, 50) == pytest.approx(2.0, rel=0.01)
    assert worth(4096, 8192, 1) < worth(4096, 8192, 50) / 2


@pytest.mark.parametrize("enough", [True, False])
def test_the_probe_takes_it_where_chosen_and_goes_back_where_it_does_not_settle(enough, monkeypatch):
    H, t = problem(*CASES[0])
    ridge = np.geomspace(0.01, 1.0, 4)
    exact = Probe.fit(H, t)
    monkeypatch.setattr(module, "worth", lambda *_: 300 if enough else 30)
    monkeypatch.setattr(module, "quicker", lambda *_: True)
    assert (module.curve(H, t, ridge) is not None) is enough
    train, w = fitted(H, t, ridge)
    np.testing.assert_allclose(train, exact.train(ridge), rtol=0, atol=1e-8)
    np.testing.assert_allclose(w, exact.weights(ridge), rtol=0, atol=1e-8 * np.abs(w).max())
