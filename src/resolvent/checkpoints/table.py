"""The summaries of a model's heads as one table, with their shares of a signal where tokens were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from resolvent.checkpoints.analysis import HeadSummary
from resolvent.checkpoints.signal import SignalShare

LEADING = (1, 4, 16)  # singular values whose share of |M|_F^2 is shown
BEYOND = 3.0  # times chance, from which on an alignment counts


@dataclass(frozen=True)
class HeadTable:
    """Heads in order; `shares` belong to them one by one, or are empty."""

    source: str
    heads: Sequence[HeadSummary]
    shares: Sequence[SignalShare] = ()

    def as_dict(self) -> dict[str, object]:
        """{"source", "heads": [{"layer", "head", ...}]}; a head's share of the signal is its "signal"."""
        rows: list[dict[str, Any]] = [summary.to_dict() for summary in self.heads]
        for row, share in zip(rows, self.shares, strict=False):
            row["signal"] = {k: v for k, v in asdict(share).items() if k not in ("layer", "head")}
        return {"source": self.source, "heads": rows}

    def __str__(self) -> str:
        shares = [_share(share) for share in self.shares] or [""] * len(self.heads)
        header = _HEADER + (_SHARES if self.shares else "")
        rows = [_row(head) + share for head, share in zip(self.heads, shares, strict=True)]
        return "\n".join([self._title(), "", header, *rows, "", *self._remarks()])

    def _title(self) -> str:
        first = self.heads[0]
        folded = ", norm gain folded in" if first.gain else ""
        size = f"{first.d_head} of {first.d_model} dimensions"
        return f"{self.source}: {len(self.heads)} heads ({first.kind}, {size}){folded}"

    def _remarks(self) -> list[str]:
        first, count = self.heads[0], sum(abs(head.beyond_chance) > BEYOND for head in self.heads)
        remarks = [
            f"align = tr M/(sqrt(d_head) |M|), here beyond {BEYOND:g} x chance in {count} of "
            f"{len(self.heads)}; rho = tr M^2/|M|^2;",
            f"misfit = |M - c I - rank {first.fit_rank}|/|M| at its best; for c I alone at least "
            f"{first.floor:.3f}.",
        ]
        if self.shares:
            remarks.append(
                f"Share of the signal in the top {self.shares[0].count} keys and queries, by chance, and "
                f"p-value corrected over all heads."
            )
        return remarks + [f"{note}." for note in dict.fromkeys(sum((head.notes for head in self.heads), ()))]


_HEADER = (
    f"{'layer':>5} {'head':>4} {'|M|':>8} {'trace':>8} {'align':>6} {'/chance':>7} {'st.rank':>7} "
    + " ".join(f"{f'top {k}':>6}" for k in LEADING)
    + f" {'rho':>6} {'c':>8} {'misfit':>6}"
)
_SHARES = " ".join([""] + [f"{name:>7} {'chance':>7} {'p':>6}" for name in ("keys", "queries")])


def _row(head: HeadSummary) -> str:
    energy = [head.energy[i] if (i := k.bit_length() - 1) < len(head.energy) else 1.0 for k in LEADING]
    return (
        f"{head.layer:5} {head.head:4} {head.norm:8.3g} {head.trace:8.3g} {head.alignment:+6.2f} "
        f"{head.beyond_chance:+7.1f} {head.stable_rank:7.1f} "
        + " ".join(f"{share:6.1%}" for share in energy)
        + f" {head.symmetry:+6.2f} {head.shift:+8.2g} {head.misfit:6.3f}"
    )


def _share(share: SignalShare) -> str:
    return (
        f" {share.key:7.2%} {share.expected_key:7.2%} {share.adjusted_key:6.3f}"
        f" {share.query:7.2%} {share.expected_query:7.2%} {share.adjusted_query:6.3f}"
    )
