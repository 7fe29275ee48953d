"""Exact simulation: sample tokens, build features, solve the probe, average over draws."""

from resolvent.callable_module import call_as
from resolvent.simulate.draws import Interrupted
from resolvent.simulate.eigenvalues import eigenvalues
from resolvent.simulate.linearisation import Linearisation, linearisation
from resolvent.simulate.measure import Average, Errors, Measurement, simulate

__all__ = [
    "Average",
    "Errors",
    "Interrupted",
    "Linearisation",
    "Measurement",
    "eigenvalues",
    "linearisation",
    "simulate",
]

call_as(simulate, __name__)
