"""Small sweeps that several tests run; as a program, one that can be killed."""

import sys

from resolvent import Setting, Tokens, Weights, sweep

SETTING = Setting(Tokens(0.5, 2.0), Weights.aligned(0.5))
OVER = {"snr": [0.0, 1.0, 2.0, 4.0], "ridge": [0.01, 0.1, 1.0], "f": ["tanh", "relu"]}
SIZES = {"n": 40, "draws": 3, "seed": 7}
CELLS = 8  # 4 snr x 2 f

MANY = {"snr": [0.1 * k for k in range(100)], "ridge": [0.01, 1.0]}


def small(path=None, **options):
    return sweep(SETTING, OVER, simulate=SIZES, path=path, **options)


def many(path=None, **options):
    """100 cells of some milliseconds each."""
    return sweep(SETTING, MANY, simulate={"n": 60, "draws": 4, "seed": 3}, path=path, **options)


if __name__ == "__main__":
    many(sys.argv[1], workers=int(sys.argv[2]))
