"""compare: the limits of a setting beside exact simulation, and who wins."""

from __future__ import annotations

from dataclasses import dataclass

from resolvent.compare.verdict import Winner, ahead, reason, table
from resolvent.predict import Prediction, predict
from resolvent.setting import Setting
from resolvent.simulate import Interrupted, Measurement, simulate
from resolvent.simulate.measure import Average

METHODS = ("attention", "linear")
ERRORS = ("train", "test")


@dataclass(frozen=True)
class Comparison:
    """A prediction and a measurement of the same setting, at one ridge."""

    prediction: Prediction
    measurement: Measurement

    @property
    def z(self) -> dict[str, dict[str, float]]:
        """(measured - predicted)/standard error, by method and error."""
        return {method: {error: self._z(method, error) for error in ERRORS} for method in METHODS}

    @property
    def winner(self) -> dict[str, Winner]:
        """By error: the method measured lower, or "tie" below two paired standard errors."""
        return {error: ahead(getattr(self.measurement.difference, error)) for error in ERRORS}

    @property
    def reason(self) -> str:
        """Why the loser loses, in words."""
        return reason(self.prediction.setting, self.winner)

    @property
    def cautions(self) -> list[str]:
        """Why the limit may be far off at this size."""
        return self.prediction.cautions

    def _z(self, method: str, error: str) -> float:
        measured: Average = getattr(getattr(self.measurement, method), error)
        predicted = float(getattr(getattr(self.prediction, method), error))
        return (float(measured.mean) - predicted) / float(measured.se) if measured.se > 0.0 else float("nan")

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent compare --json`."""
        predicted, measured = self.prediction.as_dict(), self.measurement.as_dict()
        return {
            "setting": measured["setting"],
            "nonlinearity": predicted["nonlinearity"],
            "solver": predicted["solver"],
            "predicted": {key: predicted.get(key) for key in (*METHODS, "refined")},
            "measured": {method: measured[method] for method in METHODS},
            "z": self.z,
            "winner": self.winner,
            "reason": self.reason,
            "cautions": self.cautions,
        }

    def __str__(self) -> str:
        m = self.measurement
        head = f"n = {m.n}, p = {m.p}, {m.draws} draws, ridge {self.prediction.setting.ridge:g}"
        return "\n\n".join([head, table(self.as_dict()), self.reason, *self.cautions])


def compare(
    setting: Setting, *, n: int | None = None, draws: int = 20, seed: int = 0, progress: bool = False
) -> Comparison:
    """Predict a setting and measure it by exact simulation at n tokens and p = round(ratio n).

    The setting holds single numbers. The prediction takes a kept diagonal and the mean of an uncentred f at
    that p. `draws`, `seed` and `progress` as in `simulate`; at least 2 draws are needed.

    Raises what `predict` and `simulate` raise.

    >>> from resolvent import Setting, Weights
    >>> c = compare(Setting(weights=Weights.aligned(1.0)), n=200, draws=10)
    >>> sorted(c.as_dict()["winner"])
    ['test', 'train']
    """
    if setting.shape:
        raise ValueError(f"compare takes one setting, got arrays of shape {setting.shape}")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}")
    try:
        measurement = simulate(setting, n=n, draws=draws, seed=seed, progress=progress)
    except Interrupted as stop:
        if isinstance(stop.record, Measurement):
            stop.record = Comparison(predict(setting, p=stop.record.p), stop.record)
        raise
    return Comparison(predict(setting, p=measurement.p), measurement)
