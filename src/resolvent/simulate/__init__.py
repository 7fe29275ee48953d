"""Exact simulation: sample tokens, build features, solve the probe, average over draws."""

from resolvent.simulate.measure import Average, Errors, Measurement, simulate

__all__ = ["Average", "Errors", "Measurement", "simulate"]
