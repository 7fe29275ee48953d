"""Predicted beside measured, attention beside linear regression, on synthetic and on given tokens."""

from resolvent.callable_module import call_as
from resolvent.compare.comparison import Comparison, compare
from resolvent.compare.own_tokens import TokenComparison, compare_tokens

__all__ = ["Comparison", "TokenComparison", "compare", "compare_tokens"]

call_as(compare, __name__)
