"""Pretrained attention heads: one reader per file format, one record for a head, one analysis."""

from resolvent.checkpoints.head import Head
from resolvent.checkpoints.layouts import LAYOUTS, Layout
from resolvent.checkpoints.reading import open_checkpoint, read_heads

__all__ = ["LAYOUTS", "Head", "Layout", "open_checkpoint", "read_heads"]
