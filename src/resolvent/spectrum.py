"""The spectrum of K or of H'H/n in a setting: limiting law, isolated eigenvalues, and one sampled matrix.

An isolated eigenvalue comes from the signal, from the weights, from the mean of f (a0), or from pure noise:
the norm fluctuations of the tokens, through a2. Sampled eigenvalues outside the limiting bulk count as
isolated from the first gap on that is wider than eigenvalues at the edge fluctuate: if the density grows like
A sqrt(h) at a distance h inside an edge, the outermost h_1 = (3/(2 A n))^(2/3) holds one eigenvalue on
average, and EDGE h_1 beyond the edge is reached with a probability of about 0.1 % (Tracy-Widom law,
beta = 1). To that comes what the matrix itself is off its limit, of order 1/sqrt n. At small n a bulk that is
still much wider than its limit, with the cube of a score say, leaves more isolated eigenvalues than were
predicted. Theory page, section 8d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.callable_module import call_as
from resolvent.equivalents import Spectrum, attention_spectrum, features_spectrum
from resolvent.equivalents.outliers import Outlier
from resolvent.nonlinearity import Nonlinearity
from resolvent.predict.prediction import LARGE
from resolvent.predict.routes import refuse_unequal_norms
from resolvent.setting import Setting
from resolvent.setting.heads import Head
from resolvent.simulate.eigenvalues import Of, eigenvalues
from resolvent.simulate.measure import sizes

Array = NDArray[np.float64]

EDGE = 1.2  # in units of h_1; 3.27 in those of the Tracy-Widom law, its 99.9 % point
BLUR = 0.25  # what a matrix is off its limit, in units of the support's length over sqrt n
STEP = 1e-4  # of an interval's length: where the density's growth at an edge is read off


@dataclass(frozen=True)
class SampledSpectrum:
    """All n eigenvalues of one sampled matrix, and those of them that are isolated, in increasing order."""

    n: int
    p: int
    seed: int
    eigenvalues: Array
    outliers: Array

    def as_dict(self) -> dict[str, object]:
        """The field `measured` of `resolvent spectrum --json`."""
        return {
            "n": self.n,
            "p": self.p,
            "seed": self.seed,
            "outliers": self.outliers,
            "smallest": self.eigenvalues[0],
            "largest": self.eigenvalues[-1],
        }


@dataclass(frozen=True)
class SettingSpectrum:
    """Limit and, with a size, one sampled matrix (`measured`, else None) of a setting.

    `limit` holds support, atoms, isolated eigenvalues with their kinds, mass, and the density as a function.
    """

    setting: Setting
    of: Of
    limit: Spectrum
    measured: SampledSpectrum | None

    def density(self, x: ArrayLike) -> Array:
        """Limiting density at x, atoms left out."""
        return self.limit.density(x)

    @property
    def outliers(self) -> tuple[Outlier, ...]:
        """Predicted isolated eigenvalues: place, kind, squared overlap of the eigenvector and y/sqrt n."""
        return self.limit.outliers

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent spectrum --json`."""
        limit = self.limit
        return {
            "setting": self.setting.as_dict(),
            "of": self.of,
            "atoms": [{"place": place, "mass": mass} for place, mass in limit.atoms],
            "support": limit.support,
            "outliers": [{"place": o.place, "kind": o.kind, "overlap": o.overlap} for o in limit.outliers],
            "mass": limit.mass,
            "residual": limit.residual,
            "measured": None if self.measured is None else self.measured.as_dict(),
        }

    def __str__(self) -> str:
        m = self.measured
        if m is None:
            return str(self.limit)
        low, high = (self.limit.support + edge_margins(self.limit, m.n) * [-1.0, 1.0]).T
        close = [o for o in self.outliers if ((o.place > low) & (o.place < high)).any()]
        places = "  ".join(f"{v:.5g}" for v in m.outliers) or "none"
        lines = [f"measured  {places} isolated, n = {m.n}, p = {m.p}"]
        lines += [f"          {o.place:.5g} is too close to the bulk to be told apart here" for o in close]
        return "\n".join([str(self.limit), *lines])


def spectrum(
    setting: Setting, *, of: Of = "features", n: int | None = None, seed: int = 0
) -> SettingSpectrum:
    """Limiting spectrum of K = f(X'MX/sqrt p)/sqrt p ("attention") or of H'H/n ("features").

    H = X (K + skip I), and K without the residual.

    With `n`, one matrix is sampled too, from the tokens of the first draw of `simulate(setting, n=n,
    seed=seed)`, and what depends on the size (a kept diagonal, the mean of an uncentred f) is taken there.
    The ridge of the setting plays no part, nor does noise in the targets.

    The theory here covers one head with weights I + low rank, on white noise of any law of its entries.
    Softmax has no symmetric K; in H'H/n it counts as an f with a1 = beta and the mean a0 = 1, since its
    columns sum to n/sqrt p. Raises ValueError for another setting, one with arrays (its ridge aside), an `of`
    or a size out of range, a K that is not symmetric, and without n for an uncentred f or softmax;
    ArithmeticError where the mass is not 1 to 1e-6.

    Source: theory page, sections 4, 5 and 8d; the law of K without spikes is Cheng and Singer's.

    >>> from resolvent import Setting, Tokens
    >>> print(spectrum(Setting(Tokens(ratio=0.5, snr=2.0)), of="attention"))
    support   [-0.96773, 2.9511]
    outlier   3.9522  signal
    mass      1.0000000
    """
    _check(setting, of)
    if n is None:
        if _mean(setting.head) != 0.0:
            raise ValueError(
                "n must be given for an uncentred f or softmax: the mean adds an eigenvalue that grows"
            )
        return SettingSpectrum(setting, of, _limit(setting, of, LARGE), None)
    n, p = sizes(setting, n)
    limit = _limit(setting, of, p)
    values = eigenvalues(setting, of=of, n=n, seed=seed)
    isolated = _isolated(limit, edge_margins(limit, n), values)
    return SettingSpectrum(setting, of, limit, SampledSpectrum(n, p, seed, values, isolated))


def _check(setting: Setting, of: str) -> None:
    """ValueError for a setting that the theory does not cover."""
    if of not in get_args(Of):
        raise ValueError(f"of must be attention or features, got {of!r}")
    if replace(setting, ridge=0.0).shape:
        raise ValueError(f"spectrum takes one setting, got arrays of shape {setting.shape}")
    refuse_unequal_norms(setting)
    if len(setting.heads) > 1:
        raise ValueError(f"spectrum takes one head, got {len(setting.heads)}")
    if setting.head.softmax and of == "attention":
        raise ValueError("of must be features with softmax, whose K is not symmetric")
    if setting.dimension is not None:
        raise ValueError("spectrum takes weights I + low rank, got a matrix")
    if setting.tokens.population is not None:
        raise ValueError("spectrum takes white noise, got a covariance")


def _mean(head: Head) -> float:
    """a0; the columns of softmax sum to n/sqrt p, as if it were 1."""
    return 1.0 if head.softmax else head.f.coefficients(head.scale).a0


def _limit(setting: Setting, of: Of, p: int) -> Spectrum:
    tokens, head = setting.tokens, setting.head
    a = head.f.coefficients(head.scale)
    kernel: Callable[..., Spectrum] = attention_spectrum if of == "attention" else features_spectrum
    skip = {"skip": setting.skip} if of == "features" else {}
    limit: Spectrum = kernel(
        ratio=float(tokens.ratio),
        a1=a.a1,
        sigma2=a.sigma2,
        gram=setting.gram,
        shift=head.f.kept_diagonal(p) if isinstance(head.f, Nonlinearity) and setting.keep_diagonal else 0.0,
        mean_spike=_mean(head) * np.sqrt(float(p)),
        a2=a.a2,
        norm_variance=tokens.norm_variance,
        label_mean=float(tokens.label_mean),
        **skip,
    )
    return limit


def edge_margins(limit: Spectrum, n: int) -> Array:
    """How far from each edge, and behind how wide a gap, one is isolated; in the support's shape."""
    width = np.diff(limit.support, axis=1)
    inside = limit.support + STEP * width * [1.0, -1.0]
    growth = np.nan_to_num(limit.density(inside)) / np.sqrt(STEP * width)
    with np.errstate(divide="ignore"):
        fluctuation = np.minimum(EDGE * (1.5 / (n * growth)) ** (2.0 / 3.0), width)
    return np.asarray(fluctuation + BLUR * np.ptp(limit.support) / np.sqrt(n))


def _isolated(limit: Spectrum, margins: Array, values: Array) -> Array:
    """Those of the sorted values that are away from every band and atom, and behind a gap on either side."""
    bands = [(*band, *margin) for band, margin in zip(limit.support, margins, strict=True)]
    bands += [(place, place, margins.max(), margins.max()) for place, _ in limit.atoms]
    bands = [(-np.inf, -np.inf, 0.0, 0.0), *sorted(bands), (np.inf, np.inf, 0.0, 0.0)]
    gaps = np.diff(values, prepend=-np.inf, append=np.inf)  # before each value, and after the last
    found = []
    for (_, left, _, after), (right, _, before, _) in pairwise(bands):
        between = np.flatnonzero((values > left + after) & (values < right - before))
        starts, stops = between[gaps[between] > after], between[gaps[between + 1] > before]
        if starts.size and stops.size:
            found.append(values[starts[0] : stops[-1] + 1])
    return np.concatenate([np.empty(0), *found])


call_as(spectrum, __name__)
