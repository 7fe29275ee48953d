"""Exact simulation: sample tokens, build features, solve the probe, average over draws."""

from resolvent.callable_module import call_as
from resolvent.simulate.draws import Interrupted
from resolvent.simulate.measure import Average, Errors, Measurement, simulate

__all__ = ["Average", "Errors", "Interrupted", "Measurement", "simulate"]

call_as(simulate, __name__)
