"""The picture on a nonlinearity's card: f with its linear part, and the power by Hermite degree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from resolvent.nonlinearity import Nonlinearity
from resolvent.plot.files import save

DEGREES = 8


def plot_nonlinearity(f: Nonlinearity, path: Path) -> None:
    """Draw f over [-4, 4] beside a0 + a1 t, and the share of E f^2 of each Hermite degree."""
    a, t = f.coefficients(), np.linspace(-4.0, 4.0, 801)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(t, f.evaluate(t), color="#0072B2", label=f.name)
    left.plot(t, a.a0 + a.a1 * t, color="#D55E00", linestyle="--", label="linear part a0 + a1 t")
    left.set_xlabel("t")
    left.set_ylabel("f(t)")
    left.legend(frameon=False, fontsize=8)
    shares = np.array([f.hermite(k) ** 2 for k in range(DEGREES)]) / (a.nu or 1.0)
    right.bar(np.arange(DEGREES), shares, color=["#D55E00" if k == 1 else "#0072B2" for k in range(DEGREES)])
    right.set_xlabel("Hermite degree")
    right.set_ylabel("share of the power E f^2")
    save(figure, path)
