"""Spectra of the attention matrix K and of the features' H'H/n: the bulk, and the spike of the signal.

Densities are per unit for K and per decade for H'H/n, whose n - p zeros are left out (theory page, section
8).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from resolvent.equivalents import Spectrum, attention_spectrum, features_spectrum
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan, Series, Spike
from resolvent.figures.verdict import agreement
from resolvent.nonlinearity import nonlinearity
from resolvent.setting import Setting, Tokens, Weights
from resolvent.simulate.draws import run_draws
from resolvent.simulate.memory import workers_for
from resolvent.simulate.sampling import draw, vectors

RATIO, SNR, ALIGN = 0.5, 1.0, 1.0
BINS, INSIDE = 24, 12  # bins, and points in each at which the density is averaged
F = nonlinearity("tanh")
SETTING = Setting(Tokens(RATIO, SNR), Weights.aligned(ALIGN), F)


def panels(plan: Plan) -> Panels:
    """K, then H'H/n."""
    a = F.coefficients()
    model = {"ratio": RATIO, "a1": a.a1, "sigma2": a.sigma2, "a2": a.a2}
    laws = [law(gram=SETTING.gram, **model) for law in (attention_spectrum, features_spectrum)]
    p = round(RATIO * plan.n)
    workers = workers_for(p, plan.n, plan.n, plan.draws)
    values = run_draws(partial(_eigenvalues, p, plan.n), plan.draws, plan.seed, workers, progress=False)
    return (
        _panel("attention matrix K", laws[0], values[:, : plan.n], plan.n, log=False),
        _panel("features H'H/n", laws[1], values[:, plan.n :], plan.n, log=True),
    )


def caption(panels: Panels, plan: Plan) -> str:
    """Whether the bulk is the predicted one, and one eigenvalue lies outside."""
    spikes = [(p.title, s) for p in panels if isinstance(p, Panel) for s in p.spikes]
    outside = " ".join(
        f"{title}: spike at {s.measured:.3g} +- {s.se:.1g}, predicted {s.predicted:.3g}."
        for title, s in spikes
    )
    near = all(abs(s.measured - s.predicted) <= 4.0 * s.se + 0.1 * s.predicted for _, s in spikes)
    return (
        f"Eigenvalues for tanh, aligned weights w_K = w_Q = mu. Our setting: p/n = {RATIO:g}, snr {SNR:g}, "
        f"n = {plan.n}, "
        f"{plan.draws} draws; points are shares of eigenvalues in bins. That the signal is one isolated "
        f"eigenvalue "
        f"beside a bulk that does not know it {'holds' if near else 'fails'}, to 4 standard errors plus 10 "
        f"%. "
        f"{outside or 'No spike.'} {agreement(panels)}"
    )


def _eigenvalues(p: int, n: int, rng: np.random.Generator, _: object) -> Array:
    """Of K (n), then those of H'H/n that are not zero by rank (p)."""
    mu, key, query = vectors(SETTING.gram.reshape(3, 3), p)
    X = draw(SETTING.tokens, mu, n, rng).tokens
    K = F.evaluate(X.T @ (X + np.outer(key, query @ X)) / np.sqrt(p)) / np.sqrt(p)
    np.fill_diagonal(K, 0.0)
    H = X @ K
    return np.concatenate([np.linalg.eigvalsh(K), np.linalg.eigvalsh(H @ H.T / n)])


def _panel(title: str, law: Spectrum, values: Array, n: int, log: bool) -> Panel:
    """Bulk in bins, spikes by themselves: the k-th predicted above the bulk is the k-th largest measured."""
    places = sorted(o.place for o in law.outliers if o.place > law.support[-1, 1])
    spikes = values[:, values.shape[1] - len(places) :]
    edges = _edges(law, log)
    shares = np.stack([np.histogram(v[: v.size - len(places)], edges)[0] for v in values]) / n
    width = np.diff(np.log10(edges)) if log else np.diff(edges)
    inside = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(INSIDE) + 0.5) / INSIDE
    mass = law.density(inside).mean(axis=1) * np.diff(edges)
    centre = np.sqrt(edges[1:] * edges[:-1]) if log else 0.5 * (edges[1:] + edges[:-1])
    se = shares.std(axis=0, ddof=1) / np.sqrt(len(values))
    bulk = Series(
        "bulk", 0, centre, mass / width, shares.mean(axis=0) / width, se / width, np.full(BINS, np.nan)
    )
    found = tuple(
        Spike("signal", place, float(s.mean()), float(s.std(ddof=1) / np.sqrt(s.size)))
        for place, s in zip(places, spikes.T, strict=True)
    )
    y = "density per decade" if log else "density"
    return Panel(title, "eigenvalue", y, (bulk,), "x" if log else "", spikes=found)


def _edges(law: Spectrum, log: bool) -> Array:
    low, high = law.support[0, 0], law.support[-1, 1]
    return np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)


FIGURE = Figure("spectrum", "Spectra with spikes", Plan(1024, 8), Plan(384, 12), panels, caption)
