"""Entry-wise nonlinearities and their Hermite coefficients."""

from resolvent.nonlinearity.card import Card, card
from resolvent.nonlinearity.correlation import noise_covariance
from resolvent.nonlinearity.moments import Moments
from resolvent.nonlinearity.nonlinearity import (
    Coefficients,
    Nonlinearity,
    known_names,
    nonlinearity,
    polynomial,
)
from resolvent.nonlinearity.softmax import Softmax

__all__ = [
    "Card",
    "Coefficients",
    "Moments",
    "Nonlinearity",
    "Softmax",
    "card",
    "known_names",
    "noise_covariance",
    "nonlinearity",
    "polynomial",
]
