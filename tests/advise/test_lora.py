"""Low-rank weights by start, rank and scale: the gradient against the loss, errors against simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict
from resolvent.advise import advise_lora
from resolvent.advise.lora import gradient
from resolvent.simulate.sampling import draw

SETTING = Setting(Tokens(0.5, 1.0), ridge=1.0)


def of(found, start, rank, scale):
    return next(a for a in found.adaptations if (a.start, a.rank, a.scale) == (start, rank, scale))


def test_the_mean_gradient_is_that_of_the_loss():
    """Its leading directions are the exact gradient's, which agrees with differences of the loss."""
    p, n, ridge = 100, 200, 1.0
    mu = np.eye(p)[0] * np.sqrt(2.0)
    own = Setting(Tokens(0.5, 2.0), ridge=ridge)
    G = gradient(own, mu, n, np.random.default_rng(3))
    X, _, t = draw(own.tokens, mu, n, np.random.default_rng(3))

    def solved(M):
        K = np.tanh(X.T @ M @ X / np.sqrt(p)) / np.sqrt(p)
        np.fill_diagonal(K, 0.0)
        H = X @ K
        w = np.linalg.solve(H @ H.T + n * ridge * np.eye(p), H @ t)
        return w, t - w @ H

    w, rest = solved(np.eye(p))
    slope = 1.0 - np.tanh(X.T @ X / np.sqrt(p)) ** 2
    np.fill_diagonal(slope, 0.0)
    exact = -2.0 / (n * p) * X @ ((w @ X)[:, None] * slope * rest) @ X.T
    u, _, v = np.linalg.svd(exact)
    ours, _, theirs = np.linalg.svd(G)
    assert abs(u[:, 0] @ ours[:, 0]) > 0.99
    assert abs(v[0] @ theirs[0]) > 0.99

    def loss(M):
        w, rest = solved(M)
        return rest @ rest / n + ridge * w @ w

    step = 1e-4 * np.outer(u[:, 0], v[0])
    difference = (loss(np.eye(p) + step) - loss(np.eye(p) - step)) / 2e-4
    assert difference == pytest.approx(u[:, 0] @ exact @ v[0], rel=1e-5)


def test_starts_are_ordered_by_their_overlap_with_the_signal():
    found = advise_lora(SETTING, ranks=(1, 3), scales=(0.5,), n=300)
    for rank in (1, 3):
        assert of(found, "signal", rank, 0.5).overlap == pytest.approx(1.0)
        assert abs(of(found, "random", rank, 0.5).overlap) < 0.05
        assert 0.05 < of(found, "gradient", rank, 0.5).overlap < 0.9
        assert of(found, "signal", rank, 0.5).test < of(found, "gradient", rank, 0.5).test < found.none[1]
        assert abs(of(found, "random", rank, 0.5).test - found.none[1]) < 0.01


def test_along_the_signal_a_term_is_aligned_attention():
    found = advise_lora(SETTING, ranks=(1,), scales=(0.7,), n=100)
    aligned = predict(replace(SETTING, weights=Weights.aligned(0.7))).attention
    ours = of(found, "signal", 1, 0.7)
    assert (ours.train, ours.test) == pytest.approx((aligned.train, aligned.test), rel=1e-7)


def test_predicted_errors_are_measured():
    found = advise_lora(SETTING, ranks=(1, 4), scales=(1.0,), n=400, draws=8)
    for a in found.adaptations:
        for error in ("train", "test"):
            measured = getattr(a.measured, error)
            assert abs(measured.mean - getattr(a, error)) < 4 * measured.se + 0.01, a


def test_the_cheapest_that_brings_a_gain():
    found = advise_lora(SETTING, ranks=(1, 2), scales=(0.5, 1.0), n=200)
    enough = found.cheapest(0.03)
    assert (enough.start, enough.rank, enough.scale) == ("signal", 1, 1.0)
    assert found.cheapest(0.9) is None


def test_the_record_can_be_read():
    found = advise_lora(SETTING, ranks=(1,), scales=(0.5,), n=100, draws=2)
    assert "gradient" in str(found)
    assert found.as_dict()["adaptations"][0]["measured"]["test"]["mean"] > 0


@pytest.mark.parametrize(
    ("setting", "size", "message"),
    [
        (Setting(weights=Weights.aligned(1.0)), {}, "weights must be none"),
        (Setting(nonlinearity="softmax"), {}, "must act entry by entry"),
        (Setting(nonlinearity="cos"), {}, "no linear part"),
        (Setting(Tokens(0.5, 0.0)), {}, "snr must be positive"),
        (Setting(), {"ranks": (0,)}, "ranks must be at least 1"),
        (Setting(), {"ranks": (60,), "n": 100}, "ranks must be below p - 1 = 49, got 60"),
        (Setting(), {"scales": (0.0,)}, "scales must be positive"),
    ],
)
def test_wrong_input_is_one_line(setting, size, message):
    with pytest.raises(ValueError, match=message):
        advise_lora(setting, **({"n": 60} | size))
