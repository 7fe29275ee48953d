"""The factored solver beside the formulas retyped with dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
import refined_naive as naive

from resolvent.equivalents.refined import Softmax, gaussian_classes, refined_errors
from resolvent.equivalents.refined import newton as solver
from resolvent.equivalents.refined.equation import Couplings
from resolvent.equivalents.refined.krylov import gmres
from resolvent.equivalents.refined.newton import solve
from resolvent.equivalents.refined.tables import tables
from resolvent.nonlinearity import nonlinearity

SKEWED = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 0.7]])
ALIGNED = np.ones((3, 3))


def skewed(**changes):
    classes = gaussian_classes(p=40, n=60, gram=SKEWED, label_mean=0.4, nodes=2, norm_nodes=2)
    return replace(classes, **changes)


@pytest.mark.parametrize(
    ("f", "ridge", "skip", "kappa", "colour"),
    [
        (nonlinearity("tanh"), 0.3, 0.0, 1.0, False),
        (nonlinearity("relu", centred=False), 1.0, 0.5, 0.7, True),
        (nonlinearity("hermite3"), 0.5, -0.3, 0.0, False),
        (Softmax(0.8), 0.5, 0.4, 1.0, True),
    ],
)
def test_agrees_with_the_formulas_retyped(f, ridge, skip, kappa, colour):
    law = {"eigenvalues": np.array([0.5, 2.0]), "shares": np.array([2 / 3, 1 / 3])} if colour else {}
    classes = skewed(**law)
    train, test = naive.errors(classes, tables(classes, f, skip, False), ridge, skip, kappa)
    found = refined_errors(classes, ridge=ridge, f=f, skip=skip, target_overlap=kappa)
    assert found.converged
    assert found.train == pytest.approx(train, rel=2e-6)
    assert found.test == pytest.approx(test, rel=2e-6)


def test_the_reported_residual_is_that_of_the_fixed_point():
    classes = skewed()
    own = tables(classes, nonlinearity("tanh"), 0.0, False)
    couplings = Couplings.of(classes, own, own)
    equation, solution = solve(couplings, np.array([1e-3, 1.0]))
    T = solution.T
    image = np.linalg.inv(equation.inverses(T, equation.resolvents(T)))
    np.testing.assert_allclose(image, T, rtol=1e-8, atol=1e-9)
    assert (solution.residual <= 1e-8).all()


@pytest.mark.parametrize("name", ["tanh", "hermite3", "exp(t - 1/2)", "relu", "identity", "sign"])
@pytest.mark.parametrize(
    ("ratio", "p", "key", "query"),
    [(0.02, 64, 1.5, -1.0), (50.0, 64, 1.5, 1.5), (1.0, 32, 1.5, 1.5), (0.5, 1e7, 1, 1)],
)
def test_converges_from_ridge_1e_minus_6_to_1e3(name, ratio, p, key, query):
    gram = 2.0 * np.outer([1.0, key, query], [1.0, key, query])
    classes = gaussian_classes(p=p, n=p / ratio, gram=gram, label_mean=0.3, nodes=6, norm_nodes=2)
    found = refined_errors(classes, ridge=np.logspace(-6, 3, 7), f=nonlinearity(name))
    assert found.converged.all()
    assert (found.residual <= 1e-8).all()
    assert (np.diff(found.train) > -1e-12).all()
    assert (found.train > 0.0).all()
    assert (found.train < 1.0).all()


def test_a_curve_is_its_points():
    classes, f, ridge = skewed(), nonlinearity("tanh"), np.array([[1.0, 1e-5], [0.1, 1.0]])
    curve = refined_errors(classes, ridge=ridge, f=f, target_overlap=[0.5, 1.0])
    assert curve.train.shape == (2, 2)
    for i, j in np.ndindex(2, 2):
        point = refined_errors(classes, ridge=ridge[i, j], f=f, target_overlap=(0.5, 1.0)[j])
        assert curve.train[i, j] == pytest.approx(point.train, rel=1e-9)
        assert curve.test[i, j] == pytest.approx(point.test, rel=1e-9)


def test_several_settings_at_once():
    f, many = nonlinearity("tanh"), [skewed(), gaussian_classes(p=64, n=32, gram=ALIGNED)]
    both = refined_errors(many, ridge=[0.1, 1.0, 10.0], f=f)
    assert both.train.shape == (2, 3)
    np.testing.assert_allclose(
        both.test[1], refined_errors(many[1], ridge=[0.1, 1.0, 10.0], f=f).test, rtol=1e-12
    )


def test_splitting_a_class_in_two_changes_nothing():
    classes = skewed()
    twice = np.concatenate([[0, 0], np.arange(1, classes.weight.size)])
    weight = classes.weight[twice]
    weight[:2] *= [0.3, 0.7]
    fields = {name: getattr(classes, name)[twice] for name in ("label", "position", "norm", "left", "right")}
    split = replace(classes, weight=weight, **fields)
    f = nonlinearity("relu")
    one, other = (refined_errors(c, ridge=[0.01, 1.0], f=f, skip=0.2) for c in (classes, split))
    np.testing.assert_allclose(other.train, one.train, rtol=1e-6)
    np.testing.assert_allclose(other.test, one.test, rtol=1e-6)


def test_what_does_not_converge_is_nan(monkeypatch):
    monkeypatch.setattr(solver, "HALF_STEPS", 0)
    monkeypatch.setattr(solver, "MAX_STEPS", 1)
    monkeypatch.setattr(solver, "MOST_CLIMBS", 0)
    found = refined_errors(skewed(), ridge=[0.01, 1.0], f=nonlinearity("hermite3"))
    assert not found.converged.any()
    assert np.isnan(found.train).all()
    assert np.isnan(found.test).all()
    assert str(found) == "0 of 2 refined errors converged"


def test_gmres_solves_what_a_dense_solver_does():
    rng = np.random.default_rng(0)
    weight, size = np.array([0.7, 0.3]), 18
    matrix = np.eye(size) + 0.3 * rng.normal(size=(size, size)) / np.sqrt(size)
    right = rng.normal(size=(3, 2, 3, 3))
    found = gmres(lambda x: (x.reshape(3, size) @ matrix.T).reshape(x.shape), right, weight, 1e-12)
    exact = np.linalg.solve(matrix, right.reshape(3, size).T).T
    np.testing.assert_allclose(found.reshape(3, size), exact, rtol=1e-9, atol=1e-11)


def test_refuses_what_is_out_of_range():
    classes, f = skewed(), nonlinearity("tanh")
    with pytest.raises(ValueError, match=r"ridge must be positive, got 0"):
        refined_errors(classes, ridge=[0.1, 0.0], f=f)
    with pytest.raises(ValueError, match=r"target_overlap must be between -1 and 1"):
        refined_errors(classes, ridge=0.1, f=f, target_overlap=1.5)
    with pytest.raises(ValueError, match=r"skip must be one number"):
        refined_errors(classes, ridge=0.1, f=f, skip=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"keep_diagonal must be off for a softmax"):
        refined_errors(classes, ridge=0.1, f=Softmax(1.0), keep_diagonal=True)
    with pytest.raises(ValueError, match=r"beta must be positive and at most 20, got 0"):
        Softmax(0.0)
