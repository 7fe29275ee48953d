"""The curve in braille dots: every column holds the dot of its value."""

from __future__ import annotations

import numpy as np
import pytest

from resolvent.nonlinearity import nonlinearity
from resolvent.plot.terminal import DOTS, HEIGHT, WIDTH, draw


def dots(text: str) -> np.ndarray:
    """The drawing as a matrix of dots, 4 x 2 to a character."""
    cells = np.array([[ord(c) - 0x2800 for c in line[:WIDTH]] for line in text.splitlines()[:HEIGHT]])
    return np.block([[(DOTS & cell) > 0 for cell in row] for row in cells])


@pytest.mark.parametrize("f", ["identity", "tanh", "relu", "sign", "exp", "cos", "hermite3"])
def test_every_column_holds_its_value(f):
    found = nonlinearity(f)
    values = found(np.linspace(-4.0, 4.0, 2 * WIDTH))
    picture = dots(draw(found.evaluate))
    assert picture.sum(axis=0).tolist() == [1] * (2 * WIDTH)
    heights = 4 * HEIGHT - 1 - picture.argmax(axis=0)
    wanted = (values - values.min()) / np.ptp(values) * (4 * HEIGHT - 1)
    assert np.abs(heights - wanted).max() <= 0.5 + 1e-9


def test_its_size_and_its_range():
    lines = draw(nonlinearity("identity").evaluate).splitlines()
    assert len(lines) == HEIGHT + 1
    assert lines[0].split()[-1] == "4"
    assert lines[HEIGHT - 1].split()[-1] == "-4"
    assert lines[HEIGHT].split() == ["-4", "t", "4"]
    assert len(lines[HEIGHT]) <= WIDTH + 1


def test_a_constant():
    assert dots(draw(np.zeros_like)).sum(axis=0).tolist() == [1] * (2 * WIDTH)
