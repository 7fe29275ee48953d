"""Predicted beside measured, attention beside linear regression: on synthetic and on given tokens, with given
heads.
"""

from resolvent.callable_module import call_as
from resolvent.compare.comparison import Comparison, compare
from resolvent.compare.gains import GainTable, HeadGain, head_gains
from resolvent.compare.heads import HeadComparison, compare_head, head_setting, query_signal
from resolvent.compare.own_tokens import TokenComparison, compare_tokens

__all__ = [
    "Comparison",
    "GainTable",
    "HeadComparison",
    "HeadGain",
    "TokenComparison",
    "compare",
    "compare_head",
    "compare_tokens",
    "head_gains",
    "head_setting",
    "query_signal",
]

call_as(compare, __name__)
