"""Limiting spectra of the attention matrix K and the features' H'H/n: density, edges, atoms, outliers.

The density is Im m(x + i0)/pi with m the corner of the block traces (`plane`): one block for K, whose

    m = -1/(z - d + a1^2 m/(c + a1 m) + sigma2 m/c),

three for H'H/n, which has an atom 1 - c at zero when p < n. Edges are found by repeated subdivision; the
mass is integrated on adaptive panels in u, x = left + width sin^2(pi u^2/2), which takes the square roots
at the edges and the divergence at a hard edge. Without noise both laws are images of the Marchenko-Pastur law
(`image`). Isolated eigenvalues are in `outliers`. Theory page, section 8d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from resolvent.equivalents.arguments import checked
from resolvent.equivalents.averages import Array
from resolvent.equivalents.heads import one_gram
from resolvent.equivalents.image import Image
from resolvent.equivalents.outliers import LowRank, Outlier, outliers
from resolvent.equivalents.plane import Plane
from resolvent.equivalents.traces import ACCEPTED
from resolvent.nonlinearity.panels import Panels, bend, refine

MASS_TOLERANCE = 1e-6
PANEL_TOLERANCE = 1e-7
MOST_PANELS = 200  # beyond, the mass says whether what is left matters
SCANNED = (300, 3000)  # points of the scans for intervals, the next one where mass is missing
SUBDIVISIONS, ROUNDS = 24, 7
Curve = Callable[[Array], tuple[Array, float]]  # density at points, and the largest residual met

INSIDE = 1e-6  # the density, times the size of the spectrum, from which a point counts as inside


@dataclass(frozen=True)
class Spectrum:
    """Support (k, 2), atoms (place, mass), isolated eigenvalues, mass and the certificate of the equation.

    `mass` counts the density's integral and the atoms; it is 1 to 1e-6. `residual` is the largest met.
    """

    support: Array
    atoms: tuple[tuple[float, float], ...]
    outliers: tuple[Outlier, ...]
    mass: float
    residual: float
    curve: Curve = field(repr=False, compare=False)

    def density(self, x: ArrayLike) -> Array:
        """Density at x, atoms left out; NaN where the equation is not solved (on an atom, say)."""
        return self.curve(np.asarray(x, dtype=np.float64))[0]

    def __str__(self) -> str:
        lines = [f"support   {'  '.join(f'[{a:.5g}, {b:.5g}]' for a, b in self.support)}"]
        lines += [f"atom      {mass:.5g} at {place:.5g}" for place, mass in self.atoms]
        lines += [f"outlier   {o.place:.5g}  {o.kind}" for o in self.outliers]
        return "\n".join([*lines, f"mass      {self.mass:.7f}"])


def attention_spectrum(
    *,
    ratio: float,
    a1: float,
    sigma2: float,
    gram: ArrayLike,
    shift: float = 0.0,
    mean_spike: float = 0.0,
    a2: float = 0.0,
    norm_variance: float = 2.0,
    label_mean: float = 0.0,
) -> Spectrum:
    """Limiting spectrum of K = f(X'MX/sqrt p)/sqrt p, arguments as in `attention_errors`.

    Raises ValueError for an argument out of range and for different keys and queries (K is then not
    symmetric and its isolated eigenvalues may be complex), ArithmeticError where the mass is not 1 to 1e-6.

    Source: theory page, section 8d.

    >>> s = attention_spectrum(ratio=0.25, a1=0.5, sigma2=0.09085, a2=0.28209, gram=np.zeros((3, 3)))
    >>> [(round(o.place, 3), o.kind) for o in s.outliers][0]
    (-1.77, 'norm fluctuation (a2)')
    """
    c, values, low_rank = _arguments(
        ratio, a1, sigma2, shift, gram, mean_spike, a2, norm_variance, label_mean, features=False
    )
    if not low_rank.symmetric:
        raise ValueError(
            "keys and queries must be equal: otherwise K is not symmetric and its spectrum not real"
        )
    a1, sigma2, shift = values
    noise = np.full((1, 1, 1, 1), sigma2 / c)
    plane = Plane(c, np.array([[shift - a1]]), np.array([[a1]]), noise, _size(c, *values))
    if sigma2 == 0.0:
        atoms = ((shift - a1, 1.0 - c),) if c < 1.0 else ()
        return _without_noise(plane, low_rank, atoms, Polynomial([shift - a1, a1]))
    # the scan visits shift - a1, where a weak noise leaves a narrow band of mass 1 - c
    return _spectrum(plane, low_rank, (), lambda u: np.union1d(plane.scale * (2.0 * u - 1.0), [shift - a1]))


def features_spectrum(
    *,
    ratio: float,
    a1: float,
    sigma2: float,
    gram: ArrayLike,
    shift: float = 0.0,
    skip: float = 0.0,
    mean_spike: float = 0.0,
    a2: float = 0.0,
    norm_variance: float = 2.0,
    label_mean: float = 0.0,
) -> Spectrum:
    """Limiting spectrum of H'H/n, H = X (K + skip I), arguments as in `attention_errors`.

    Raises ValueError for an argument out of range, ArithmeticError where the mass is not 1 to 1e-6.

    Source: theory page, sections 4, 5 and 8d.

    >>> s = features_spectrum(ratio=0.5, a1=0.6, sigma2=0.05, gram=np.diag([4.0, 0.0, 0.0]))
    >>> s.atoms, [o.kind for o in s.outliers]
    (((0.0, 0.5),), ['signal'])
    """
    c, values, low_rank = _arguments(
        ratio, a1, sigma2, shift + skip, gram, mean_spike, a2, norm_variance, label_mean, features=True
    )
    a1, sigma2, shift = values
    noise = np.zeros((3, 3, 3, 3))
    for i, j in ((0, 1), (1, 0)):
        noise[i, i, j, j] = noise[i, j, j, i] = sigma2 / c
    base = np.array([[0.0, shift - a1, 0.0], [shift - a1, 0.0, 1.0], [0.0, 1.0, 0.0]])
    M = np.array([[0.0, a1, 0.0], [a1, 0.0, 0.0], [0.0, 0.0, c]])
    plane = Plane(c, base, M, noise, _size(c, *values) ** 2 * c * (1.0 + 1.0 / np.sqrt(c)) ** 2)
    atoms = ((0.0, 1.0 - c),) if c < 1.0 else ()
    if sigma2 == 0.0:
        kernel = Polynomial([shift - a1, a1])
        return _without_noise(plane, low_rank, atoms, Polynomial([0.0, c]) * kernel**2)
    return _spectrum(plane, low_rank, atoms, lambda u: plane.scale * u**4)


def _arguments(
    ratio: float,
    a1: float,
    sigma2: float,
    shift: float,
    gram: ArrayLike,
    mean_spike: float,
    a2: float,
    norm_variance: float,
    label_mean: float,
    *,
    features: bool,
) -> tuple[float, tuple[float, float, float], LowRank]:
    """The ratio, (a1, sigma2, shift) and the low-rank part, checked."""
    given = {
        name: float(value)
        for name, value in checked(
            ratio=ratio,
            a1=a1,
            sigma2=sigma2,
            shift=shift,
            mean_spike=mean_spike,
            a2=a2,
            norm_variance=norm_variance,
            label_mean=label_mean,
        ).items()
    }
    if given["a1"] == 0.0 and given["sigma2"] == 0.0:
        raise ValueError("a1 and sigma2 must not both be zero")
    G = one_gram(gram)
    low_rank = LowRank(
        given["a1"],
        G,
        given["mean_spike"],
        given["a2"],
        given["norm_variance"],
        given["label_mean"],
        given["ratio"] if features else None,
    )
    return given["ratio"], (given["a1"], given["sigma2"], given["shift"]), low_rank


def _size(c: float, a1: float, sigma2: float, shift: float) -> float:
    """A bound on the operator norm of the noise-only K."""
    return float(abs(shift) + abs(a1) * (1.0 + 1.0 / np.sqrt(c)) ** 2 + 2.0 * np.sqrt(sigma2 / c))


def _density(plane: Plane, x: Array) -> tuple[Array, float]:
    """Density at x (NaN where not solved) and the largest residual among those solved."""
    N, residual = plane.traces(x.ravel())
    good = residual <= ACCEPTED
    values = np.where(good, np.maximum(N[:, 0, 0].imag, 0.0) / np.pi, np.nan)
    return values.reshape(x.shape), float(residual[good].max(initial=0.0))


def _without_noise(
    plane: Plane, low_rank: LowRank, atoms: tuple[tuple[float, float], ...], phi: Polynomial
) -> Spectrum:
    """The image of the Marchenko-Pastur law under phi, and isolated eigenvalues beside it."""
    image = Image(plane.c, phi)
    breaks = image.breaks
    mass = sum(m for _, m in atoms) + sum(_mass(image.density, a, b)[0] for a, b in pairwise(breaks))
    if abs(mass - 1.0) > MASS_TOLERANCE:
        raise ArithmeticError(_unresolved(mass))
    support = breaks[[0, -1]][None]
    found = outliers(plane, low_rank, support, tuple(place for place, _ in atoms))
    return Spectrum(support, atoms, found, mass, 0.0, image.density)


def _spectrum(
    plane: Plane, low_rank: LowRank, atoms: tuple[tuple[float, float], ...], scan: Callable[[Array], Array]
) -> Spectrum:
    """Scan for the support, finer while mass is missing, and look for isolated eigenvalues beside it."""
    bottom = -plane.scale if low_rank.ratio is None else 0.0
    for points in SCANNED:
        support = _support(plane, scan(np.linspace(0.0, 1.0, points + 1)[1:]), bottom)
        mass, residual = sum(m for _, m in atoms), 0.0
        for left, right in support:
            part, rest = _mass(partial(_density, plane), left, right)
            mass, residual = mass + part, max(residual, rest)
        if abs(mass - 1.0) <= MASS_TOLERANCE:
            found = outliers(plane, low_rank, support, tuple(place for place, _ in atoms))
            return Spectrum(support, atoms, found, mass, residual, partial(_density, plane))
    raise ArithmeticError(_unresolved(mass))


def _unresolved(mass: float) -> str:
    return f"the spectrum is not resolved: its mass is {mass:.8f} instead of 1"


def _support(plane: Plane, x: Array, bottom: float) -> Array:
    """Intervals of positive density (k, 2): runs of the scan that are inside, their ends refined.

    A run that starts with the scan starts at `bottom`: a hard edge at zero.
    """
    inside = _inside(plane, x)
    starts = np.flatnonzero(inside & ~np.r_[False, inside[:-1]])
    ends = np.flatnonzero(inside & ~np.r_[inside[1:], False])
    lefts = [_edge(plane, x[k - 1], x[k]) if k else bottom for k in starts]
    rights = [_edge(plane, x[int(k) + 1], x[k]) for k in ends]
    return np.array([lefts, rights]).T.reshape(-1, 2)


def _inside(plane: Plane, x: Array) -> NDArray[np.bool_]:
    density, _ = _density(plane, x)
    return np.asarray(np.nan_to_num(density, nan=0.0) * plane.scale > INSIDE)


def _edge(plane: Plane, out: float, into: float) -> float:
    """The edge between a point outside and one inside."""
    for _ in range(ROUNDS):
        x = np.linspace(out, into, SUBDIVISIONS + 1)
        first = int(np.argmax(_inside(plane, x)))
        if first == 0:
            return float(x[0])
        out, into = float(x[first - 1]), float(x[first])
    return 0.5 * (out + into)


def _mass(curve: Curve, left: float, right: float) -> tuple[float, float]:
    """Integral of the density over one interval and the largest residual met."""
    width, worst = right - left, 0.0

    def weighted(u: Array) -> Array:
        nonlocal worst
        angle = 0.5 * np.pi * u**2
        density, residual = curve(left + width * np.sin(angle) ** 2)
        worst = max(worst, residual)
        return (np.nan_to_num(density) * width * np.sin(2.0 * angle) * np.pi * u)[None]

    def unresolved(panels: Panels) -> NDArray[np.bool_]:
        curve = bend(panels.values, panels.left, np.empty(0))[0]
        return np.asarray((panels.width * curve > PANEL_TOLERANCE) & (panels.left.size < MOST_PANELS))

    panels = refine(weighted, np.linspace(0.0, 1.0, 13), unresolved)
    return float((panels.weights * panels.values[0]).sum()), worst
