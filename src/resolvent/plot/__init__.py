"""Pictures: measured points with error bars over predicted curves."""

from resolvent.plot.card import plot_nonlinearity
from resolvent.plot.comparison import plot_comparison, plot_token_comparison
from resolvent.plot.convergence import plot_convergence
from resolvent.plot.files import checked_path
from resolvent.plot.linearisation import plot_linearisation
from resolvent.plot.phase import plot_phase
from resolvent.plot.spectrum import plot_spectrum

__all__ = [
    "checked_path",
    "plot_comparison",
    "plot_convergence",
    "plot_linearisation",
    "plot_nonlinearity",
    "plot_phase",
    "plot_spectrum",
    "plot_token_comparison",
]
