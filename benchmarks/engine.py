"""Time the attention pencil, one ridge and a thousand together. Run: python benchmarks/engine.py."""

from time import perf_counter

import numpy as np

from resolvent.engine import Dim, Gaussian, Wigner, equivalent, eye, inv, symbols

n, p = Dim("n"), Dim("p")
gamma, a1, sigma = symbols("gamma a1 sigma")
Z, W = Gaussian("Z", p, n), Wigner("W", n, 1 / p)
K = a1 * (Z.T @ Z / p - eye(n)) + sigma * W

start = perf_counter()
eq = equivalent(inv(gamma * eye(n) + K.T @ Z.T @ Z @ K / n), {p / n: 0.5})
eq.trace(gamma=0.1, a1=0.6, sigma=0.17)
print(f"compile and first value   {1e3 * (perf_counter() - start):8.2f} ms")

times = []
for _ in range(50):
    start = perf_counter()
    eq.trace(gamma=0.1, a1=0.6, sigma=0.17)
    times.append(perf_counter() - start)
print(f"one value, best of 50     {1e3 * min(times):8.2f} ms")
print(f"one value, median         {1e3 * np.median(times):8.2f} ms")

ridges = np.logspace(-3, 1, 1000)
times = []
for _ in range(3):
    start = perf_counter()
    found = eq.trace(gamma=ridges, a1=0.6, sigma=0.17)
    times.append(perf_counter() - start)
print(f"1000 ridges, best of 3    {1e3 * min(times):8.2f} ms, all converged: {found.converged.all()}")
