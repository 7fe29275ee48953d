"""Pictures: measured points with error bars over predicted curves."""

from resolvent.plot.card import plot_nonlinearity
from resolvent.plot.comparison import plot_comparison, plot_token_comparison
from resolvent.plot.files import checked_path
from resolvent.plot.phase import plot_phase
from resolvent.plot.size import plot_sizes

__all__ = [
    "checked_path",
    "plot_comparison",
    "plot_nonlinearity",
    "plot_phase",
    "plot_sizes",
    "plot_token_comparison",
]
