"""Records that the engine returns: a limit with its certificate, a measurement, a spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resolvent.equivalents.dyson import Array


class ConvergenceError(ArithmeticError):
    """No certified solution: the fixed point was not reached, or only on a branch that is not the limit."""


@dataclass(frozen=True)
class Value:
    """A limit: `value` with the residual of its fixed point, the continuation steps, and whether it is
    certified.

    All have the shape of the parameters. Where `converged` is False the value is NaN.
    """

    value: Array
    residual: Array
    iterations: Array
    converged: Array

    def __float__(self) -> float:
        return float(self._real())

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.array(self.value, dtype=dtype, copy=copy)  # type: ignore[call-overload, no-any-return]

    def __str__(self) -> str:
        state = "converged" if np.all(self.converged) else f"{np.sum(~self.converged)} not converged"
        return f"{self.value} ({state}, residual {np.max(self.residual, initial=0.0):.1e})"

    def _real(self) -> Array:
        if np.ndim(self.value):
            raise TypeError(f"only a single value can be a float, got shape {np.shape(self.value)}")
        if not self.converged:
            raise ConvergenceError(f"no certified value (residual {float(self.residual):.1e})")
        return np.real(self.value) if np.imag(self.value) == 0 else self.value


@dataclass(frozen=True)
class Measurement:
    """Mean and standard error over independent draws at size n, beside the limit."""

    mean: float
    se: float
    draws: int
    n: int
    predicted: Value

    @property
    def z(self) -> float:
        """Difference of measurement and limit in standard errors."""
        return (self.mean - float(self.predicted)) / self.se

    def __str__(self) -> str:
        measured = f"measured {self.mean:.6g} +- {self.se:.2g} (n {self.n}, {self.draws} draws)"
        return f"{measured}, limit {float(self.predicted):.6g}"


@dataclass(frozen=True)
class Spectrum:
    """Support of a limiting spectral law: `edges` (k, 2) of the bulks, `atoms` {position: mass}, and the
    total mass.

    The mass, integral of the density plus atoms, certifies that nothing was missed: it should be one.
    """

    edges: Array
    atoms: dict[float, float]
    mass: float

    def __str__(self) -> str:
        bulks = ", ".join(f"[{a:.6g}, {b:.6g}]" for a, b in self.edges)
        atoms = "".join(f", mass {mass:.6g} at {at:.6g}" for at, mass in self.atoms.items())
        return f"bulk {bulks or 'none'}{atoms} (total mass {self.mass:.6f})"
