"""Which assumptions of the model the data break, in plain words with the numbers.

The model: white noise, tokens of nearly equal norm, balanced labels, n and p large (theory page, sections 1,
8b, 11). Each rule asks for an effect that matters and that chance would not make.
"""

from __future__ import annotations

from math import sqrt

from resolvent.dataset.estimation import TokenEstimate

MANY = 100  # tokens, and dimensions, from which the limit is worth quoting


def broken_assumptions(estimate: TokenEstimate) -> list[str]:
    """One sentence for each assumption the tokens break; an empty list if they break none."""
    rules = (_unequal_norms, _coloured_noise, _few, _imprecise_snr, _no_signal, _imbalance)
    return [sentence for rule in rules if (sentence := rule(estimate))]


def _unequal_norms(e: TokenEstimate) -> str | None:
    spread, gaussian = sqrt(e.norm_variance / e.p), sqrt(2 * e.noise.s2 / e.p)
    if spread < gaussian * (1.5 + 4 / sqrt(2 * e.n)):
        return None
    return (
        f"Unequal norms: |z|^2/p of the noise spreads by {spread:.2g} over tokens, where Gaussian noise "
        f"of this covariance spreads by {gaussian:.2g}; the limit takes all norms as equal."
    )


def _coloured_noise(e: TokenEstimate) -> str | None:
    noise, (low, high) = e.noise, e.noise.white_edges
    if noise.s2 - 1 < max(0.1, 8 / e.n) and noise.largest < 1.5 * high:
        return None
    return (
        f"Noise is not white: covariance eigenvalues run from {noise.smallest:.2g} to {noise.largest:.2g}, "
        f"white noise at ratio {e.ratio:.3g} would fill {low:.2g} to {high:.2g}; "
        f"their mean square is {noise.mean_square:.3g}, {noise.white_mean_square:.3g} if white."
    )


def _few(e: TokenEstimate) -> str | None:
    if min(e.n, e.p) >= MANY:
        return None
    return (
        f"Small: n = {e.n} tokens of p = {e.p} dimensions; the limit wants both large, and one such data set "
        f"fluctuates by about 1/sqrt(n) = {1 / sqrt(e.n):.1%}."
    )


def _imprecise_snr(e: TokenEstimate) -> str | None:
    if e.snr < 2 * e.snr_se or e.snr_se < 0.2 * e.snr:
        return None
    return (
        f"Few tokens: the snr is known only as {e.snr:.2g} +- {e.snr_se:.2g}, and so is what follows from it."
    )


def _no_signal(e: TokenEstimate) -> str | None:
    if e.snr >= 2 * e.snr_se:
        return None
    return f"No clear signal: snr {e.snr:.2g} +- {e.snr_se:.2g} is within two standard errors of zero."


def _imbalance(e: TokenEstimate) -> str | None:
    if abs(e.label_mean) < 0.1:
        return None
    return (
        f"Unbalanced labels: {e.n_plus} of +1 and {e.n_minus} of -1, a label mean of {e.label_mean:.2g}; "
        "the basic formulas are for balanced ones, and unbalanced ones near the limit slowly, like 1/sqrt(p)."
    )
