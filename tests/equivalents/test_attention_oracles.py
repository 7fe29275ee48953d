"""120 settings in 50-digit arithmetic: every value of `attention_errors` and `linear_errors` against them.

They range over ratio 0.05 to 20, ridge down to 1e-7 and every kind of coefficient, and hold the settings in
which double precision has most to lose: ratio < 1 at tiny ridge, sigma2 = 0, nearly equal roots.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from resolvent.equivalents import AttentionErrors, LinearErrors, attention_errors, linear_errors

ORACLES = json.loads((Path(__file__).parent / "attention.json").read_text())
GIVEN = {"train": 120, "test": 41, "t": 120, "u": 120, "alpha": 120}


def column(name: str) -> np.ndarray:
    return np.array([oracle.get(name, np.nan) for oracle in ORACLES], dtype=float)


@pytest.fixture(scope="module")
def attention() -> AttentionErrors:
    return attention_errors(
        ratio=column("c"),
        ridge=column("gamma"),
        a1=column("a1"),
        a2=column("a2"),
        sigma2=column("sigma2"),
        gram=np.array([oracle["gram"] for oracle in ORACLES]),
        shift=column("d"),
        mean_spike=column("a0") * np.sqrt(column("p")),
        label_mean=column("ybar"),
        target_overlap=column("kappa"),
    )


@pytest.fixture(scope="module")
def linear() -> LinearErrors:
    return linear_errors(
        ratio=column("c"), ridge=column("gamma"), snr=column("mu2"), target_overlap=column("kappa")
    )


def gap(mine: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Relative error, absolute where the exact value is zero (1e-85 in 50-digit arithmetic)."""
    size = np.abs(exact)
    return np.abs(mine - exact) / np.where(size > 1e-60, size, 1.0)


def test_every_oracle_converges(attention: AttentionErrors) -> None:
    assert np.all(attention.converged)
    assert np.all(attention.residual <= 1e-9)
    assert np.all(np.isfinite(attention.train) & np.isfinite(attention.test))


@pytest.mark.parametrize("name", GIVEN)
def test_attention_agrees_with_fifty_digits(attention: AttentionErrors, name: str) -> None:
    exact = column(name)
    given = np.isfinite(exact)
    assert given.sum() == GIVEN[name]
    error = gap(getattr(attention, name), exact)[given]
    assert (error > 1e-9).sum() <= 6
    assert error.max() <= 1e-6


def test_trace_of_the_resolvent_follows_from_t(attention: AttentionErrors) -> None:
    noisy = column("sigma2") > 0.0
    exact = column("c") * column("t") / np.where(noisy, column("sigma2"), 1.0)
    assert gap(attention.m, exact)[noisy].max() <= 1e-6


def test_linear_regression_agrees_with_fifty_digits(linear: LinearErrors) -> None:
    assert gap(linear.train, column("linear_train")).max() <= 1e-9
