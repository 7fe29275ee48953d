"""Random models against simulation: within 5 standard errors or 3 %; every failure is listed."""

import numpy as np
import pytest
from random_models import RATIO, N, P, random_model

from resolvent.engine import equivalent


def failures(seeds, n, draws):
    found = []
    for seed in seeds:
        model = random_model(np.random.default_rng(seed))
        eq = equivalent(model, {P / N: RATIO})
        if not eq.trace().converged:
            found.append(f"{seed}: not converged: {model}")
            continue
        measured = eq.measure(n, draws, seed)
        gap = abs(measured.mean - float(measured.predicted))
        if gap > 5 * measured.se and gap > 0.03 * abs(float(measured.predicted)):
            found.append(f"{seed}: {measured}: {model}")
    return found


def test_ten_random_models():
    assert failures(range(1000, 1010), 200, 4) == []


@pytest.mark.slow
def test_two_hundred_random_models():
    assert failures(range(200), 800, 4) == []
