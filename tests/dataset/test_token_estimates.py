"""Estimates against naive formulas and against repeated synthetic draws with known parameters."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.dataset import LabelledTokens, TokenEstimate, broken_assumptions, estimate, standardise
from resolvent.dataset.noise import trace_square


def draw(seed, *, p, n, snr, positive=0.5, variances=None, norms=(1.0,), mu=None):
    """x = offset + y mu + z, Gaussian z with given variances (mean 1) and norm factors (mean square 1)."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) < round(positive * n), 1.0, -1.0)
    direction = rng.standard_normal(p) if mu is None else mu
    direction = direction * np.sqrt(snr) / np.linalg.norm(direction)
    noise = rng.standard_normal((p, n)) * rng.choice(norms, n)
    if variances is not None:
        noise *= np.sqrt(variances)[:, None]
    return LabelledTokens.from_arrays(3 + np.outer(direction, labels) + noise, labels)


def estimated(seed, **setting) -> TokenEstimate:
    return estimate(standardise(draw(seed, **setting)))


COLOURED = np.linspace(3, 0.1, 60) / np.linspace(3, 0.1, 60).mean()
UNEQUAL = np.array([0.6, 1.4]) / np.sqrt((0.6**2 + 1.4**2) / 2)
TOP = np.eye(60)[0]

SETTINGS = {
    "white": {"p": 50, "n": 100, "snr": 1.0},
    "unbalanced": {"p": 20, "n": 200, "snr": 2.0, "positive": 0.8},
    "more dimensions than tokens": {"p": 200, "n": 60, "snr": 1.5, "positive": 0.3},
    "coloured, signal along the top": {"p": 60, "n": 200, "snr": 1.0, "variances": COLOURED, "mu": TOP},
    "unequal norms": {"p": 60, "n": 200, "snr": 1.0, "norms": UNEQUAL},
    "strong signal, coloured, unequal": {
        "p": 60, "n": 300, "snr": 30.0, "variances": COLOURED, "norms": UNEQUAL, "mu": TOP,
    },
}  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_snr_is_unbiased_and_its_standard_error_is_right(setting):
    draws = 400
    found = [estimated(seed, **setting) for seed in range(draws)]
    snr = np.array([e.snr for e in found])
    announced = np.sqrt(np.mean([e.snr_se**2 for e in found]))
    assert abs(snr.mean() - setting["snr"]) < 4 * snr.std() / np.sqrt(draws)
    assert snr.std() / announced == pytest.approx(1, abs=4 / np.sqrt(2 * draws))


def test_without_signal_snr_is_negative_half_of_the_time():
    found = [estimated(seed, p=50, n=100, snr=0.0) for seed in range(400)]
    snr = np.array([e.snr for e in found])
    assert abs(snr.mean()) < 4 * snr.std() / 20
    assert 0.4 < np.mean(snr < 0) < 0.65
    assert all(e.snr_used == max(e.snr, 0) for e in found)
    announced = np.sqrt(np.mean([e.snr_se**2 for e in found]))
    assert 0.8 < snr.std() / announced < 1.1  # the floor on the variance makes it a little too large


@pytest.mark.parametrize(
    "name", ["more dimensions than tokens", "coloured, signal along the top", "unequal norms"]
)
def test_noise_square_and_norm_variance(name):
    setting = SETTINGS[name]
    variances = setting.get("variances", np.ones(setting["p"]))
    norms = np.asarray(setting.get("norms", (1.0,)))
    found = [estimated(seed, **setting) for seed in range(200)]
    s2 = np.array([e.noise.s2 for e in found])
    true = np.mean(variances**2)
    assert (
        abs(s2.mean() - true) < 4 * s2.std() / np.sqrt(200) + 2e-3
    )  # the last: the estimated unit, of order 1/n p
    spread = np.array([e.norm_variance for e in found])
    fourth = np.mean(norms**4)
    expected = 2 * true * fourth + setting["p"] * (fourth - 1)
    # the unit is the sample's own: relative corrections of order Var(s^2) = norm_variance/(p n)
    assert abs(spread.mean() - expected) < 4 * spread.std() / np.sqrt(200) + 0.01 * expected


def test_trace_square_is_exactly_unbiased_for_gaussian_noise_in_small_samples():
    """n = 5, p = 3: the projection's corrections are not small here; 4000 draws, 4 standard errors."""
    variances = np.array([2.0, 0.7, 0.3])
    labels = np.array([1.0, 1, 1, -1, -1])
    values = []
    for seed in range(4000):
        z = np.sqrt(variances)[:, None] * np.random.default_rng(seed).standard_normal((3, 5))
        for sign in (1, -1):
            z[:, labels == sign] -= z[:, labels == sign].mean(axis=1, keepdims=True)
        values.append(trace_square(np.linalg.eigvalsh(z @ z.T) / 3, (z**2).sum(axis=0), labels))
    assert abs(np.mean(values) - np.sum(variances**2)) < 4 * np.std(values) / np.sqrt(4000)


def test_trace_square_is_a_sum_over_pairs_of_tokens():
    rng = np.random.default_rng(0)
    labels = np.array([1.0] * 4 + [-1.0] * 6)
    z = rng.standard_normal((4, 10))
    for sign in (1, -1):
        z[:, labels == sign] -= z[:, labels == sign].mean(axis=1, keepdims=True)
    same = labels[:, None] == labels
    projection = np.eye(10) - same / np.where(labels > 0, 4, 6)
    a = sum(projection[i, j] ** 2 for i, j in permutations(range(10), 2))
    b = a + sum(projection[i, i] * projection[j, j] for i, j in permutations(range(10), 2))
    pairs = sum((z[:, i] @ z[:, j]) ** 2 for i, j in permutations(range(10), 2))
    trace = (z**2).sum() / 8
    expected = (pairs - a * trace**2) / (b - 2 * a / 8)
    found = trace_square(np.linalg.eigvalsh(z @ z.T) / 8, (z**2).sum(axis=0), labels)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("p", "n"), [(7, 30), (30, 12)])
def test_against_the_formulas_written_out(p, n):
    standard = standardise(draw(0, p=p, n=n, snr=2.0, positive=1 / 3))
    x, y = standard.tokens, standard.labels
    found = estimate(standard)
    plus, minus = x[:, y > 0], x[:, y < 0]
    mu = (plus.mean(axis=1) - minus.mean(axis=1)) / 2
    k = (1 / plus.shape[1] + 1 / minus.shape[1]) / 4
    noise = np.hstack([part - part.mean(axis=1, keepdims=True) for part in (plus, minus)])
    eigenvalues = np.linalg.eigvalsh(noise @ noise.T / (n - 2))
    assert found.snr == pytest.approx(mu @ mu - k * p, rel=1e-10)
    assert found.snr_plugin == pytest.approx(mu @ mu, rel=1e-10)
    np.testing.assert_allclose(found.direction, mu / np.linalg.norm(mu), atol=1e-12)
    np.testing.assert_allclose(found.noise.eigenvalues, eigenvalues, atol=1e-10)
    assert found.noise.eigenvalues.sum() == pytest.approx(p)
    assert found.noise.mean_square == pytest.approx(np.mean(eigenvalues**2))
    assert found.noise.smallest == pytest.approx(eigenvalues[0] if p <= n - 2 else eigenvalues[p - n + 2])
    assert found.norm_spread == pytest.approx(np.std((x**2).sum(axis=0) / p))
    assert (found.n, found.p, found.ratio) == (n, p, p / n)
    assert found.label_mean == pytest.approx(y.mean())


def test_white_noise_fills_the_marchenko_pastur_bulk():
    found = estimated(0, p=400, n=800, snr=1.0).noise
    low, high = found.white_edges
    assert (low, high) == pytest.approx(((1 - 0.5**0.5) ** 2, (1 + 0.5**0.5) ** 2))
    assert found.smallest == pytest.approx(low, abs=0.03)
    assert found.largest == pytest.approx(high, abs=0.1)
    assert found.mean_square == pytest.approx(found.white_mean_square, rel=0.02)
    assert found.s2 == pytest.approx(1, abs=0.015)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_names_and_rotation_of_the_tokens_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    data = draw(seed, p=5, n=24, snr=1.0)
    first = estimate(standardise(data))
    order = rng.permutation(24)
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    moved = LabelledTokens.from_arrays(rotation @ data.tokens[:, order], -data.labels[order])
    second = estimate(standardise(moved))
    for name in ("snr", "snr_se", "snr_plugin", "norm_spread", "norm_variance"):
        assert getattr(second, name) == pytest.approx(getattr(first, name), rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(second.direction, -rotation @ first.direction, atol=1e-8)
    np.testing.assert_allclose(second.noise.eigenvalues, first.noise.eigenvalues, atol=1e-8)
    assert second.label_mean == -first.label_mean


def test_coinciding_class_means_have_no_direction():
    tokens = np.array([[1.0, -1, 1, -1], [2.0, -2, -2, 2]])
    found = estimate(standardise(LabelledTokens.from_arrays(tokens, [1, 1, 0, 0])))
    np.testing.assert_array_equal(found.direction, [0, 0])
    assert found.snr < 0 == found.snr_used


def test_as_dict_is_plain_json_and_str_reads():
    found = estimated(0, p=20, n=50, snr=1.0)
    record = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert record["snr"] == found.snr
    assert record["noise"]["s2"] == found.noise.s2
    assert list(record["noise"]["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert "snr" in str(found)
    assert "noise eigenvalues" in str(found)


MODEL = {"p": 200, "n": 400, "snr": 2.0}
BROKEN = {
    "Unequal norms": {**MODEL, "norms": UNEQUAL},
    "Noise is not white": {
        **MODEL,
        "variances": np.linspace(2, 0.001, 200) / np.linspace(2, 0.001, 200).mean(),
    },
    "Small": {"p": 40, "n": 400, "snr": 2.0},
    "Few tokens": {"p": 200, "n": 100, "snr": 0.8},
    "No clear signal": {**MODEL, "snr": 0.0},
    "Unbalanced labels": {**MODEL, "positive": 0.7},
}


@pytest.mark.parametrize("seed", range(5))
def test_the_models_own_tokens_break_nothing(seed):
    assert broken_assumptions(estimated(seed, **MODEL)) == []


@pytest.mark.parametrize(("opening", "setting"), BROKEN.items(), ids=BROKEN.keys())
def test_each_assumption_broken_alone_is_named_alone(opening, setting):
    sentences = broken_assumptions(estimated(0, **setting))
    assert len(sentences) == 1
    assert sentences[0].startswith(opening)
    assert any(character.isdigit() for character in sentences[0])


def test_one_outlying_direction_is_noise_that_is_not_white():
    variances = np.ones(1000)
    variances[0] = 8.0
    sentences = broken_assumptions(
        estimated(0, p=1000, n=2000, snr=2.0, variances=variances / variances.mean())
    )
    assert [s.split(":")[0] for s in sentences] == ["Noise is not white"]


def test_sentences_name_every_break_at_once():
    found = estimated(0, p=60, n=30, snr=0.0, positive=0.8, variances=COLOURED, norms=UNEQUAL)
    openings = [sentence.split(":")[0] for sentence in broken_assumptions(found)]
    assert openings == [
        "Unequal norms",
        "Noise is not white",
        "Small",
        "No clear signal",
        "Unbalanced labels",
    ]
