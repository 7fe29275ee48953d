"""Finite size: how far the limit is from simulation at several n, and from which n on it is good enough."""

from resolvent.callable_module import call_as
from resolvent.convergence.rate import Rate, fit_rate
from resolvent.convergence.table import Convergence, convergence

__all__ = ["Convergence", "Rate", "convergence", "fit_rate"]

call_as(convergence, __name__)
