"""What the wider settings refuse, in one line, and what they tell."""

from __future__ import annotations

import json

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict, simulate
from resolvent.laws import population
from resolvent.nonlinearity import Softmax
from resolvent.setting.cautions import cautions
from resolvent.setting.points import points
from resolvent.simulate.measure import sizes

EYE = np.eye(4)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Weights.matrix(np.ones((3, 4))), "weights must be a square matrix, got shape (3, 4)"),
        (lambda: Weights.matrix(np.ones(4)), "weights must be a square matrix, got shape (4,)"),
        (lambda: Weights.matrix(np.full((4, 4), np.nan)), "weights must be finite and not empty"),
        (lambda: Weights.matrix(np.full((4, 4), np.inf)), "weights must be finite and not empty"),
        (lambda: Weights.matrix(np.zeros((4, 4))), "weights must not be zero"),
        (lambda: Weights.matrix(1j * EYE), "weights must be real numbers, got complex128"),
        (lambda: Weights.matrix([["a", "b"], ["c", "d"]]), "weights must be real numbers, got <U1"),
        (lambda: Weights.matrix(np.empty((0, 0))), "weights must be finite and not empty"),
        (
            lambda: Weights.matrix(np.broadcast_to(1.0, (9000, 9000))),
            "weights must be at most 8192 x 8192, got shape (9000, 9000)",
        ),
        (lambda: Weights.matrix(EYE, tau=0.0), "tau must be positive, got 0"),
        (lambda: Weights.matrix(EYE, signal="top"), "signal must be random, top-key, top-query or a vector"),
        (lambda: Weights.matrix(EYE, signal=np.ones(3)), "signal must have shape (4,), got (3,)"),
        (lambda: Weights.matrix(EYE, signal=np.zeros(4)), "signal must not be zero"),
        (
            lambda: Weights.factors(np.ones((2, 4)), np.ones((2, 5))),
            "key and query weights must share one shape",
        ),
        (lambda: Weights.factors(np.eye(4)[:1], np.zeros((1, 4))), "weights must not be zero"),
        (lambda: Weights.low_rank(EYE, EYE[:2], np.ones(4)), "keys and queries must be matrices (r, p)"),
        (lambda: Weights.low_rank(EYE, EYE, np.zeros(4)), "mu must not be zero"),
        (
            lambda: Weights.low_rank(np.ones((65, 4)), np.ones((65, 4)), np.ones(4)),
            "keys must have at most 64",
        ),
        (lambda: Tokens(noise="cauchy"), "noise must be one of gaussian, rademacher"),
        (lambda: Tokens(noise="student-t:4"), "degrees must be above 4"),
        (lambda: Tokens(noise="student-t:x"), "noise must hold a number after the colon, got 'student-t:x'"),
        (lambda: Tokens(noise="student-t"), "student-t noise needs its degrees of freedom"),
        (lambda: Tokens(covariance="ar2:0.5"), "covariance must be power-law:EXPONENT, ar1:CORRELATION"),
        (lambda: Tokens(covariance="ar1:1"), "correlation must be between -1 and 1"),
        (lambda: Tokens(covariance="spiked:4"), "covariance must be power-law:EXPONENT"),
        (
            lambda: Tokens(covariance=np.ones((2, 3))),
            "covariance must be a symmetric matrix, got shape (2, 3)",
        ),
        (lambda: Tokens(covariance=-EYE), "covariance must be positive definite, got the eigenvalue -1"),
        (lambda: Tokens(covariance=[1.0, -1.0]), "eigenvalues must be positive and finite"),
        (lambda: Tokens(norm_spread=-0.1), "norm_spread must be between 0 and 2, got -0.1"),
        (lambda: Tokens(norm_spread=[0.1, 0.2]), "norm_spread must be one number"),
        (lambda: Tokens(normalise="batch"), "normalise must be rms or layer, got 'batch'"),
        (lambda: Setting(nonlinearity="softmax", beta=0.0), "beta must be positive and at most 20, got 0"),
        (lambda: Setting(nonlinearity="softmax", beta=21.0), "beta must be positive and at most 20, got 21"),
        (lambda: Setting(beta=1.0), "beta must be left out, it belongs to softmax, got 1.0 with 'tanh'"),
        (
            lambda: Setting(nonlinearity="softmax", keep_diagonal=True),
            "softmax with the self-score kept tends to the identity matrix",
        ),
        (lambda: Setting(nonlinearity="softmax", centred=False), "centred must be left out with softmax"),
        (lambda: Setting(nonlinearity=[]), "heads must have as many nonlinearities as weights"),
        (
            lambda: Setting(weights=[Weights.none()] * 3, nonlinearity=["tanh", "relu"]),
            "heads must have as many",
        ),
        (
            lambda: Setting(weights=[Weights.matrix(EYE), Weights.aligned(1.0)]),
            "weights of heads must all be matrices, or none",
        ),
        (
            lambda: Setting(weights=[Weights.matrix(EYE), Weights.matrix(np.eye(5))]),
            "weights of heads must share the dimension",
        ),
        (
            lambda: Setting(Tokens(covariance="ar1:0.5"), Weights.matrix(EYE)),
            "weights given as a matrix need white Gaussian noise",
        ),
        (lambda: predict(Setting(Tokens(norm_spread=0.3))), "norm_spread must be 0 or come with normalise"),
        (
            lambda: predict(Setting(weights=Weights.matrix(EYE)), p=5),
            "p must be 4, the dimension of the weights",
        ),
        (
            lambda: predict(Setting(weights=Weights.matrix(EYE), ridge=0.0)),
            "ridge must be positive for these",
        ),
        (lambda: simulate(Setting(weights=Weights.matrix(EYE)), n=30), "n must be about 8, the dimension 4"),
    ],
)
def test_refused_in_one_line(build, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        build()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_wrong_kinds() -> None:
    for build in (
        lambda: Setting(weights=EYE),
        lambda: Setting(weights=[EYE]),
        lambda: Tokens(noise=3),
        lambda: Softmax("1"),
        lambda: Weights.low_rank("a", "b", "c"),
    ):
        with pytest.raises(TypeError):
            build()


def test_softmax_beyond_its_range_is_cautioned() -> None:
    assert cautions(Setting(nonlinearity="softmax", beta=1.5)) == []
    (line,) = cautions(Setting(nonlinearity="softmax", beta=1.6))
    assert line.startswith("softmax at beta tau = 1.6 approaches its limit slowly")
    assert line in str(predict(Setting(nonlinearity="softmax", beta=1.6)))


def test_low_stable_rank_is_cautioned() -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((2, 4, 60))
    low = Setting(weights=Weights.factors(*W, tau=1.0))
    assert any("stable rank" in line and "below 10" in line for line in cautions(low))
    assert cautions(Setting(weights=Weights.matrix(np.eye(60)))) == []


def test_large_scores_of_a_matrix_are_cautioned() -> None:
    M = np.eye(50)
    M[0, 0] = 9.0
    near = Setting(Tokens(snr=2.0), Weights.matrix(M, signal="top-key"))
    assert any("the scores that signal and weights add" in line for line in cautions(near, 50))


def test_a_matrix_says_what_the_theory_sees_of_it() -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((6, 40))
    weights = Weights.factors(W, W, tau=0.7, signal="top-key")
    record = weights.as_dict()
    M = W.T @ W * 0.7 * np.sqrt(40) / np.linalg.norm(W.T @ W)
    assert record["tau"] == pytest.approx(0.7)
    assert record["stable_rank"] == pytest.approx(np.linalg.norm(M) ** 2 / np.linalg.norm(M, 2) ** 2)
    assert record["trace"] == pytest.approx(np.trace(M) / 40)
    assert record["rho"] == pytest.approx(1.0)
    assert abs(weights.signal @ np.linalg.eigh(M)[1][:, -1]) == pytest.approx(1.0)
    json.dumps(Setting(weights=weights).as_dict())
    assert Weights.matrix(EYE).digest != Weights.matrix(2.0 * EYE).digest


def test_covariances_by_name_by_matrix_and_by_eigenvalues() -> None:
    levels = np.array([0.5, 1.0, 1.5])
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for given in (levels, basis * levels @ basis.T, population(levels)):
        np.testing.assert_allclose(Tokens(covariance=given).population.levels, levels)
    assert Tokens(covariance="spiked:4:0.1").population.moment(1) == pytest.approx(1.0)
    assert Tokens(covariance="ar1:0.5").as_dict()["covariance"] == "ar1:0.5"
    assert "covariance" not in Tokens().as_dict()


def test_points_group_ridges() -> None:
    model = Setting(Tokens(snr=[[1.0], [2.0]]), Weights.aligned(0.5), ridge=[0.1, 1.0])
    parts = list(points(model))
    assert [here.tolist() for here, _ in parts] == [[0, 1], [2, 3]]
    assert [float(part.tokens.snr) for _, part in parts] == [1.0, 2.0]
    assert all(part.ridge.tolist() == [0.1, 1.0] for _, part in parts)


def test_a_matrix_fixes_the_sizes() -> None:
    model = Setting(Tokens(ratio=0.3), Weights.matrix(np.eye(100)))
    assert sizes(model) == (333, 100)
    assert sizes(model, 334) == (334, 100)
    assert simulate(model, draws=1).p == 100
