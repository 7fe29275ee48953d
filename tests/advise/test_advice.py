"""Advice: the ranking against each candidate alone, the optimum against brute force, alignment and gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict
from resolvent.advise import advise, optimal_linear_part, winning_alignment
from resolvent.advise.candidates import attention, linear_regression
from resolvent.nonlinearity import nonlinearity
from resolvent.predict import ConvergenceError
from resolvent.refine import refine

SETTINGS = [
    Setting(Tokens(0.5, 1.0), ridge=0.1),
    Setting(Tokens(0.5, 2.0), Weights.aligned(1.0), ridge=0.3),
    Setting(Tokens(2.0, 1.5, label_noise=0.1), Weights.aligned(0.5), "relu", ridge=1.0),
    Setting(Tokens(0.7, 2.0, label_mean=0.5), Weights.aligned(0.8), "relu", ridge=0.5),
    Setting(Tokens(0.5, 2.0), Weights.from_angles(key_norm=1, query_norm=2, key_cos=0.6, query_cos=0.3)),
]


def hermite_mix(a1, k, a2=0.0):
    """a1 h1 + a2 h2 + sqrt(1 - a1^2 - a2^2) h_k: a0 = 0, nu = 1."""
    rest = np.sqrt(max(1.0 - a1**2 - a2**2, 0.0))
    h = {2: "(t^2 - 1)/2^0.5", 3: "(t^3 - 3*t)/6^0.5", 4: "(t^4 - 6*t^2 + 3)/24^0.5"}
    return nonlinearity(f"{float(a1)!r}*t + {float(a2)!r}*{h[2]} + {float(rest)!r}*{h[k]}")


@pytest.fixture
def few(monkeypatch):
    """Rank four names only: all of them take a while at a real size."""
    monkeypatch.setattr("resolvent.advise.advice.known_names", lambda: ("tanh", "sign", "identity", "exp"))


@pytest.fixture(scope="module", params=(1, 3))
def advice(request):
    return advise(SETTINGS[request.param], ["t*tanh(t)"])


def test_candidates_are_ranked_by_their_own_predictions(advice):
    tests = [float(c.best.test) for c in advice.ranking]
    assert tests == sorted(tests)
    assert {"tanh", "relu", "identity", "t*tanh(t)"} <= {c.name for c in advice.ranking}
    for c in advice.ranking:
        own = replace(advice.setting, nonlinearity=c.name)
        limit = predict(own)
        assert c.equal == pytest.approx((limit.attention.train, limit.attention.test))
        curve = predict(replace(own, ridge=np.geomspace(1e-6, 1e6, 400))).attention.test
        assert c.best.test < curve.min() + 1e-9
        np.testing.assert_allclose(c.curve.test, predict(replace(own, ridge=c.curve.ridge)).attention.test)


def test_linear_regression_stands_beside_them_at_its_own_best_ridge(advice):
    curve = predict(replace(advice.setting, ridge=np.geomspace(1e-6, 1e6, 4000))).linear.test
    assert advice.linear.best.test == pytest.approx(curve.min(), rel=1e-5)


def test_the_record_can_be_read(advice):
    text, values = str(advice), advice.as_dict()
    for word in ("linear regression", "Choose", "It assumes:", advice.ranking[0].name):
        assert word in text
    assert values["ranking"][0]["best_ridge"]["test"] == advice.ranking[0].best.test
    assert values["choice"] in ("attention", "linear", "either")


@pytest.mark.usefixtures("few")
def test_at_an_equal_ridge_the_order_is_that_of_the_ridge():
    found = advise(SETTINGS[1], budget="equal")
    tests = [float(c.equal.test) for c in found.ranking]
    assert tests == sorted(tests)
    best = advise(SETTINGS[1])
    assert [c.name for c in found.ranking] != [c.name for c in best.ranking]


def test_candidates_that_cannot_be_used_are_left_out_with_the_reason():
    found = advise(Setting(keep_diagonal=True))
    assert "faster than linear" in found.left_out["cubic"]
    assert found.optimum is None
    with pytest.raises(ValueError, match="faster than linear"):
        advise(Setting(keep_diagonal=True), ["t^3"])


@pytest.mark.usefixtures("few")
def test_candidates_that_do_not_converge_are_left_out(monkeypatch):
    def stuck(setting, p=None, classes=None):
        if setting.head.f.name == "identity":
            raise ConvergenceError("the fixed point did not converge")
        return attention(setting, p, classes)

    monkeypatch.setattr("resolvent.advise.advice.attention", stuck)
    found = advise(Setting())
    assert found.left_out == {"identity": "the fixed point did not converge"}
    assert "identity" not in [c.name for c in found.ranking]


@pytest.mark.parametrize("setting", SETTINGS[:4], ids=str)
def test_at_a_size_errors_are_the_refined_ones(setting):
    for candidate, method in (
        (attention(setting, 90), "attention"),
        (linear_regression(setting, 90), "linear"),
    ):
        settled = getattr(
            refine(replace(setting, ridge=np.r_[setting.ridge, candidate.best_ridge]), 90), method
        )
        assert candidate.equal == pytest.approx((settled.train[0], settled.test[0]), rel=0.01)
        assert candidate.best == pytest.approx((settled.train[1], settled.test[1]), rel=0.01)


def test_the_refined_best_ridge_is_the_least_of_the_refined_curve():
    setting = replace(SETTINGS[1], nonlinearity="sin")
    ridges = np.geomspace(1e-2, 1e3, 61)
    curve = refine(replace(setting, ridge=ridges), 90).attention.test
    found = attention(setting, 90)
    assert found.best.test < 1.005 * curve.min()
    assert found.best_ridge < 0.7 * attention(setting).best_ridge  # the limit's is another


def test_a_signal_that_only_a_finite_size_sees_is_found():
    """f = t^3 - 3t has a1 = 0: the limit's best probe is zero, at p = 71 a probe beats it."""
    own = Setting(Tokens(0.35, 3.2), Weights.aligned(1.15), "hermite3")
    assert attention(own).best_ridge == np.inf
    found = attention(own, 71)
    assert found.limit[1].test == 1.0
    assert found.best.test < 0.8
    curve = refine(replace(own, ridge=np.geomspace(1e-2, 1e6, 33)), 71).attention.test
    assert found.best.test < 1.01 * curve.min()


@pytest.mark.usefixtures("few")
def test_the_finite_size_check_speaks_up():
    assert advise(SETTINGS[1]).cautions == []
    near = advise(Setting(Tokens(0.5, 1.0)), p=400)
    far = advise(Setting(Tokens(0.5, 4.0), Weights.aligned(1.0)), p=40)
    assert len(near.cautions) == 1
    assert len(far.cautions) == 2
    assert "not small against 1" in far.cautions[0]
    assert "extreme tokens" in far.left_out["exp"]


@pytest.mark.parametrize("error", ["train", "test"])
@pytest.mark.parametrize("setting", SETTINGS[:3], ids=str)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_balanced_labels_see_only_a1(setting, error, k):
    """Brute force over f = a1 h1 + sqrt(1 - a1^2) h_k: the same curve for every k, the optimum its least."""
    shares = np.linspace(0.0, 1.0, 51)
    values = []
    for share in shares:
        limit = predict(replace(setting, nonlinearity=hermite_mix(float(np.sqrt(share)), k)))
        values.append(getattr(limit.attention, error))
    found = optimal_linear_part(setting, error=error)
    assert found.a2 == 0.0
    assert found.error <= min(values) + 1e-10
    assert found.error == pytest.approx(min(values), rel=2e-3)
    assert abs(found.share - shares[np.argmin(values)]) <= 0.04
    assert (found.noise, found.identity) == pytest.approx((values[0], values[-1]))


def test_unbalanced_labels_see_a2_too():
    setting = SETTINGS[3]
    found = optimal_linear_part(setting)
    errors = {
        (share, sign, part): predict(
            replace(
                setting,
                nonlinearity=hermite_mix(float(np.sqrt(share)), 3, sign * float(np.sqrt((1 - share) * part))),
            )
        ).attention.test
        for share in np.linspace(0.0, 1.0, 11)
        for sign in (-1.0, 1.0)
        for part in (0.0, 0.5, 1.0)
    }
    assert found.error <= min(errors.values()) + 1e-10
    assert found.error == pytest.approx(min(errors.values()), rel=5e-3)
    assert found.a2 != 0.0


@pytest.mark.parametrize("error", ["train", "test"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_witness_attains_the_optimum(setting, error):
    found = optimal_linear_part(setting, error=error)
    assert found.nonlinearity.coefficients().nu == pytest.approx(1.0)
    attained = predict(replace(setting, nonlinearity=found.nonlinearity)).attention
    assert getattr(attained, error) == pytest.approx(found.error, rel=1e-7)


def test_at_the_best_ridge_no_noise_is_best():
    found = optimal_linear_part(SETTINGS[1], best_ridge=True)
    assert found.share == pytest.approx(1.0)
    assert found.error == pytest.approx(attention(replace(SETTINGS[1], nonlinearity="identity")).best.test)


def test_a_residual_connection_lets_the_sign_of_a1_matter():
    setting = Setting(Tokens(0.5, 1.0), skip=-0.5)
    signs = [predict(replace(setting, nonlinearity=f"{s}*t")).attention.test for s in (1.0, -1.0)]
    found = optimal_linear_part(setting)
    assert found.error <= min(signs) + 1e-10
    assert np.sign(found.a1) == (1.0, -1.0)[int(np.argmin(signs))]


def test_the_winning_alignment_is_where_the_errors_cross():
    setting = Setting(Tokens(2.0, 1.0), ridge=0.1)
    found = winning_alignment(setting)
    assert np.isnan(found.train)
    assert 0.0 < found.test < 5.0
    for a, wins in ((found.test - 1e-3, False), (found.test + 1e-3, True)):
        limit = predict(replace(setting, weights=Weights.aligned(a)))
        assert (limit.attention.test < limit.linear.test) is wins
    for a, wins in ((found.best_test - 1e-2, False), (found.best_test + 1e-2, True)):
        own = replace(setting, weights=Weights.aligned(a))
        assert (attention(own).best.test < linear_regression(own).best.test) is wins


def test_alignment_that_never_and_always_wins():
    assert np.isnan(winning_alignment(Setting(nonlinearity="cos")).test)
    assert winning_alignment(Setting(Tokens(0.5, 2.0), ridge=1.0)).test == 0.0


@pytest.mark.usefixtures("few")
def test_gains_are_differences_of_predictions():
    setting = SETTINGS[1]
    found = advise(setting)
    leader = replace(setting, nonlinearity=found.ranking[0].name)
    steps = {
        "align + 1": replace(leader, weights=Weights.aligned(2.0)),
        "snr + 1": replace(leader, tokens=Tokens(0.5, 3.0)),
        "twice the tokens": replace(leader, tokens=Tokens(0.25, 2.0)),
    }
    assert [g.step for g in found.gains] == list(steps)
    for gain in found.gains:
        before, after = predict(leader).attention, predict(steps[gain.step]).attention
        assert gain.change["train"] == pytest.approx(after.train - before.train)
        assert gain.change["test"] == pytest.approx(after.test - before.test)
    assert [g.step for g in advise(SETTINGS[4]).gains] == list(steps)[1:]


@pytest.mark.usefixtures("few")
def test_without_signal_it_says_so():
    found = advise(Setting(Tokens(0.5, 0.0)))
    assert found.choice == "either"
    assert "no signal" in found.reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: advise(Setting(ridge=[0.1, 1.0])), "advise takes one setting"),
        (lambda: advise(Setting(), budget="free"), "budget must be best or equal, got 'free'"),
        (lambda: advise(Setting(), ["tahn"]), "did you mean tanh"),
        (lambda: advise(Setting(), p=1), "p must be at least 2"),
        (lambda: attention(Setting(), 2), "p must be above 2 for these weights, got 2"),
        (lambda: winning_alignment(Setting(ridge=[0.1, 1.0])), "winning_alignment takes one setting"),
        (lambda: optimal_linear_part(Setting(ridge=[0.1, 1.0])), "optimal_linear_part takes one setting"),
        (lambda: optimal_linear_part(Setting(keep_diagonal=True)), "keep_diagonal must be off"),
        (lambda: optimal_linear_part(Setting(), error="both"), "error must be train or test"),
        (lambda: optimal_linear_part(Setting(), error="train", best_ridge=True), "has no best ridge"),
    ],
)
def test_wrong_input_is_one_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
