"""Advice: which nonlinearity, which ridge, how much alignment, or plain linear regression."""

from resolvent.advise.advice import Advice, advise
from resolvent.advise.alignment import WinningAlignment, winning_alignment
from resolvent.advise.candidates import Candidate, Errors
from resolvent.advise.gains import Gain
from resolvent.advise.lora import Adaptation, LoraAdvice, advise_lora
from resolvent.advise.multihead import Architecture, ArchitectureAdvice, architecture
from resolvent.advise.optimum import OptimalLinearPart, optimal_linear_part
from resolvent.advise.own_tokens import TokenAdvice, advise_tokens
from resolvent.callable_module import call_as

__all__ = [
    "Adaptation",
    "Advice",
    "Architecture",
    "ArchitectureAdvice",
    "Candidate",
    "Errors",
    "Gain",
    "LoraAdvice",
    "OptimalLinearPart",
    "TokenAdvice",
    "WinningAlignment",
    "advise",
    "advise_lora",
    "advise_tokens",
    "architecture",
    "optimal_linear_part",
    "winning_alignment",
]

call_as(advise, __name__)
