"""Laws of the noise as a user writes them down: NAME:NUMBER for the entries and for the covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from resolvent.equivalents.arguments import numbers
from resolvent.laws import EntryLaw, Population, autoregressive, entry_law, population, power_law, spiked

DIMENSIONS = 1000  # at which a power law is tabulated
FORMS = "power-law:EXPONENT, ar1:CORRELATION or spiked:LEVEL:SHARE[,LEVEL:SHARE...]"
LARGEST_MATRIX = 10_000


@dataclass(frozen=True)
class Covariance:
    """Eigenvalues of the noise covariance, and what it was called."""

    name: str
    population: Population

    def __str__(self) -> str:
        return self.name


def entries(noise: str) -> EntryLaw:
    """The law of the noise entries that `noise` names.

    >>> entries("student-t:10").kurtosis
    4.0
    """
    if not isinstance(noise, str):
        raise TypeError(f"noise must be the name of a law, got {noise!r}")
    name, colon, degrees = noise.partition(":")
    return entry_law(name, _number("noise", noise, degrees) if colon else None)


def given_covariance(value: Covariance | str | ArrayLike | Population) -> Covariance:
    """The covariance that a name, a matrix, its eigenvalues or a `Population` stands for.

    >>> round(given_covariance("ar1:0.5").population.moment(2), 4)
    1.6667
    """
    match value:
        case Covariance():
            return value
        case Population():
            return _named(value)
        case str():
            return Covariance(value, _spelled(value))
    array = numbers("covariance", value)
    if array.ndim == 2:
        array = _eigenvalues(array)
    return _named(population(array))


def _named(levels: Population) -> Covariance:
    return Covariance(f"{levels.levels.size} eigenvalues, tr Sigma^2/p {levels.moment(2):.6g}", levels)


def _spelled(text: str) -> Population:
    name, _, rest = text.partition(":")
    match name:
        case "power-law":
            return power_law(_number("covariance", text, rest), DIMENSIONS)
        case "ar1":
            return autoregressive(_number("covariance", text, rest))
        case "spiked":
            pairs = [pair.split(":") for pair in rest.split(",")]
            if all(len(pair) == 2 for pair in pairs):
                return spiked(
                    {_number("covariance", text, a): _number("covariance", text, b) for a, b in pairs}
                )
    raise ValueError(f"covariance must be {FORMS}, got {text!r}")


def _number(name: str, text: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise ValueError(f"{name} must hold a number after the colon, got {text!r}") from None


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
    if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-9):
        raise ValueError(f"covariance must be a symmetric matrix, got shape {matrix.shape}")
    if matrix.shape[0] > LARGEST_MATRIX:
        raise ValueError(
            f"covariance must be at most {LARGEST_MATRIX} x {LARGEST_MATRIX}: give its eigenvalues"
        )
    values = np.linalg.eigvalsh(matrix)
    if values[0] <= 0.0:
        raise ValueError(f"covariance must be positive definite, got the eigenvalue {values[0]:.3g}")
    return values
