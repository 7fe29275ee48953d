"""Several heads side by side, and tokens whose noise has a covariance.

Concatenated features H_h = X (K_h + skip_h I) add one pair of blocks each to the pencil, H'H = sum_h (K_h +
..)' X'X (K_h + ..). The noise of two heads is correlated as their scores are: with rho_hg the correlation
of the scores ij of heads h and g, and rho'_hg that of ij and ji,

    noise_hg = sum_{k >= 2} a_k^h a_k^g rho_hg^k,      twin_hg = sum_{k >= 2} a_k^h a_k^g rho'_hg^k

(`noise_covariance`); heads with weights I + low rank share their scores, rho = rho' = 1. Noise of
covariance Sigma with eigenvalues l (mean 1, s2 = mean l^2) is whitened: Z'MZ becomes that of white noise
with Sigma^1/2 M Sigma^1/2, mu becomes Sigma^-1/2 mu, and coefficients are taken under N(0, s2). Theory
page, sections 8b and 8c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked, numbers
from resolvent.equivalents.averages import Array
from resolvent.equivalents.covariance import spectrum_of_covariance
from resolvent.equivalents.factors import Factors
from resolvent.equivalents.features import Features
from resolvent.equivalents.probe import Heads, ProbeErrors, Target, probe_errors
from resolvent.equivalents.weights import feature_side, signal_vector


def heads_errors(
    *,
    ratio: float,
    ridge: ArrayLike,
    a1: ArrayLike,
    noise: ArrayLike,
    gram: ArrayLike,
    shift: ArrayLike = 0.0,
    skip: ArrayLike = 0.0,
    mean_spike: ArrayLike = 0.0,
    a2: ArrayLike = 0.0,
    norm_variance: float | None = None,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
    intercept: ArrayLike = False,
    levels: ArrayLike = 1.0,
    shares: ArrayLike = 1.0,
    owners: Sequence[int] | None = None,
) -> ProbeErrors:
    """Limits for H heads with weights I + low rank of their own, on noise of a given covariance.

    Parameters
    ----------
    ratio, ridge
        p/n and the ridges, all positive; ridges share one path.
    a1, shift, skip, mean_spike, a2, intercept
        One number per head, as in `attention_errors` (or one for all). a1 is E[xi f(sqrt s2 xi)].
    noise
        (H, H) covariances of the heads' noise; its diagonal holds their sigma2. A number counts as one
        head.
    gram
        (1 + 2T, 1 + 2T) inner products of mu, T keys and T queries, in this order.
    norm_variance
        p Var of the squared norms' fluctuation; 2 mean(l^4)/s2^2, its value for Gaussian noise, by default.
    levels, shares
        Eigenvalues l of the noise covariance, mean 1, and the share of each (white noise by default).
        Signal and weights are spread evenly over its eigenvectors.
    owners
        The head that each of the T terms w_K w_Q' belongs to; by default T = H, one term per head.

    Raises ValueError for an argument that is not finite, out of range or of the wrong shape, naming it.

    Source: theory page, sections 8b and 8c.

    >>> from resolvent.equivalents import attention_errors
    >>> one = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.03, gram=np.ones((3, 3)))
    >>> same = heads_errors(ratio=0.5, ridge=0.1, a1=0.6, noise=0.03, gram=np.ones((3, 3)))
    >>> bool(abs(one.train - same.train) < 1e-12)
    True
    """
    level, share = spectrum_of_covariance(levels, shares)
    s2 = float(share @ level**2)
    fluctuation = 2.0 * float(share @ level**4) / s2**2 if norm_variance is None else norm_variance
    c, heads, target = _checked_heads(
        {"a1": a1, "shift": shift, "skip": skip, "mean_spike": mean_spike, "a2": a2},
        noise,
        noise,
        intercept,
        {"ratio": ratio, "label_mean": label_mean, "target_overlap": target_overlap},
        lambda H: fluctuation * np.ones((2 * H, 2 * H)),
    )
    H = heads.count
    owner = np.arange(H) if owners is None else np.asarray(owners)
    if owner.ndim != 1 or owner.dtype.kind not in "iu" or not ((owner >= 0) & (owner < H)).all():
        raise ValueError(f"owners must be a list of heads between 0 and {H - 1}, got {owners!r}")
    G = one_gram(gram)
    if G.shape[0] != 1 + 2 * owner.size:
        raise ValueError(
            f"gram must have {1 + 2 * owner.size} rows for {owner.size} terms, got shape {G.shape}"
        )
    beta = np.broadcast_to(numbers("a1", a1), (H,)) / np.sqrt(s2)
    features = _identity_side(beta, owner, c, G, level, share)
    heads.diagonal[:] -= beta
    return probe_errors(c, checked(ridge=ridge)["ridge"], heads, target, features)


def weighted_heads_errors(
    weights: Sequence[Factors],
    *,
    mu: ArrayLike,
    ratio: float,
    ridge: ArrayLike,
    a1: ArrayLike,
    noise: ArrayLike,
    twin: ArrayLike,
    shift: ArrayLike = 0.0,
    skip: ArrayLike = 0.0,
    mean_spike: ArrayLike = 0.0,
    a2: ArrayLike = 0.0,
    kurtosis: float = 3.0,
    normalised: bool = False,
    label_mean: float = 0.0,
    target_overlap: float = 1.0,
    intercept: ArrayLike = False,
) -> ProbeErrors:
    """Limits for heads with arbitrary weights: `weights_errors` for several heads side by side.

    `weights` holds each head's factors, a1 and a2 its coefficients under N(0, tau_h^2), `noise` and `twin`
    (H, H) the covariances of the noise entries ij of two heads with ij and with ji, at the correlations
    `Factors.correlation`. With `normalised` the tokens have |x|^2 = p, which takes the fluctuation of |z|^2
    out of that of z'MM'z. The rest as in `weights_errors`, one number per head where that makes sense.

    Raises ValueError for an argument that is not finite, out of range or of the wrong shape, naming it.

    Source: theory page, sections 8 and 8c.
    """
    H = len(weights)
    if H == 0 or len({w.dimension for w in weights}) > 1:
        raise ValueError("weights must be one or more factors of one dimension")
    signal = signal_vector(mu, weights[0].dimension)

    def norms(heads: int) -> Array:
        out = np.empty((2, heads, 2, heads))
        for h, one in enumerate(weights):
            for g, other in enumerate(weights):
                out[:, h, :, g] = one.norm_gram(other, kurtosis)
        return out.reshape(2 * heads, 2 * heads) - (kurtosis - 1.0) * normalised

    c, heads, target = _checked_heads(
        {"a1": a1, "shift": shift, "skip": skip, "mean_spike": mean_spike, "a2": a2},
        noise,
        twin,
        intercept,
        {"ratio": ratio, "label_mean": label_mean, "target_overlap": target_overlap, "kurtosis": kurtosis},
        norms,
    )
    if heads.count != H:
        raise ValueError(f"noise must have shape {(H, H)} for {H} heads, got {heads.noise.shape}")
    beta = np.broadcast_to(numbers("a1", a1), (H,)) / [w.tau for w in weights]
    heads.diagonal[:] -= beta * [w.trace for w in weights]
    return probe_errors(
        c, checked(ridge=ridge)["ridge"], heads, target, feature_side(list(weights), beta, c, signal)
    )


def _checked_heads(
    per_head: dict[str, ArrayLike],
    noise: ArrayLike,
    twin: ArrayLike,
    intercept: ArrayLike,
    common: dict[str, ArrayLike],
    norms: Callable[[int], Array],
) -> tuple[float, Heads, Target]:
    """The ratio, the heads (their diagonal without that of the linear part) and the target, all checked."""
    covariance, mirrored = np.atleast_2d(numbers("noise", noise)), np.atleast_2d(numbers("twin", twin))
    H = covariance.shape[0]
    for name, matrix in (("noise", covariance), ("twin", mirrored)):
        if matrix.shape != (H, H) or not np.allclose(matrix, matrix.T):
            raise ValueError(f"{name} must be a symmetric matrix over heads, got shape {matrix.shape}")
    if np.linalg.eigvalsh(covariance)[0] < -1e-9 * np.trace(covariance):
        raise ValueError("noise must be positive semi-definite: it holds covariances")
    single = {name: float(value) for name, value in checked(**common).items()}
    arrays = {name: numbers(name, value) for name, value in per_head.items()}
    for name, value in (*arrays.items(), ("intercept", np.asarray(intercept))):
        if value.shape not in ((), (H,)):
            raise ValueError(f"{name} must be one number or one per head ({H}), got shape {value.shape}")
    full = {name: np.array(np.broadcast_to(value, (H,))) for name, value in arrays.items()}
    heads = Heads(
        covariance,
        mirrored,
        full["shift"] + full["skip"],
        full["skip"],
        full["mean_spike"],
        full["a2"],
        norms(H),
        np.array(np.broadcast_to(np.asarray(intercept, dtype=bool), (H,))),
    )
    return single["ratio"], heads, Target(single["label_mean"], single["target_overlap"])


def one_gram(value: ArrayLike) -> Array:
    """Inner products of mu, T keys and T queries: one positive semi-definite matrix, or ValueError."""
    gram = numbers("gram", value)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] % 2 == 0:
        raise ValueError(f"gram must have shape (1 + 2T, 1 + 2T), got {gram.shape}")
    if not np.allclose(gram, gram.T, rtol=0.0, atol=1e-10 * np.abs(gram).max()):
        raise ValueError("gram must be symmetric")
    eigenvalues = np.linalg.eigvalsh(gram)
    if eigenvalues[0] < -1e-9 * max(eigenvalues[-1], 0.0):
        raise ValueError(
            "gram must be positive semi-definite: it holds the inner products of mu, keys, queries"
        )
    return 0.5 * (gram + gram.T)


def _identity_side(
    beta: Array, owner: NDArray[np.intp], c: float, gram: Array, level: Array, share: Array
) -> Features:
    """Weights I + sum of w_K w_Q' per head on every eigenspace of the covariance, in whitened coordinates."""
    H, T = beta.size, owner.size
    v = 1 + 2 * np.arange(H)
    unit = np.zeros((1 + 2 * H, 1 + 2 * H))
    unit[0, v] = unit[v, 0] = beta
    unit[v + 1, v + 1] = c
    coupling = np.asarray(np.kron([[0.0, 1.0], [1.0, 0.0]], np.diag(beta[owner])), dtype=np.float64)
    columns = np.r_[1 + T : 1 + 2 * T, 1 : 1 + T]  # queries in block 0, keys in the blocks v
    return Features(
        level[:, None, None] * unit,
        share,
        gram[0, 0] * share / level,
        coupling,
        np.concatenate([np.zeros(T, dtype=np.intp), v[owner]]),
        (share * level)[:, None, None] * gram[np.ix_(columns, columns)],
        share[:, None] * gram[0, columns],
        np.inf,
    )
