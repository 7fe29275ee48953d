"""Deterministic equivalents: arrays in, arrays out."""

from resolvent.equivalents.architecture import ArchitectureErrors, architecture_errors
from resolvent.equivalents.covariance import covariance_linear_errors
from resolvent.equivalents.errors import AttentionErrors, attention_errors
from resolvent.equivalents.factors import Factors, reduce_factors, reduce_matrix
from resolvent.equivalents.heads import heads_errors, weighted_heads_errors
from resolvent.equivalents.law import law_errors, law_linear_errors, score_variance
from resolvent.equivalents.linear import LinearErrors, linear_errors
from resolvent.equivalents.probe import ProbeErrors
from resolvent.equivalents.softmax import SoftmaxCoefficients, softmax_coefficients
from resolvent.equivalents.spectrum import Spectrum, attention_spectrum, features_spectrum
from resolvent.equivalents.weights import weights_errors

__all__ = [
    "ArchitectureErrors",
    "AttentionErrors",
    "Factors",
    "LinearErrors",
    "ProbeErrors",
    "SoftmaxCoefficients",
    "Spectrum",
    "architecture_errors",
    "attention_errors",
    "attention_spectrum",
    "covariance_linear_errors",
    "features_spectrum",
    "heads_errors",
    "law_errors",
    "law_linear_errors",
    "linear_errors",
    "reduce_factors",
    "reduce_matrix",
    "score_variance",
    "softmax_coefficients",
    "weighted_heads_errors",
    "weights_errors",
]
