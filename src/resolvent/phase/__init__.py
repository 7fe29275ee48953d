"""Phase diagrams: where attention beats linear regression, and the curves between."""

from resolvent.callable_module import call_as
from resolvent.phase.diagram import Axis, Phase, phase

__all__ = ["Axis", "Phase", "phase"]

call_as(phase, __name__)
