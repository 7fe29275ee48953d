"""Large p: the refined equivalent tends to the limit."""

import numpy as np
import pytest

from resolvent.equivalents import attention_errors, linear_errors
from resolvent.equivalents.refined import gaussian_classes, refined_errors, refined_linear_errors
from resolvent.nonlinearity import nonlinearity

SKEWED = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 0.7]])
RIDGE = np.array([1e-3, 0.1, 10.0])


def limit(f, p, ratio, label_mean=0.0, **more):
    a = f.coefficients()
    return attention_errors(
        ratio=ratio,
        ridge=RIDGE,
        a1=a.a1,
        a2=a.a2,
        sigma2=a.sigma2,
        gram=SKEWED,
        mean_spike=a.a0 * np.sqrt(p),
        label_mean=label_mean,
        **more,
    )


@pytest.mark.parametrize("name", ["tanh", "relu", "hermite3", "identity"])
@pytest.mark.parametrize("ratio", [0.4, 2.0])
@pytest.mark.parametrize(("skip", "kappa"), [(0.0, 1.0), (0.7, 0.6)])
def test_tends_to_the_limit_when_balanced_and_centred(name, ratio, skip, kappa):
    f, p = nonlinearity(name), 1e7
    classes = gaussian_classes(p=p, n=p / ratio, gram=SKEWED, nodes=3)
    found = refined_errors(classes, ridge=RIDGE, f=f, skip=skip, target_overlap=kappa)
    expected = limit(f, p, ratio, skip=skip, target_overlap=kappa)
    np.testing.assert_allclose(found.train, expected.train, rtol=1e-4)
    np.testing.assert_allclose(found.test, expected.test, rtol=1e-4)


def test_approaches_the_unbalanced_limit_like_the_root_of_p():
    f, gaps = nonlinearity("relu"), []
    for p in (1e6, 1e8):
        classes = gaussian_classes(p=p, n=2 * p, gram=SKEWED, label_mean=0.6, nodes=3)
        found = refined_errors(classes, ridge=RIDGE, f=f)
        expected = limit(f, p, 0.5, label_mean=0.6)
        gaps.append(np.abs(np.stack([found.train - expected.train, found.test - expected.test])).max())
    assert gaps[0] < 0.02
    assert 5.0 < gaps[0] / gaps[1] < 20.0


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("kappa", [1.0, 0.5])
def test_linear_regression_tends_to_its_limit(ratio, kappa):
    p = 1e8
    classes = gaussian_classes(p=p, n=p / ratio, gram=SKEWED, nodes=3)
    found = refined_linear_errors(classes, ridge=RIDGE, target_overlap=kappa)
    expected = linear_errors(ratio=ratio, ridge=RIDGE, snr=SKEWED[0, 0], target_overlap=kappa)
    np.testing.assert_allclose(found.train, expected.train, rtol=1e-6)
    np.testing.assert_allclose(found.test, expected.test, rtol=1e-6)
