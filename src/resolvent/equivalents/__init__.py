"""Deterministic equivalents: arrays in, arrays out."""

from resolvent.equivalents.errors import AttentionErrors, attention_errors
from resolvent.equivalents.factors import Factors, reduce_factors, reduce_matrix
from resolvent.equivalents.linear import LinearErrors, linear_errors
from resolvent.equivalents.softmax import SoftmaxCoefficients, softmax_coefficients
from resolvent.equivalents.weights import WeightsErrors, weights_errors

__all__ = [
    "AttentionErrors",
    "Factors",
    "LinearErrors",
    "SoftmaxCoefficients",
    "WeightsErrors",
    "attention_errors",
    "linear_errors",
    "reduce_factors",
    "reduce_matrix",
    "softmax_coefficients",
    "weights_errors",
]
