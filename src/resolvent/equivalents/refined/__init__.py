"""The refined equivalent: right at real sizes and on real tokens, by conditioning on classes of tokens."""

from resolvent.equivalents.refined.adaptation import Adapted, adapted_classes
from resolvent.equivalents.refined.classes import Classes
from resolvent.equivalents.refined.errors import RefinedErrors, refined_errors
from resolvent.equivalents.refined.gaussian import gaussian_classes
from resolvent.equivalents.refined.linear import RefinedLinearErrors, refined_linear_errors
from resolvent.equivalents.refined.tokens import token_classes
from resolvent.nonlinearity import Softmax

__all__ = [
    "Adapted",
    "Classes",
    "RefinedErrors",
    "RefinedLinearErrors",
    "Softmax",
    "adapted_classes",
    "gaussian_classes",
    "refined_errors",
    "refined_linear_errors",
    "token_classes",
]
