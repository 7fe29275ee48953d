"""The figures of the theory: points measured here, with error bars, over predicted curves.

    draw_figure("aligned", "pictures") -> pictures/aligned.png, .pdf and .csv

Each caption says the setting and, from the numbers of the figure, whether the paper's claim holds (Liao,
Liu, Hou, Zou, Ling, arXiv 2506.18656).
"""

from resolvent.figures.record import Figure, Plan
from resolvent.figures.registry import FIGURES
from resolvent.figures.render import Drawn, draw_figure

__all__ = ["FIGURES", "Drawn", "Figure", "Plan", "draw_figure"]
