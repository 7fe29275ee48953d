"""The tokens: X = mu y' + Z, p x n, with labels y in {-1, +1} and iid noise."""

from __future__ import annotations

from dataclasses import dataclass

from resolvent.setting.ranges import NON_NEGATIVE, POSITIVE, Array, Range, number


@dataclass(frozen=True)
class Tokens:
    """Tokens X = mu y' + Z with Gaussian noise; every field may be an array.

    ratio
        p/n, positive.
    snr
        |mu|^2, zero or positive.
    label_mean
        Mean of the labels, strictly between -1 and 1; labels are drawn independently.
    label_noise
        Probability, up to 0.5, that a target differs from the label that the token carries; 0.5 makes
        targets random.

    >>> Tokens(ratio=0.5, snr=2.0).target_overlap
    1.0
    """

    ratio: Array | float = 0.5
    snr: Array | float = 1.0
    label_mean: Array | float = 0.0
    label_noise: Array | float = 0.0

    def __post_init__(self) -> None:
        checks = {
            "ratio": POSITIVE,
            "snr": NON_NEGATIVE,
            "label_mean": Range(-1.0, 1.0, low_included=False, high_included=False),
            "label_noise": Range(0.0, 0.5),
        }
        for name, allowed in checks.items():
            object.__setattr__(self, name, number(name, getattr(self, name), allowed))

    @property
    def target_overlap(self) -> Array | float:
        """kappa = t'y/n = 1 - 2 label_noise of the target t and the labels y."""
        return 1.0 - 2.0 * self.label_noise
