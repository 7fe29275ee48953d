"""Real sizes: Monte Carlo within 4 standard errors plus 3 %, and measured values that the limit misses."""

import numpy as np
import pytest
from refined_simulation import simulate

from resolvent.equivalents.refined import (
    Softmax,
    adapted_classes,
    gaussian_classes,
    refined_errors,
    refined_linear_errors,
)
from resolvent.nonlinearity import nonlinearity

ALIGNED = np.ones((3, 3))
SKEWED = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])


def aligned(snr, align):
    return snr * np.outer([1.0, align, align], [1.0, align, align])


def agree(f, *, p, n, gram, ridge, draws, label_mean=0.0, skip=0.0, keep_diagonal=False, kappa=1.0):
    function = f.beta if isinstance(f, Softmax) else f
    common = {"skip": skip, "keep_diagonal": keep_diagonal}
    mean, error = simulate(
        function,
        p=p,
        n=n,
        gram=gram,
        ridge=ridge,
        draws=draws,
        seed=7,
        label_mean=label_mean,
        kappa=kappa,
        **common,
    )
    classes = gaussian_classes(
        p=p, n=n, gram=gram, label_mean=label_mean, nodes=6 if np.ptp(gram) == 0 else 3
    )
    attention = refined_errors(classes, ridge=ridge, f=f, target_overlap=kappa, **common)
    linear = refined_linear_errors(classes, ridge=ridge, target_overlap=kappa)
    predicted = np.array([[attention.train, attention.test], [linear.train, linear.test]])
    assert (np.abs(predicted - mean) <= 4.0 * error + 0.03 * mean).all(), (predicted, mean, error)


@pytest.mark.parametrize(
    ("f", "options"),
    [
        (nonlinearity("tanh"), {"ridge": 0.1}),
        (nonlinearity("relu"), {"ridge": 0.1, "gram": SKEWED, "label_mean": 0.6}),
        (nonlinearity("relu", centred=False), {"ridge": 1.0, "label_mean": 0.4}),
        (nonlinearity("tanh"), {"ridge": 0.05, "skip": -0.5, "label_mean": 0.4}),
        (nonlinearity("relu"), {"ridge": 0.1, "skip": 0.7}),
        (nonlinearity("relu"), {"ridge": 0.1, "keep_diagonal": True}),
        (nonlinearity("sin"), {"ridge": 0.1, "kappa": 0.6}),
        (Softmax(1.0), {"ridge": 0.1}),
        (Softmax(0.5), {"ridge": 0.3, "label_mean": 0.6}),
    ],
)
def test_agrees_with_simulation_at_p_64(f, options):
    agree(f, **{"p": 64, "n": 128, "gram": ALIGNED, "draws": 60, **options})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("f", "options"),
    [
        (nonlinearity("tanh"), {"ridge": 0.1}),
        (nonlinearity("relu"), {"ridge": 0.1, "skip": 0.7, "gram": SKEWED, "label_mean": 0.6}),
        (nonlinearity("relu"), {"ridge": 0.1, "keep_diagonal": True}),
        (nonlinearity("hermite3"), {"ridge": 0.1, "kappa": 0.6}),
        (Softmax(1.0), {"ridge": 0.1, "label_mean": 0.6}),
    ],
)
def test_agrees_with_simulation_at_p_256(f, options):
    agree(f, **{"p": 256, "n": 512, "gram": ALIGNED, "draws": 30, **options})


@pytest.mark.parametrize(
    ("name", "p", "n", "snr", "align", "train", "limit"),
    [
        ("tanh", 64, 128, 1.0, 1.0, 0.313, 0.328),
        ("tanh", 300, 1500, 2.0, 2**0.5, 0.219, 0.268),
        ("hermite3", 300, 1500, 2.0, 2**0.5, 0.545, 0.800),
    ],
)
def test_is_right_where_the_limit_is_not(name, p, n, snr, align, train, limit):
    """Training errors over many draws at ridge 0.1, beside their limits (the theory page, section 12)."""
    classes, _ = adapted_classes(p=p, n=n, gram=aligned(snr, align), ridge=0.1, f=nonlinearity(name))
    found = refined_errors(classes, ridge=0.1, f=nonlinearity(name)).train
    assert found == pytest.approx(train, rel=0.02)
    assert abs(found - train) < 0.3 * abs(limit - train)
