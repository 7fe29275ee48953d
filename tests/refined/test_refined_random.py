"""Random settings at real sizes: refined and limit beside exact simulation.

Run as a program, it prints counts and failures: `python tests/refined/test_refined_random.py`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict, simulate
from resolvent.nonlinearity import known_names

NAMES = [name for name in known_names() if name != "exp"]  # whose E f^4 is 114 times (E f^2)^2
WORK = 1.5e9  # multiplications that the draws of one setting may take
RELATIVE = 0.03
ERRORS = ("train", "test")


@dataclass(frozen=True)
class Case:
    """A setting, its size, and per error the measured mean and standard error, the limit and the refined."""

    setting: Setting
    n: int
    p: int
    mean: np.ndarray
    error: np.ndarray
    limit: np.ndarray
    refined: np.ndarray

    def misses(self, predicted):
        """Whether either error is beyond 4 standard errors plus 3 %."""
        distance = np.abs(predicted - self.mean)
        return not np.all(distance <= 4.0 * self.error + RELATIVE * self.mean)

    def __str__(self):
        values = {k: v for k, v in self.setting.as_dict().items() if np.any(v)}
        return (
            f"p {self.p}, n {self.n}, {values}: measured {self.mean.round(4)} +- {self.error.round(4)}, "
            f"refined {self.refined.round(4)}, limit {self.limit.round(4)}"
        )


def random_setting(rng):
    """A setting and n: p from 32 to 512, n to 1024, key and query along mu with -1.5 to 1.5 of its length."""
    p = round(2.0 ** rng.uniform(5.0, 9.0))
    n = round(p / np.exp(rng.uniform(np.log(max(0.25, p / 1024)), np.log(2.0))))
    snr, (key, query) = rng.uniform(0.0, 4.0), rng.uniform(-1.5, 1.5, 2)
    weights = Weights.from_angles(
        key_norm=abs(key) * np.sqrt(snr),
        query_norm=abs(query) * np.sqrt(snr),
        key_cos=np.sign(key),
        query_cos=np.sign(query),
        key_query_cos=np.sign(key * query),
    )
    tokens = Tokens(p / n, snr, 2.0 * rng.uniform(0.5, 0.9) - 1.0)
    return Setting(tokens, weights, str(rng.choice(NAMES)), ridge=10.0 ** rng.uniform(-2.0, 1.0)), n


def case(seed):
    """The setting of a seed, predicted and measured."""
    setting, n = random_setting(np.random.default_rng(seed))
    p = round(float(setting.tokens.ratio) * n)
    draws = int(np.clip(WORK / (4.0 * n * n * p), 8, 60))
    measured, predicted = simulate(setting, n=n, draws=draws, seed=seed), predict(setting, p=p)
    mean, error = np.array([getattr(measured.attention, e) for e in ERRORS]).T
    limit, refined = (
        np.array([getattr(attention, e) for e in ERRORS])
        for attention in (predicted.attention, predicted.refined.attention)
    )
    return Case(setting, n, p, mean, error, limit, refined)


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_a_random_setting(seed):
    found = case(seed)
    assert not found.misses(found.refined), str(found)


@pytest.mark.slow
def test_two_hundred_random_settings():
    cases = [case(seed) for seed in range(200)]
    assert sum(found.misses(found.refined) for found in cases) <= 6
    assert sum(found.misses(found.limit) for found in cases) > 6


if __name__ == "__main__":
    cases = []
    for seed in range(*(int(value) for value in sys.argv[1:] or ("200",))):
        cases.append(case(seed))
        if cases[-1].misses(cases[-1].refined):
            print(f"seed {seed}: {cases[-1]}", flush=True)
    far = {
        name: np.abs([getattr(found, name) / found.mean - 1.0 for found in cases])
        for name in ("refined", "limit")
    }
    for name, gap in far.items():
        held = sum(not found.misses(getattr(found, name)) for found in cases)
        print(f"{name}: {held} of {len(cases)}; median {np.median(gap, axis=0)}, worst {gap.max(axis=0)}")
    print("median standard error", np.median([found.error / found.mean for found in cases], axis=0))
