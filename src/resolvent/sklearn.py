"""scikit-learn estimators on attention features: rows are tokens, `fit` takes the context.

Tokens are centred and scaled so that their noise has variance one, and the target y so that it has mean zero
and variance one:

    x = (mu y + z)/scale + centre,    mu = E x y,    tr Cov z = p,    |mu|^2 estimated as |mu_hat|^2 - p/n.

That is the model of the theory page, section 1, for any real y: its errors see the labels only through
|y|^2/n = 1, and centring leaves nothing of their mean. So the predicted errors are those of balanced labels
(sections 4 to 7), times the variance of y. With `align`, w_K = w_Q = align mu, along the estimated mu.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from resolvent.advise.candidates import attention
from resolvent.predict import predict
from resolvent.setting import Setting, Tokens, Weights
from resolvent.setting.variation import varied
from resolvent.simulate.attentions import acting
from resolvent.simulate.features import features, predictions
from resolvent.simulate.probe import fitted

__all__ = ["AttentionFeatures", "AttentionRidge", "AttentionRidgeClassifier"]

Array = NDArray[np.float64]
Ridge = float | Literal["auto"]


class _Signal(NamedTuple):
    """The affine map (x - centre)/scale of the tokens, and mu and the unbiased |mu|^2 after it."""

    centre: Array
    scale: float
    mu: Array
    snr: float

    @classmethod
    def of(cls, rows: Array, y: Array) -> _Signal:
        """From rows (n, p) and a target (n,) of mean 0 and variance 1, or all 0 where there is none."""
        n, p = rows.shape
        centre = rows.mean(axis=0)
        mu = y @ (rows - centre) / n
        noise = rows - centre - np.outer(y, mu)
        scale = float(np.sqrt(np.sum(noise**2) / (p * max(n - 1 - bool(y.any()), 1)))) or 1.0
        return cls(centre, scale, mu / scale, max(float(mu @ mu) / scale**2 - p / n, 0.0))

    @property
    def direction(self) -> Array:
        """mu with its length brought to the unbiased one."""
        length = np.linalg.norm(self.mu)
        return self.mu * (np.sqrt(self.snr) / length) if length > 0.0 else self.mu


class AttentionFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features X (f(X'MX/sqrt p)/sqrt p + skip I) of tokens that attend to the context given to `fit`.

    Parameters
    ----------
    f
        Nonlinearity: a name, an expression in t, "softmax" or a function, whose mean is removed.
    align
        w_K = w_Q = align mu in M = I + w_K w_Q', with mu the direction of y, which `fit` then needs.
    skip, keep_diagonal
        Weight of a residual connection, and whether context tokens attend to themselves.

    A row given to `transform` that equals a row of the context is that token: its score with itself is masked
    as in `fit_transform`. Other rows are fresh tokens that attend to the context.

    Attributes
    ----------
    features_
        (n, p) features of the context.
    snr_
        Estimated |mu|^2, 0 without y.

    Source: theory page, sections 1, 7 and 10.

    >>> rows = np.random.default_rng(0).standard_normal((60, 20))
    >>> AttentionFeatures("relu").fit(rows).transform(rows[:5]).shape
    (5, 20)
    """

    def __init__(
        self, f: Any = "tanh", *, align: float = 0.0, skip: float = 0.0, keep_diagonal: bool = False
    ) -> None:
        self.f = f
        self.align = align
        self.skip = skip
        self.keep_diagonal = keep_diagonal

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Take rows as the context; y (real, n) gives the direction to align with."""
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.align and y is None:
            raise ValueError(f"align {self.align:g} needs y, which says where the signal lies")
        target = _standardised(np.asarray(y, dtype=np.float64))[0] if self.align else np.zeros(len(rows))
        return self._fit(rows, target)

    def _fit(self, rows: Array, target: Array) -> Self:
        signal = _Signal.of(rows, target)
        setting = Setting(
            Tokens(ratio=rows.shape[1] / rows.shape[0], snr=signal.snr),
            Weights.aligned(self.align),
            self.f,
            skip=self.skip,
            keep_diagonal=self.keep_diagonal,
        )
        weight = float(self.align) * signal.direction
        self._signal, self.snr_, self.setting_ = signal, signal.snr, setting
        self._attention = acting(setting, setting.head, weight, weight)
        self._context = self._tokens(rows)
        self.features_ = features(self._attention, self._context).T
        self._place = {row.tobytes(): i for i, row in enumerate(rows + 0.0)}  # -0 becomes 0
        return self

    def _tokens(self, rows: Array) -> Array:
        return np.ascontiguousarray(((rows - self._signal.centre) / self._signal.scale).T)

    def transform(self, X: ArrayLike) -> Array:
        """Features (rows, p)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        place = np.array([self._place.get(row.tobytes(), -1) for row in rows + 0.0])
        out: Array = self.features_[place]
        fresh = self._tokens(rows[place < 0])
        out[place < 0] = predictions(
            self._attention, self._context, self._context, np.eye(len(fresh)), fresh
        ).T
        return out

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)


class AttentionRidge(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression on attention features of the rows, with its error predicted by theory.

    Parameters
    ----------
    ridge
        Penalty of the probe w = (HH' + n ridge)^-1 H y, zero or positive, or "auto": the ridge of the least
        predicted test error at the estimated setting.
    f, align, skip, keep_diagonal
        As in `AttentionFeatures`.

    Attributes
    ----------
    ridge_, best_ridge_
        The ridge that was used, and the best one by theory; inf where no probe beats the mean of y.
    predicted_error_, predicted_train_error_
        Limits of the mean squared error on fresh rows and on the rows of `fit`, at `ridge_`.
    coef_, snr_, setting_
        w on the features, the estimated |mu|^2 in units of the noise, and the setting behind the prediction.

    The prediction takes the noise as white and the weights as independent of it (`resolvent advise --tokens`
    says how far that is from given tokens). Source: theory page, sections 1 and 4 to 7.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal(400)
    >>> rows = np.outer(y, np.full(100, 0.2)) + rng.standard_normal((400, 100))
    >>> model = AttentionRidge().fit(rows[:200], y[:200])
    >>> measured = np.mean((model.predict(rows[200:]) - y[200:]) ** 2)
    >>> bool(abs(model.predicted_error_ - measured) < 0.1)
    True
    """

    def __init__(
        self,
        f: Any = "tanh",
        *,
        ridge: Ridge = "auto",
        align: float = 0.0,
        skip: float = 0.0,
        keep_diagonal: bool = False,
    ) -> None:
        self.f = f
        self.ridge = ridge
        self.align = align
        self.skip = skip
        self.keep_diagonal = keep_diagonal

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit on rows (n, p) and a real target (n,)."""
        rows, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        return self._fit(rows, target)

    def _fit(self, rows: Array, target: Array) -> Self:
        y, self._mean, self._spread = _standardised(target)
        self._features = AttentionFeatures(
            self.f, align=self.align, skip=self.skip, keep_diagonal=self.keep_diagonal
        )
        self._features.n_features_in_ = rows.shape[1]
        self._features._fit(rows, y)
        self.snr_ = self._features.snr_
        self._predict_errors(self._features.setting_)
        if self.ridge_ != np.inf:
            self.coef_ = fitted(self._features.features_.T, y, np.array([self.ridge_]))[1][0]
        else:
            self.coef_ = np.zeros(rows.shape[1])
        return self

    def _predict_errors(self, setting: Setting) -> None:
        """best_ridge_, ridge_ and the predicted errors at it."""

        self.best_ridge_ = attention(setting).best_ridge
        self.ridge_ = self.best_ridge_ if self.ridge == "auto" else self.ridge
        train = test = 1.0  # of a zero probe
        self.setting_ = setting
        if self.ridge_ != np.inf:
            self.setting_ = varied(setting, {"ridge": self.ridge_})
            limit = predict(self.setting_).attention
            train, test = float(limit.train), float(limit.test)
        self.predicted_train_error_, self.predicted_error_ = self._spread**2 * train, self._spread**2 * test

    def predict(self, X: ArrayLike) -> Array:
        """The probe's output (rows,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self._mean + self._spread * (self._features.transform(rows) @ self.coef_))


class AttentionRidgeClassifier(ClassifierMixin, AttentionRidge):  # type: ignore[misc]
    """The sign of a ridge probe that is fitted to labels of -1 and +1: two classes.

    Parameters and attributes as in `AttentionRidge`; errors are mean squares against labels of -1 and +1.
    `classes_` holds the labels, the second at +1. For more classes wrap it in scikit-learn's
    OneVsRestClassifier.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ham", "spam"], 100)
    >>> rows = 0.3 * np.where(y == "spam", 1, -1)[:, None] + rng.standard_normal((200, 50))
    >>> bool(AttentionRidgeClassifier(align=0.5).fit(rows, y).score(rows, y) > 0.9)
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit on rows (n, p) and labels (n,) of two values."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        kind = type_of_target(labels, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, index = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError("y must hold two classes, got one class")
        return self._fit(rows, np.where(index, 1.0, -1.0))

    def decision_function(self, X: ArrayLike) -> Array:
        """The probe's output (rows,), positive for the second class."""
        return super().predict(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Labels (rows,)."""
        positive = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positive.astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _standardised(y: Array) -> tuple[Array, float, float]:
    """y less its mean and over its spread, and both; zero where it does not vary."""
    mean, spread = float(y.mean()), float(y.std())
    return (y - mean) / (spread or 1.0), mean, spread
