"""The random-matrix theory of attention as a tool: predict, measure and compare.

    from resolvent import Setting, Tokens, Weights, predict, simulate

The model and its main results are those of Liao, Liu, Hou, Zou and Ling, arXiv 2506.18656.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resolvent.advise import advise
    from resolvent.convergence import convergence
    from resolvent.phase import phase
    from resolvent.predict import Prediction, predict
    from resolvent.setting import Setting, Tokens, Weights
    from resolvent.simulate import Measurement, simulate
    from resolvent.spectrum import spectrum
    from resolvent.sweep import sweep

__version__ = "0.1.0"

_HOMES = {
    "Measurement": "resolvent.simulate",
    "Prediction": "resolvent.predict",
    "Setting": "resolvent.setting",
    "Tokens": "resolvent.setting",
    "Weights": "resolvent.setting",
    "advise": "resolvent.advise",
    "convergence": "resolvent.convergence",
    "phase": "resolvent.phase",
    "predict": "resolvent.predict",
    "simulate": "resolvent.simulate",
    "spectrum": "resolvent.spectrum",
    "sweep": "resolvent.sweep",
}

__all__ = [
    "Measurement",
    "Prediction",
    "Setting",
    "Tokens",
    "Weights",
    "__version__",
    "advise",
    "convergence",
    "phase",
    "predict",
    "simulate",
    "spectrum",
    "sweep",
]


def __getattr__(name: str) -> object:
    """Import public names on first use, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'resolvent' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return (
        home if _HOMES[name] == f"{__name__}.{name}" else getattr(home, name)
    )  # a callable module stays itself


def __dir__() -> list[str]:
    return sorted(__all__)
