"""Deterministic equivalents: arrays in, arrays out."""

from resolvent.equivalents.errors import AttentionErrors, attention_errors
from resolvent.equivalents.linear import LinearErrors, linear_errors

__all__ = ["AttentionErrors", "LinearErrors", "attention_errors", "linear_errors"]
