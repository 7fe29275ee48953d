"""Errors under any spectral law of the token noise, given as a table of eigenvalues of G = Z'Z/p.

Section 4 with E over the table: Marchenko-Pastur, generalised Marchenko-Pastur for a covariance, or the
eigenvalues of the tokens at hand. Scores have variance s2 = ratio (E g^2 - (E g)^2), so that K_N ~ (a1/sqrt
s2)(G - I) + d I + sigma W with coefficients under N(0, s2). Theory page, sections 4 and 8b.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import checked, numbers, require
from resolvent.equivalents.averages import Array
from resolvent.equivalents.heads import one_gram
from resolvent.equivalents.probe import Heads, ProbeErrors, Target, errors_along, token_side
from resolvent.equivalents.tabulated import Generic, TableEquation


def score_variance(nodes: ArrayLike, weights: ArrayLike, ratio: float) -> float:
    """s2 = tr Sigma^2/p from a table of the law of Z'Z/p: ratio (E g^2 - (E g)^2).

    >>> score_variance([0.0, 2.0], [0.5, 0.5], 1.0)
    1.0
    """
    g, w = _table(nodes, weights)
    return float(ratio * (w @ g**2 - (w @ g) ** 2))


def law_errors(
    nodes: ArrayLike,
    weights: ArrayLike,
    *,
    ratio: float,
    ridge: ArrayLike,
    a1: float,
    sigma2: float,
    gram: ArrayLike,
    shift: float = 0.0,
    skip: float = 0.0,
    mean_spike: float = 0.0,
    a2: float = 0.0,
    norm_variance: float = 2.0,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
    intercept: bool = False,
) -> ProbeErrors:
    """`attention_errors` under the law with these nodes and weights, at positive ridges (any shape).

    The table describes the n eigenvalues of Z'Z/p, atoms included, with mean 1; a1, a2 and sigma2 are taken
    under N(0, s2), s2 = `score_variance`. Signal and weights are generic: no eigenvector of the noise
    prefers them. The test error is on tokens whose noise has the same covariance.

    Raises ValueError for an argument that is not finite, out of range or of the wrong shape, naming it.

    Source: theory page, sections 4 to 7 and 8b.

    >>> from resolvent.equivalents import attention_errors
    >>> from resolvent.laws import marchenko_pastur
    >>> law = marchenko_pastur(0.5)
    >>> table, ones = (law.nodes, law.weights), np.ones((3, 3))
    >>> e = law_errors(*table, ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=ones)
    >>> exact = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=np.ones((3, 3)))
    >>> bool(abs(e.train - exact.train) < 1e-10 and abs(e.test - exact.test) < 1e-10)
    True
    """
    g, w = _table(nodes, weights)
    v = {
        name: float(value)
        for name, value in checked(
            ratio=ratio,
            a1=a1,
            sigma2=sigma2,
            shift=shift,
            skip=skip,
            mean_spike=mean_spike,
            a2=a2,
            norm_variance=norm_variance,
            label_mean=label_mean,
            target_overlap=target_overlap,
        ).items()
    }
    c, G = v["ratio"], one_gram(gram)
    beta = v["a1"] / float(np.sqrt(score_variance(g, w, c)))
    heads = Heads(
        noise=np.array([[v["sigma2"]]]),
        twin=np.array([[v["sigma2"]]]),
        diagonal=np.array([v["shift"] + v["skip"] - beta * float(w @ g)]),
        skip=np.array([v["skip"]]),
        mean_spike=np.array([v["mean_spike"]]),
        a2=np.array([v["a2"]]),
        norms=np.full((2, 2), v["norm_variance"]),
        intercept=np.array([intercept]),
    )
    terms = G.shape[0] // 2
    order = np.r_[0, 1 + terms : 1 + 2 * terms, 1 : 1 + terms]  # queries in block 0, keys in block 1
    coupling = beta * np.kron([[0.0, 1.0], [1.0, 0.0]], np.eye(terms))
    generic = Generic(np.asarray(coupling), np.repeat([0, 1], terms), G[np.ix_(order, order)])
    M = np.array([[0.0, beta, 0.0], [beta, 0.0, 0.0], [0.0, 0.0, c]])
    system = TableEquation(c, *token_side(c, heads), M, g, w, generic, (1,))
    target = Target(v["label_mean"], v["target_overlap"])
    linear = beta**2 * float(w @ g**2)
    return errors_along(system, checked(ridge=ridge)["ridge"], linear, heads, target)


def law_linear_errors(
    nodes: ArrayLike,
    weights: ArrayLike,
    *,
    ratio: float,
    ridge: ArrayLike,
    snr: float,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
) -> ProbeErrors:
    """`linear_errors` under the law with these nodes and weights, at positive ridges; see `law_errors`.

    Source: theory page, sections 6 and 8b.

    >>> from resolvent.equivalents import linear_errors
    >>> from resolvent.laws import marchenko_pastur
    >>> law = marchenko_pastur(2.0)
    >>> e = law_linear_errors(law.nodes, law.weights, ratio=2.0, ridge=0.1, snr=1.0)
    >>> exact = linear_errors(ratio=2.0, ridge=0.1, snr=1.0)
    >>> bool(abs(e.train - exact.train) < 1e-10 and abs(e.test - exact.test) < 1e-10)
    True
    """
    g, w = _table(nodes, weights)
    v = checked(ratio=ratio, snr=snr, label_mean=label_mean, target_overlap=target_overlap)
    c, none, square = float(v["ratio"]), np.empty(0), np.empty((0, 0))
    heads = Heads(square, square, none, none, none, none, square, np.empty(0, dtype=bool))
    generic = Generic(square, np.empty(0, dtype=np.intp), np.array([[float(v["snr"])]]))
    system = TableEquation(c, *token_side(c, heads), np.array([[c]]), g, w, generic, ())
    target = Target(float(v["label_mean"]), float(v["target_overlap"]))
    return errors_along(system, checked(ridge=ridge)["ridge"], c**2, heads, target)


def _table(nodes: ArrayLike, weights: ArrayLike) -> tuple[Array, Array]:
    """Checked nodes and weights: not negative, total 1, mean 1 up to sampling."""
    g, w = numbers("nodes", nodes), numbers("weights", weights)
    if g.ndim != 1 or g.size == 0 or g.shape != w.shape:
        raise ValueError(f"nodes and weights must be lists of one length, got {g.shape} and {w.shape}")
    require("nodes", g, g >= 0.0, "zero or positive")
    require("weights", w, w >= 0.0, "zero or positive")
    if abs(w.sum() - 1.0) > 1e-6:
        raise ValueError(f"weights must sum to 1, got {w.sum():.8g}")
    if abs(w @ g - 1.0) > 0.05:
        raise ValueError(f"nodes must have mean 1 (unit noise), got {w @ g:.6g}")
    return g, w
