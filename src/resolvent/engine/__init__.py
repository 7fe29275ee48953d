"""Write a model of random matrices, get its deterministic equivalent.

>>> from resolvent.engine import Dim, Gaussian, Symbol, equivalent, eye, inv
>>> n, p, gamma = Dim("n"), Dim("p"), Symbol("gamma")
>>> Z = Gaussian("Z", p, n)
>>> eq = equivalent(inv(gamma * eye(n) + Z.T @ Z / n), ratios={p / n: 0.5})
>>> round(float(eq.trace(gamma=0.1)), 6)
5.741657
"""

from resolvent.engine.entrywise import entrywise
from resolvent.engine.equivalent import Equivalent, equivalent
from resolvent.engine.expression import eye, inv
from resolvent.engine.letters import Diagonal, Elliptic, Gaussian, Given, Wigner
from resolvent.engine.pencil import Pencil
from resolvent.engine.result import ConvergenceError, Measurement, Spectrum, Value
from resolvent.engine.scalar import Dim, Scalar, Symbol, sqrt, symbols
from resolvent.engine.vectors import Vector, vectors

__all__ = [
    "ConvergenceError",
    "Diagonal",
    "Dim",
    "Elliptic",
    "Equivalent",
    "Gaussian",
    "Given",
    "Measurement",
    "Pencil",
    "Scalar",
    "Spectrum",
    "Symbol",
    "Value",
    "Vector",
    "Wigner",
    "entrywise",
    "equivalent",
    "eye",
    "inv",
    "sqrt",
    "symbols",
    "vectors",
]
