"""The ranking and the best ridge against exact simulation on random settings."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, simulate
from resolvent.advise.candidates import attention, linear_regression
from resolvent.nonlinearity import known_names

N, DRAWS = 200, 10
CLEAR = 4.0  # standard errors of a gap that a prediction must get right
RIDGES = np.geomspace(1e-3, 1e3, 25)


def random_setting(rng):
    """Any ratio, signal, alignment, label noise and ridge."""
    return Setting(
        Tokens(
            ratio=float(np.exp(rng.uniform(np.log(0.25), np.log(1.5)))),
            snr=float(rng.uniform(0.0, 4.0)),
            label_noise=float(rng.choice([0.0, rng.uniform(0.0, 0.3)])),
        ),
        Weights.aligned(float(rng.uniform(-0.5, 1.2))),
        ridge=float(np.exp(rng.uniform(np.log(0.01), np.log(10.0)))),
    )


def judged(seed, count=4):
    """Pairs with a clear measured gap, and how many of them the prediction orders as measured."""
    rng = np.random.default_rng(seed)
    setting = random_setting(rng)
    names = rng.choice(known_names(), count, replace=False)
    predicted, mean, error = [], [], []
    p = round(float(setting.tokens.ratio) * N)
    for name in names:
        own = replace(setting, nonlinearity=str(name))
        try:
            predicted.append(attention(own, p).equal.test)
        except ValueError:  # it is left out of the advice, with its reason
            continue
        measured = simulate(own, n=N, draws=DRAWS, seed=seed, threads=1)
        mean.append(measured.attention.test.mean)
        error.append(measured.attention.test.se)
    predicted.append(linear_regression(setting, p).equal.test)
    measured = simulate(setting, n=N, draws=DRAWS, seed=seed, threads=1)
    mean.append(measured.linear.test.mean)
    error.append(measured.linear.test.se)
    clear = right = 0
    for i, j in combinations(range(len(mean)), 2):
        if abs(mean[i] - mean[j]) > CLEAR * np.hypot(error[i], error[j]):
            clear += 1
            right += (mean[i] < mean[j]) == (predicted[i] < predicted[j])
    return clear, right


def excess(seed):
    """Measured test error at the predicted best ridge over the least of the measured curve."""
    rng = np.random.default_rng(seed)
    setting = replace(random_setting(rng), nonlinearity=str(rng.choice(known_names())))
    p = round(float(setting.tokens.ratio) * N)
    try:
        best = attention(setting, p).best_ridge
    except ValueError:
        return excess(seed + 1000)
    ridges = np.r_[RIDGES, 1e12 if best == np.inf else best]
    test = simulate(replace(setting, ridge=ridges), n=N, draws=DRAWS, seed=seed, threads=1).attention.test
    k = int(np.argmin(test.mean))
    return test.mean[-1] / test.mean[k], test.se[k] / test.mean[k]


def check_ranking(seeds, count=4):
    clear, right = np.sum([judged(seed, count) for seed in seeds], axis=0)
    assert clear > len(seeds)
    assert right >= 0.97 * clear, f"{right} of {clear}"


def check_best_ridge(seeds):
    ratios = np.array([excess(seed)[0] for seed in seeds])
    assert np.all(ratios < 1.02), ratios[ratios >= 1.02]


def test_the_ranking_agrees_with_simulation():
    check_ranking(range(15), count=2)


def test_the_best_ridge_reaches_the_measured_minimum():
    check_best_ridge(range(8))


@pytest.mark.slow
def test_the_ranking_agrees_with_simulation_on_300_settings():
    check_ranking(range(300))


@pytest.mark.slow
def test_the_best_ridge_reaches_the_measured_minimum_on_300_settings():
    check_best_ridge(range(300))
