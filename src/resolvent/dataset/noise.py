"""The within-class noise against white Gaussian noise: spectrum and norms.

S is the within-class covariance on nu = n - 2 degrees of freedom, tr S / p = 1. For white noise its
eigenvalues fill the Marchenko-Pastur bulk [(1 - sqrt c)^2, (1 + sqrt c)^2], c = p/n, and mean l^2 = 1 + c.
What exceeds it is the noise's own: s2 = tr Sigma^2 / p, 1 for white noise (theory page, section 8b). It is
estimated without bias from the pairs of tokens i != j, whose (r_i' r_j)^2 does not see fourth moments: with
residuals r = z P, P the projection off the class means,

    E sum_{i != j} (r_i' r_j)^2 = a (tr Sigma)^2 + b tr Sigma^2,    a = sum_{i != j} P_ij^2,
                                                                   b = sum_{i != j} (P_ii P_jj + P_ij^2)

for Gaussian noise; (tr S)^2 estimates (tr Sigma)^2 + 2 tr Sigma^2 / nu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.dataset.moments import class_sizes, leverage_scale

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """Eigenvalues (p, ascending) of the within-class covariance, beside what white noise would give.

    `s2` is unbiased: where the noise is white it falls below 1 as often as above.
    """

    eigenvalues: Vector
    n: int
    s2: float

    @property
    def ratio(self) -> float:
        """c = p/n."""
        return self.eigenvalues.size / self.n

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue of those, at most n - 2, that do not vanish for want of tokens."""
        return float(self.eigenvalues[max(0, self.eigenvalues.size - (self.n - 2))])

    @property
    def largest(self) -> float:
        """The largest eigenvalue."""
        return float(self.eigenvalues[-1])

    @property
    def quantiles(self) -> dict[float, float]:
        """Eigenvalues at the levels 0.05, 0.25, 0.5, 0.75, 0.95."""
        values = np.quantile(self.eigenvalues, LEVELS)
        return dict(zip(LEVELS, values.tolist(), strict=True))

    @property
    def mean_square(self) -> float:
        """mean l^2 of the sample eigenvalues."""
        return float(np.mean(self.eigenvalues**2))

    @property
    def white_mean_square(self) -> float:
        """1 + p/n, the same for white Gaussian noise."""
        return 1 + self.ratio

    @property
    def white_edges(self) -> tuple[float, float]:
        """Edges of the Marchenko-Pastur bulk at this ratio (above 1: of the eigenvalues that are not 0)."""
        root = float(np.sqrt(self.ratio))
        return (1 - root) ** 2, (1 + root) ** 2

    def as_dict(self) -> dict[str, object]:
        """Plain numbers for JSON, without the eigenvalues themselves."""
        return {
            "smallest": self.smallest,
            "largest": self.largest,
            "quantiles": {str(level): value for level, value in self.quantiles.items()},
            "mean_square": self.mean_square,
            "white_mean_square": self.white_mean_square,
            "white_edges": list(self.white_edges),
            "s2": self.s2,
        }

    def __str__(self) -> str:
        low, high = self.white_edges
        return (
            f"noise eigenvalues {self.smallest:.3g} to {self.largest:.3g} "
            f"(white: {low:.3g} to {high:.3g}), s2 {self.s2:.3f} (white: 1)"
        )


def eigenvalues(noise: Matrix) -> Vector:
    """Spectrum (p, ascending) of the within-class covariance, from the smaller Gram matrix of the noise."""
    p, n = noise.shape
    gram = noise @ noise.T if p <= n else noise.T @ noise
    values = np.maximum(np.linalg.eigvalsh(gram), 0.0) / (n - 2)
    return np.concatenate([np.zeros(p - values.size), values])


def trace_square(spectrum: Vector, norms: Vector, labels: Vector) -> float:
    """Unbiased tr Sigma^2 (module docstring), by chance below (tr S)^2/p; `norms` are the |r_i|^2."""
    nu = labels.size - 2
    scale = leverage_scale(labels)
    a = sum((size - 1) / size for size in class_sizes(labels))
    b = nu**2 - float(scale @ scale) + a
    trace = float(spectrum.sum())
    pairs = nu**2 * float(spectrum @ spectrum) - float(norms @ norms)
    return (pairs - a * trace**2) / (b - 2 * a / nu)
