"""A small curve for the terminal, in braille dots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WIDTH, HEIGHT, REACH = 48, 10, 4.0
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def draw(f: Callable[[Array], Array]) -> str:
    """f over [-4, 4], scaled to its range there, with the range at the side."""
    t = np.linspace(-REACH, REACH, 2 * WIDTH)
    values = f(t)
    low, high = float(values.min()), float(values.max())
    span = high - low or 1.0
    rows = np.rint((high - values) / span * (4 * HEIGHT - 1)).astype(int)
    cells = np.zeros((HEIGHT, WIDTH), dtype=int)
    for column, row in enumerate(rows):
        cells[row // 4, column // 2] |= DOTS[row % 4, column % 2]
    lines = ["".join(chr(0x2800 + cell) for cell in line) for line in cells]
    lines[0] += f"  {high:.3g}"
    lines[-1] += f"  {low:.3g}"
    return "\n".join([*lines, f"{-REACH:g}{'t':^{WIDTH - 4}}{REACH:g}"])
