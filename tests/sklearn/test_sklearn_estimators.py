"""The estimators: scikit-learn's own checks, masking of context rows, predicted errors against measured."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from resolvent.sklearn import AttentionFeatures, AttentionRidge, AttentionRidgeClassifier


@parametrize_with_checks([AttentionFeatures(), AttentionRidge(), AttentionRidgeClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rows_of(seed, *, n, p, snr, y=None):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n) if y is None else y
    mu = np.full(p, np.sqrt(snr / p))
    return 5.0 + 3.0 * (np.outer(y, mu) + rng.standard_normal((n, p))), y


def naive_features(rows, context, f, mask):
    """sum_j x_j f(x_j'x_i/sqrt p)/sqrt p, entry by entry, over the context but for `mask`."""
    p = rows.shape[1]
    out = np.zeros_like(rows)
    for i, row in enumerate(rows):
        for j, other in enumerate(context):
            if mask[i] != j:
                out[i] += other * f(other @ row / np.sqrt(p)) / np.sqrt(p)
    return out


def test_context_rows_are_masked_and_fresh_rows_are_not():
    rng = np.random.default_rng(1)
    context, fresh = rng.standard_normal((12, 5)), rng.standard_normal((4, 5))
    model = AttentionFeatures().fit(context)
    centre = context.mean(axis=0)
    scale = np.sqrt(((context - centre) ** 2).sum() / (5 * 11))
    asked = np.vstack([fresh, context[[7, 3]]])
    expected = naive_features(
        (asked - centre) / scale, (context - centre) / scale, np.tanh, [-1, -1, -1, -1, 7, 3]
    )
    np.testing.assert_allclose(model.transform(asked), expected, atol=1e-12)


def test_a_repeated_row_of_the_context_masks_one_of_its_copies():
    context = np.random.default_rng(2).standard_normal((10, 4))
    context[6] = context[2]
    model = AttentionFeatures().fit(context)
    np.testing.assert_allclose(model.transform(context), model.features_, atol=1e-12)


@pytest.mark.parametrize("f", ["tanh", "relu", "cos"])
@pytest.mark.parametrize("kind", ["gaussian", "balanced", "unbalanced"])
def test_predicted_errors_are_measured(f, kind):
    """Any real target: in units of its variance the errors are those of balanced labels."""
    n, p, snr, draws = 200, 100, 1.5, 10
    share = {"balanced": 0.5, "unbalanced": 0.2, "gaussian": np.nan}[kind]
    errors = []
    for seed in range(draws):
        rng = np.random.default_rng(100 + seed)
        labels = np.where(rng.random(2 * n) < share, 1.0, -1.0)
        y = rng.standard_normal(2 * n) if kind == "gaussian" else labels
        rows, y = rows_of(seed, n=2 * n, p=p, snr=snr, y=y)
        model = AttentionRidge(f, ridge=0.3).fit(rows[:n], y[:n])
        train, test = (np.mean((model.predict(rows[s]) - y[s]) ** 2) for s in (slice(n), slice(n, None)))
        errors.append([train - model.predicted_train_error_, test - model.predicted_error_])
    mean, se = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / np.sqrt(draws)
    assert np.all(np.abs(mean) < 4 * se + 2.0 / n), (mean, se)


def test_the_snr_is_unbiased():
    found = [AttentionRidge(ridge=1.0).fit(*rows_of(seed, n=100, p=40, snr=1.2)).snr_ for seed in range(30)]
    assert abs(np.mean(found) - 1.2) < 4 * np.std(found) / np.sqrt(30) + 1.2 * 2 / 100


def test_the_best_ridge_is_near_the_measured_minimum():
    n, p = 300, 150
    ridges = np.geomspace(1e-2, 1e2, 9)
    curve = np.zeros((4, ridges.size + 1))
    for seed in range(4):
        rows, y = rows_of(seed, n=3 * n, p=p, snr=1.5)
        for k, ridge in enumerate([*ridges, "auto"]):
            model = AttentionRidge(ridge=ridge).fit(rows[:n], y[:n])
            curve[seed, k] = np.mean((model.predict(rows[n:]) - y[n:]) ** 2)
    mean = curve.mean(axis=0)
    assert mean[-1] < 1.02 * mean[:-1].min()
    assert mean[-1] < 0.9 * mean[:-1].max()


def test_without_signal_no_probe_beats_the_mean():
    rows, y = np.random.default_rng(3).standard_normal((40, 60)), np.random.default_rng(4).standard_normal(40)
    model = AttentionRidge("hermite2").fit(rows, y)
    assert model.best_ridge_ == np.inf
    assert np.ptp(model.predict(rows)) == 0.0
    assert model.predicted_error_ == pytest.approx(y.var())


def test_alignment_needs_a_target_and_lowers_the_training_error():
    rows, y = rows_of(5, n=300, p=150, snr=1.0)
    with pytest.raises(ValueError, match="align 1 needs y"):
        AttentionFeatures(align=1.0).fit(rows)
    models = [AttentionRidge(align=a, ridge=1.0).fit(rows, y) for a in (0.0, 1.0)]
    measured = [np.mean((m.predict(rows) - y) ** 2) for m in models]
    assert measured[1] < 0.95 * measured[0]
    assert models[1].predicted_train_error_ < 0.95 * models[0].predicted_train_error_


def test_pipelines_and_grid_search():
    rows, y = rows_of(6, n=120, p=30, snr=2.0)
    pipeline = make_pipeline(StandardScaler(), AttentionRidge())
    search = GridSearchCV(
        pipeline,
        {"attentionridge__f": ["tanh", "hermite3"], "attentionridge__ridge": [0.1, "auto"]},
        scoring="neg_mean_squared_error",
        cv=3,
    )
    search.fit(rows, y)
    assert search.best_params_["attentionridge__f"] == "tanh"
    kind = make_pipeline(AttentionFeatures("relu"), AttentionRidgeClassifier()).fit(rows, y > 0)
    assert kind.score(rows, y > 0) > 0.8


def test_labels_of_any_kind():
    rows, y = rows_of(7, n=200, p=20, snr=3.0, y=np.repeat([-1.0, 1.0], 100))
    words = np.where(y > 0, "spam", "ham")
    model = AttentionRidgeClassifier().fit(rows, words)
    assert list(model.classes_) == ["ham", "spam"]
    assert model.score(rows, words) > 0.9
    with pytest.raises(ValueError, match="two classes"):
        model.fit(rows, np.repeat("ham", 200))


def test_wrong_parameters_are_one_line():
    rows, y = rows_of(8, n=20, p=5, snr=1.0)
    with pytest.raises(ValueError, match="ridge must be zero or positive, got -1"):
        AttentionRidge(ridge=-1.0).fit(rows, y)
    with pytest.raises(ValueError, match="did you mean tanh"):
        AttentionFeatures("tahn").fit(rows)
