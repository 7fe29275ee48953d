"""The user's own labelled tokens: read, bring to the model's convention, estimate the model's parameters.

    read_tokens(path) -> LabelledTokens,  standardise(...) -> StandardTokens,  estimate(...) -> TokenEstimate

Importing this package needs NumPy alone.
"""

from resolvent.dataset.assumptions import broken_assumptions
from resolvent.dataset.demo import demo_tokens
from resolvent.dataset.estimation import TokenEstimate, estimate
from resolvent.dataset.labelled import LabelledTokens
from resolvent.dataset.noise import NoiseSpectrum
from resolvent.dataset.reading import read_token_bytes, read_tokens
from resolvent.dataset.standard import Standardiser, StandardTokens, standardise

__all__ = [
    "LabelledTokens",
    "NoiseSpectrum",
    "StandardTokens",
    "Standardiser",
    "TokenEstimate",
    "broken_assumptions",
    "demo_tokens",
    "estimate",
    "read_token_bytes",
    "read_tokens",
    "standardise",
]
