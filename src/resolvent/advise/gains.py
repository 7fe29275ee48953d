"""What more alignment, signal or tokens would bring: differences of two predictions for a stated step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from resolvent.advise.candidates import Candidate, attention
from resolvent.setting import Setting, Weights


@dataclass(frozen=True)
class Gain:
    """What changes by how much, and the candidate before and after: a gain is after less before."""

    step: str
    before: Candidate
    after: Candidate

    @property
    def change(self) -> dict[str, float]:
        """Change of the errors: train and test at the setting's ridge, best_test at each one's best ridge."""
        pairs = {
            "train": (self.before.equal.train, self.after.equal.train),
            "test": (self.before.equal.test, self.after.equal.test),
            "best_test": (self.before.best.test, self.after.best.test),
        }
        return {name: float(after - before) for name, (before, after) in pairs.items()}

    def as_dict(self) -> dict[str, object]:
        """{"step", "train", "test", "best_test"}."""
        return {"step": self.step, **self.change}


def gains(setting: Setting, before: Candidate, p: int | None = None) -> list[Gain]:
    """Alignment + 1 (for weights that are none or aligned), snr + 1, and twice the tokens at the same p."""
    tokens = setting.tokens
    steps = {
        "snr + 1": replace(setting, tokens=replace(tokens, snr=tokens.snr + 1.0)),
        "twice the tokens": replace(setting, tokens=replace(tokens, ratio=0.5 * tokens.ratio)),
    }
    align = getattr(setting.head.weights, "align", None)
    if align is not None or not np.any(setting.gram[1:, 1:]):
        more = Weights.aligned((align or 0.0) + 1.0)
        steps = {"align + 1": replace(setting, weights=more), **steps}
    return [Gain(step, before, attention(changed, p)) for step, changed in steps.items()]
