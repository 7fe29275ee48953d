"""Grids of settings: predictions in one call, simulations that can be stopped, killed and resumed."""

from resolvent.callable_module import call_as
from resolvent.sweep.journal import DamagedJournal
from resolvent.sweep.run import Stopped, sweep

__all__ = ["DamagedJournal", "Stopped", "sweep"]

call_as(sweep, __name__)
