"""Spectra without noise (sigma2 = 0): images of the Marchenko-Pastur law under a polynomial phi.

K = a1 (G - I) + d I then has the eigenvalues phi(g) = a1 (g - 1) + d, and H'H/n = c G K^2 those of phi(g) =
c g (a1 (g - 1) + d)^2. On each interval where phi is monotone the density of x = phi(g) gains

    rho_MP(g)/|phi'(g)|,

which is infinite, and integrable, at the extreme values of phi. Theory page, sections 4 and 8d.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial import Polynomial

from resolvent.equivalents.averages import Array
from resolvent.laws.marchenko_pastur import density, edges

HALVINGS = 100


@dataclass(frozen=True)
class Image:
    """The law of phi(g) for g of the Marchenko-Pastur law of ratio c, its atom left out."""

    c: float
    phi: Polynomial

    @property
    def turns(self) -> Array:
        """Edges of the Marchenko-Pastur law and the extrema of phi between them, in increasing order."""
        left, right = edges(self.c)
        extrema = self.phi.deriv().roots().real  # phi is a line, or a cubic with real extrema
        return np.unique([left, *extrema[(extrema > left) & (extrema < right)], right])

    @property
    def breaks(self) -> Array:
        """Values of phi there: the ends of the support, and the places inside where the density may jump."""
        return np.unique(np.asarray(self.phi(self.turns)))

    def density(self, x: Array) -> tuple[Array, float]:
        """Density at x, and a residual of zero."""
        total = np.zeros(x.shape)
        for a, b in pairwise(self.turns):
            g = self._preimage(x, a, b)
            low, high = sorted((self.phi(a), self.phi(b)))
            with np.errstate(divide="ignore", invalid="ignore"):
                part = density(self.c, g) / np.abs(self.phi.deriv()(g))
            total += np.where((x > low) & (x < high), part, 0.0)
        return total, 0.0

    def _preimage(self, x: Array, a: float, b: float) -> Array:
        """g in [a, b], where phi is monotone, with phi(g) = x."""
        rising = bool(self.phi(a) < self.phi(b))
        low, high = np.full(x.shape, a), np.full(x.shape, b)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            beyond = (self.phi(middle) > x) == rising
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return np.asarray(0.5 * (low + high))
