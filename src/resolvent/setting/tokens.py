"""The tokens: X = mu y' + Z, p x n, with labels y in {-1, +1}, and the law of the noise Z."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from resolvent.laws import EntryLaw, Population
from resolvent.setting.noise import Covariance, entries, given_covariance
from resolvent.setting.ranges import NON_NEGATIVE, POSITIVE, Array, Range, number

Norm = Literal["rms", "layer"]


@dataclass(frozen=True)
class Tokens:
    """Tokens X = mu y' + Z; every number may be an array.

    ratio
        p/n, positive.
    snr
        |mu|^2, zero or positive.
    label_mean
        Mean of the labels, strictly between -1 and 1; labels are drawn independently.
    label_noise
        Probability, up to 0.5, that a target differs from the label that the token carries; 0.5 makes
        targets random.
    noise
        Law of the noise entries, of variance 1: gaussian, rademacher, uniform, laplace or student-t:DEGREES.
    covariance
        Of the noise, tr Sigma/p = 1: power-law:EXPONENT, ar1:CORRELATION, spiked:LEVEL:SHARE, a matrix, its
        eigenvalues, or a `resolvent.laws.Population`. White noise when left out. The signal and the weights
        are spread evenly over its eigenvectors. A power law is tabulated at 1000 dimensions; simulations take
        p quantiles of the eigenvalues.
    norm_spread
        Standard deviation of the log norm of the tokens, which have mean square norm 1 apart from the noise.
    normalise
        "rms" scales every token to |x|^2 = p; "layer" removes the mean of its p coordinates first.

    Source: theory page, section 8b.

    >>> Tokens(ratio=0.5, snr=2.0).target_overlap
    1.0
    >>> Tokens(noise="student-t:6", normalise="rms").norm_variance
    0.0
    """

    ratio: Array | float = 0.5
    snr: Array | float = 1.0
    label_mean: Array | float = 0.0
    label_noise: Array | float = 0.0
    noise: str = "gaussian"
    covariance: Covariance | str | ArrayLike | Population | None = field(default=None, compare=False)
    norm_spread: float = 0.0
    normalise: Norm | None = None

    def __post_init__(self) -> None:
        checks = {
            "ratio": POSITIVE,
            "snr": NON_NEGATIVE,
            "label_mean": Range(-1.0, 1.0, low_included=False, high_included=False),
            "label_noise": Range(0.0, 0.5),
        }
        for name, allowed in checks.items():
            object.__setattr__(self, name, number(name, getattr(self, name), allowed))
        entries(self.noise)
        if self.covariance is not None:
            object.__setattr__(self, "covariance", given_covariance(self.covariance))
        spread = number("norm_spread", self.norm_spread, Range(0.0, 2.0))
        if np.ndim(spread):
            raise ValueError("norm_spread must be one number")
        object.__setattr__(self, "norm_spread", spread)
        if self.normalise not in (None, *get_args(Norm)):
            raise ValueError(f"normalise must be rms or layer, got {self.normalise!r}")

    @property
    def entries(self) -> EntryLaw:
        """The law of the noise entries."""
        return entries(self.noise)

    @property
    def population(self) -> Population | None:
        """Eigenvalues of the noise covariance, None for white noise."""
        return self.covariance.population if isinstance(self.covariance, Covariance) else None

    @property
    def target_overlap(self) -> Array | float:
        """kappa = t'y/n = 1 - 2 label_noise of the target t and the labels y."""
        return 1.0 - 2.0 * self.label_noise

    @property
    def score_scale(self) -> float:
        """Standard deviation sqrt(tr Sigma^2/p) of a score under weights I."""
        return 1.0 if self.population is None else float(np.sqrt(self.population.moment(2)))

    @property
    def norm_variance(self) -> float:
        """p times the variance of what a2 sees of a token, z'Sigma z/(p s2), or of its ratio to |z|^2/p.

        (kurtosis - 1) m4/m2^2, and (kurtosis - 1)(m4/m2^2 - 2 m3/m2 + m2) when tokens are normalised, m_k =
        tr Sigma^k/p: nothing is left of white noise then.
        """
        excess = self.entries.kurtosis - 1.0
        m2, m3, m4 = (1.0 if self.population is None else self.population.moment(k) for k in (2, 3, 4))
        if self.normalise is None:
            return excess * m4 / m2**2
        return max(excess * (m4 / m2**2 - 2.0 * m3 / m2 + m2), 0.0)

    @property
    def isotropic(self) -> bool:
        """Whether the law of the tokens is invariant under rotations that fix mu."""
        return self.noise == "gaussian" and self.covariance is None and self.normalise != "layer"

    def as_dict(self) -> dict[str, object]:
        """The numbers; the law of the noise where it is not white, Gaussian and of equal norms."""
        numbers = {name: getattr(self, name) for name in ("ratio", "snr", "label_mean", "label_noise")}
        laws = {
            "noise": None if self.noise == "gaussian" else self.noise,
            "covariance": str(self.covariance) if self.covariance is not None else None,
            "norm_spread": self.norm_spread or None,
            "normalise": self.normalise,
        }
        return numbers | {name: value for name, value in laws.items() if value is not None}
