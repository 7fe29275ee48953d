"""Pretrained attention heads: one reader per file format, one record for a head, and what its M looks
like."""

from resolvent.checkpoints.analysis import HeadSummary, singular_directions, summarise_heads
from resolvent.checkpoints.head import Head
from resolvent.checkpoints.layouts import LAYOUTS, Layout
from resolvent.checkpoints.reading import open_checkpoint, read_heads
from resolvent.checkpoints.signal import SignalShare, signal_direction, signal_shares
from resolvent.checkpoints.table import HeadTable
from resolvent.checkpoints.tensors import Checkpoint

__all__ = [
    "LAYOUTS",
    "Checkpoint",
    "Head",
    "HeadSummary",
    "HeadTable",
    "Layout",
    "SignalShare",
    "open_checkpoint",
    "read_heads",
    "signal_direction",
    "signal_shares",
    "singular_directions",
    "summarise_heads",
]
