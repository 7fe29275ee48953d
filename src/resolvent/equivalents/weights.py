"""Training and test error of the probe for any fixed key-query weights M: a pretrained head, say.

With |M|_F^2 = p tau^2 and Hermite coefficients under N(0, tau^2), beta = a1/tau,

    K_N ~ beta Z'M Z/p + d I + sigma N,      corr(N_ij, N_ji) = r = sum_{k >= 2} a_k^2 rho^k / sigma^2,

and the low-rank directions of signal and weights are those of the full D of `features`, because X = mu y' +
Z enters L only through X'DX. Theory page, section 8; the test error and unbalanced labels follow `probe`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import checked, numbers
from resolvent.equivalents.averages import Array
from resolvent.equivalents.factors import Factors
from resolvent.equivalents.features import Features, bulk_only
from resolvent.equivalents.probe import Heads, ProbeErrors, Target, probe_errors


def weights_errors(
    weights: Factors,
    *,
    mu: ArrayLike,
    ratio: float,
    ridge: ArrayLike,
    a1: float,
    sigma2: float,
    correlation: float,
    shift: float = 0.0,
    skip: float = 0.0,
    mean_spike: float = 0.0,
    a2: float = 0.0,
    kurtosis: float = 3.0,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
    intercept: bool = False,
) -> ProbeErrors:
    """Limits of the training and test error on features H = X (K + skip I), K = f(X'M X/sqrt p)/sqrt p.

    Parameters
    ----------
    weights
        M from `reduce_matrix` or `reduce_factors`, on the scale that f sees.
    mu
        The signal (p,); |mu|^2 is the SNR.
    ratio, ridge
        p/n and the ridges, all positive; ridges share one path, so a curve costs little more than its
        smallest ridge.
    a1, a2, sigma2
        Hermite coefficients and noise power of f under N(0, tau^2), tau = `weights.tau`.
    correlation
        sum_{k>=2} a_k^2 rho^k / sigma2 at rho = `weights.rho`; 1 for symmetric weights.
    shift, skip, mean_spike, label_mean, target_overlap
        As in `attention_errors`. The diagonal of K counts as zero; one that is kept adds shift f(sqrt p tr
        M/p)/sqrt p.
    kurtosis
        Of the noise entries, 3 when Gaussian; matters with a2 and unbalanced labels or a mean.
    intercept
        The columns of K have a fixed sum (softmax), which acts like a free intercept.

    Returns
    -------
    ProbeErrors
        Arrays of the shape of `ridge`, or plain numbers.

    Raises
    ------
    ValueError
        For an argument that is not finite, out of range or of the wrong shape, in one line naming it.

    Source: theory page, section 8.

    Examples
    --------
    >>> from resolvent.equivalents import attention_errors, reduce_matrix
    >>> mu = np.r_[1.0, np.zeros(99)]
    >>> general = weights_errors(
    ...     reduce_matrix(np.eye(100)), mu=mu, ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, correlation=1.0
    ... )
    >>> scalar = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=np.diag([1.0, 0.0, 0.0]))
    >>> bool(abs(general.train - scalar.train) < 1e-12)
    True
    """
    args = {
        name: float(value)
        for name, value in checked(
            ratio=ratio,
            a1=a1,
            sigma2=sigma2,
            correlation=correlation,
            shift=shift,
            skip=skip,
            mean_spike=mean_spike,
            a2=a2,
            kurtosis=kurtosis,
            label_mean=label_mean,
            target_overlap=target_overlap,
        ).items()
    }
    signal = signal_vector(mu, weights.dimension)
    beta = args["a1"] / weights.tau
    heads = Heads(
        noise=np.array([[args["sigma2"]]]),
        twin=np.array([[args["sigma2"] * args["correlation"]]]),
        diagonal=np.array([args["shift"] + args["skip"] - beta * weights.trace]),
        skip=np.array([args["skip"]]),
        mean_spike=np.array([args["mean_spike"]]),
        a2=np.array([args["a2"]]),
        norms=weights.norm_gram(weights, args["kurtosis"]),
        intercept=np.array([intercept]),
    )
    target = Target(args["label_mean"], args["target_overlap"])
    features = feature_side([weights], np.array([beta]), args["ratio"], signal)
    return probe_errors(args["ratio"], checked(ridge=ridge)["ridge"], heads, target, features)


def signal_vector(mu: ArrayLike, dimension: int) -> Array:
    """mu as a vector of the weights' dimension, or ValueError."""
    signal = numbers("mu", mu)
    if signal.shape != (dimension,):
        raise ValueError(f"mu must have shape ({dimension},), got {signal.shape}")
    return signal


def feature_side(weights: list[Factors], beta: Array, c: float, mu: Array) -> Features:
    """D for heads with these weights: blocks (0, v_h) beta_h M_h' and (w_h, w_h) c I."""
    B = 1 + 2 * len(weights)
    rest = np.zeros((B, B))
    np.fill_diagonal(rest[2::2, 2::2], c)
    if len(weights) == 1 and weights[0].symmetric:
        return _diagonal_side(weights[0], float(beta[0]), rest, mu)
    left, right = [w.left for w in weights], [w.right for w in weights]
    columns = np.hstack(right + left)
    block = np.repeat([0] * len(weights) + list(range(1, B, 2)), [w.rank for w in weights] * 2)
    values = np.concatenate([b * w.values for b, w in zip(beta, weights, strict=True)])
    half = values.size
    coupling = np.zeros((2 * half, 2 * half))
    coupling[np.arange(half), half + np.arange(half)] = coupling[half + np.arange(half), np.arange(half)] = (
        values
    )
    return Features(
        rest[None],
        np.ones(1),
        np.array([mu @ mu]),
        coupling,
        block,
        (columns.T @ columns)[None],
        (columns.T @ mu)[None],
        float(mu.size),
    )


def _diagonal_side(weights: Factors, beta: float, rest: Array, mu: Array) -> Features:
    """Symmetric weights: a small matrix on each eigenvector, one more on what M does not reach."""
    bulk = np.repeat(rest[None], weights.rank + 1, axis=0)
    bulk[:-1, 0, 1] = bulk[:-1, 1, 0] = beta * weights.values
    along = (weights.left.T @ mu) ** 2
    p = weights.dimension
    share = np.append(np.full(weights.rank, 1.0 / p), 1.0 - weights.rank / p)
    return bulk_only(bulk, share, np.append(along, max(float(mu @ mu - along.sum()), 0.0)))
