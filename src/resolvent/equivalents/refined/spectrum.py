"""The law of the noise's eigenvalues, in a few nodes.
 The equivalent needs averages of smooth functions of l over the eigenvalues. Gauss quadrature of their
empirical law, from the Lanczos recurrence of diag(l) started at the constant vector (Golub and Welsch), keeps
2 count - 1 moments, the mean and the mean square that scales the scores among them.
 Sample eigenvalues are spread out: around the mean m, that of S^2 exceeds the truth. The shrinkage intensity
rho of Ledoit and Wolf (J. Multivariate Anal. 88, 2004) says by how much, and m + sqrt(1 - rho) (l - m) has
the right second moment. Theory page, section 12.
"""

from __future__ import annotations

import numpy as np

from resolvent.equivalents.averages import Array

NODES = 8


def spectral_nodes(eigenvalues: Array, count: int = NODES) -> tuple[Array, Array]:
    """Nodes and shares, of mean 1, of the law of positive eigenvalues (N,) divided by their mean."""
    law = eigenvalues / eigenvalues.mean()
    basis = [np.full(law.size, law.size**-0.5)]
    diagonal, off = [], []
    while True:
        image = law * basis[-1]
        diagonal.append(float(basis[-1] @ image))
        for vector in [*basis, *basis]:
            image = image - (vector @ image) * vector
        length = float(np.linalg.norm(image))
        if len(diagonal) == count or length <= 1e-12:
            break
        off.append(length)
        basis.append(image / length)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    shares = vectors[0] ** 2
    return nodes / (shares @ nodes), shares


def shrunk_eigenvalues(samples: Array) -> Array:
    """Eigenvalues (p,) of the covariance of the columns of samples (p, n), drawn in to their true spread."""
    p, n = samples.shape
    S = samples @ samples.T / n
    values = np.linalg.eigvalsh(S)
    mean = values.mean()
    spread = ((values - mean) ** 2).mean()
    noise = ((samples**2).sum(axis=0) ** 2).mean() / (n * p) - (values**2).mean() / n
    kept = np.sqrt(max(0.0, 1.0 - noise / spread)) if spread > 0.0 else 0.0
    return np.asarray(np.maximum(mean + kept * (values - mean), 1e-6 * mean))
