"""The rate at which a gap falls, gap = b n^-r, by weighted least squares with an honest interval.

For each r on a grid the best b is linear, so that the profile

    chi2(r) = min_b sum_k ((gap_k - b n_k^-r)/se_k)^2

is exact, whatever the signs of the gaps; no logarithm of a noisy number is taken. Without a gap (b = 0) it is
chi2_0. The rate counts as seen only if chi2_0 - chi2(r) reaches SEEN: an amplitude of three standard errors.
The interval holds the r within INTERVAL of the minimum (95 %). Where the fit is worse than its noise, chi2
above its degrees of freedom, all are scaled as if the standard errors were larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

SEEN, INTERVAL = 9.0, 4.0
EXPONENTS = np.linspace(0.0, 3.0, 301)


@dataclass(frozen=True)
class Rate:
    """gap = scale n^-exponent, the exponent between `low` and `high` (95 %), which end at 0 and 3."""

    exponent: float
    low: float
    high: float
    scale: float

    def size(self, gap: float) -> float:
        """The n at which the fitted curve has this gap; infinite for a larger gap that does not fall."""
        if self.exponent == 0.0:
            return np.inf if abs(self.scale) > gap else 1.0
        return float((abs(self.scale) / gap) ** (1.0 / self.exponent))

    def as_dict(self) -> dict[str, float]:
        """Fields by name."""
        return {"exponent": self.exponent, "low": self.low, "high": self.high, "scale": self.scale}

    def __str__(self) -> str:
        top = "more" if self.high == EXPONENTS[-1] else f"{self.high:.2g}"
        return f"falls like n^-{self.exponent:.2g} ({self.low:.2g} to {top})"


def fit_rate(n: ArrayLike, gap: ArrayLike, se: ArrayLike) -> Rate | None:
    """The rate of gaps with standard errors at sizes n, all (k,); None when the gaps are inside their noise.

    None, too, for fewer than three sizes, gaps that are not finite or standard errors that are not positive.

    >>> n = [100, 200, 400, 800]
    >>> rate = fit_rate(n, [0.1, 0.05, 0.025, 0.0125], [0.001] * 4)
    >>> rate.exponent, round(rate.scale, 6)
    (1.0, 10.0)
    >>> fit_rate(n, [0.001, -0.002, 0.001, 0.0], [0.001] * 4) is None
    True
    """
    sizes, y, error = (np.asarray(v, dtype=np.float64) for v in (n, gap, se))
    if sizes.size < 3 or not (np.all(error > 0.0) and np.isfinite(y / error).all()):
        return None
    x = (sizes / sizes[0]) ** -EXPONENTS[:, None] / error
    y = y / error
    b = (x @ y) / (x * x).sum(axis=1)
    chi2 = ((y - b[:, None] * x) ** 2).sum(axis=1)
    best = int(np.argmin(chi2))
    worse = max(1.0, chi2[best] / (sizes.size - 2))
    if (y @ y - chi2[best]) / worse < SEEN:
        return None
    inside = EXPONENTS[chi2 - chi2[best] <= INTERVAL * worse]
    exponent = float(EXPONENTS[best])
    scale = float(b[best] * sizes[0] ** exponent)
    return Rate(exponent, float(inside[0]), float(inside[-1]), scale)
