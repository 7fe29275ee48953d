"""Parameters of the model, estimated from standardised tokens: SNR and its error, direction, noise.

With mu_hat = (mean_+ - mean_-)/2 = mu + e, Cov e = k Sigma, k = (1/n_+ + 1/n_-)/4, the plug-in |mu_hat|^2 is
too large by k tr Sigma, which at tr Sigma = p is (p/4)(1/n_+ + 1/n_-). Hence the unbiased

    snr = |mu_hat|^2 - k tr S
    Var = 4 k mu' Sigma mu  +  2 k^2 tr Sigma^2  +  |mu_hat|^4 Var(|z|^2/p)/n

the first two terms for Gaussian e (a mean of many tokens), the last because the noise that sets the unit is
itself estimated. mu' Sigma mu is estimated by mu_hat' S mu_hat - k tr Sigma^2, tr Sigma^2 as in `noise`; both
are floored where they must be positive, which makes the standard error some 10 % too large at snr 0. What the
random unit leaves in the mean of snr is of relative order 2/(p n). Source: section 1 of the theory page for
the model; the moments are elementary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.dataset.moments import class_means, class_sizes, leverage_scale, within_class
from resolvent.dataset.noise import NoiseSpectrum, eigenvalues, trace_square
from resolvent.dataset.standard import StandardTokens

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TokenEstimate:
    """What the tokens say about the model's parameters.

    snr           unbiased, negative where the classes differ less than chance would make them
    snr_plugin    |mu_hat|^2, biased upwards
    direction     unit vector (p) from the class midpoint to the mean of +1; 0 if the class means coincide
    norm_spread   standard deviation of |x|^2/p over tokens
    norm_variance p Var(|z|^2/p) of the noise: 2 s2 for Gaussian noise, hence 2 where it is white (section 3)
    """

    n: int
    p: int
    n_plus: int
    n_minus: int
    snr: float
    snr_se: float
    snr_plugin: float
    direction: Vector
    norm_spread: float
    norm_variance: float
    noise: NoiseSpectrum

    @property
    def ratio(self) -> float:
        """c = p/n."""
        return self.p / self.n

    @property
    def label_mean(self) -> float:
        """Mean of the labels, (n_plus - n_minus)/n."""
        return (self.n_plus - self.n_minus) / self.n

    @property
    def snr_used(self) -> float:
        """max(snr, 0), for a model that wants a squared length."""
        return max(self.snr, 0.0)

    def as_dict(self) -> dict[str, object]:
        """Plain numbers for JSON, without the arrays `direction` and `noise.eigenvalues`."""
        plain = ("n", "p", "n_plus", "n_minus", "ratio", "label_mean")
        measured = ("snr", "snr_se", "snr_plugin", "snr_used", "norm_spread", "norm_variance")
        return {name: getattr(self, name) for name in plain + measured} | {"noise": self.noise.as_dict()}

    def __str__(self) -> str:
        return "\n".join(
            (
                f"n {self.n}, p {self.p}, ratio {self.ratio:.4g}, label mean {self.label_mean:.3g} "
                f"({self.n_plus} of +1, {self.n_minus} of -1)",
                f"snr {self.snr:.3f} +- {self.snr_se:.3f} (plug-in {self.snr_plugin:.3f})",
                f"|x|^2/p spread {self.norm_spread:.3f}, noise norm variance {self.norm_variance:.3g} "
                f"({2 * self.noise.s2:.3g} if Gaussian)",
                str(self.noise),
            )
        )


def estimate(standard: StandardTokens) -> TokenEstimate:
    """Estimate the model's parameters from standardised tokens (module docstring for the formulas).

    One pass over a copy of the tokens and one eigendecomposition of size min(n, p). Raises ValueError if a
    class has fewer than 2 tokens.

    >>> from resolvent.dataset import demo_tokens, standardise
    >>> print(estimate(standardise(demo_tokens())))
    n 2237, p 384, ratio 0.1717, label mean -0.055 (1057 of +1, 1180 of -1)
    snr 3.207 +- 0.089 (plug-in 3.379)
    |x|^2/p spread 0.239, noise norm variance 21.9 (2.76 if Gaussian)
    noise eigenvalues 0.0693 to 5.37 (white: 0.343 to 2), s2 1.378 (white: 1)
    """
    return _estimate(standard.tokens, standard.labels)


def _estimate(tokens: Matrix, labels: Vector) -> TokenEstimate:
    p, n = tokens.shape
    plus, minus = class_sizes(labels)
    midpoint, half = class_means(tokens, labels)
    noise = within_class(tokens, labels, midpoint, half)
    norms = np.einsum("ij,ij->j", noise, noise)
    spectrum = eigenvalues(noise)
    trace = float(spectrum.sum())
    trace2 = trace_square(spectrum, norms, labels)
    norm_variance = float(np.var(norms / leverage_scale(labels), ddof=1)) / p

    k = (1 / plus + 1 / minus) / 4
    plugin = float(half @ half)
    along = noise.T @ half
    floored = max(trace2, trace**2 / p)  # Cauchy-Schwarz
    signal = max(float(along @ along) / (n - 2) - k * floored, 0.0)
    variance = 4 * k * signal + 2 * k**2 * floored + plugin**2 * norm_variance / (p * n)
    return TokenEstimate(
        n=n,
        p=p,
        n_plus=plus,
        n_minus=minus,
        snr=plugin - k * trace,
        snr_se=float(np.sqrt(variance)),
        snr_plugin=plugin,
        direction=half / np.sqrt(plugin) if plugin > 0 else half,
        norm_spread=float(np.std(np.einsum("ij,ij->j", tokens, tokens) / p)),
        norm_variance=norm_variance,
        noise=NoiseSpectrum(spectrum, n, trace2 / p),
    )
