"""Draw docs/double_descent.svg: variance of random-feature regression against the number of features."""

from pathlib import Path

import matplotlib
import numpy as np

from resolvent.engine import Dim, Gaussian, equivalent, eye, inv, sqrt, symbols

matplotlib.use("svg")
from matplotlib import pyplot

n, p, d = Dim("n"), Dim("p"), Dim("d")
gamma, psi, mu1, mu = symbols("gamma psi mu1 mu")
X, theta, noise = Gaussian("X", n, d), Gaussian("theta", p, d), Gaussian("noise", n, p)
F = (mu1 * (X @ theta.T) / sqrt(d) + mu * noise) / sqrt(d)
R = inv(gamma * eye(p) + F.T @ F)
noisy = R @ F.T @ F @ R
variance = equivalent(mu1**2 * (theta @ theta.T @ noisy) / d + mu**2 * noisy, {p / d: psi, n / d: 2.0})

features = np.geomspace(0.2, 20, 121)
figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
for ridge in (1e-4, 1e-2, 1.0):
    found = variance.trace(psi=features, gamma=ridge, mu1=0.5, mu=0.3)
    axes.loglog(features / 2, features * found.value, label=f"ridge {ridge:g}")
axes.axvline(1, color="0.8", zorder=0)
axes.set(xlabel="features per sample", ylabel="variance of the test error")
axes.legend(frameon=False)
figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
