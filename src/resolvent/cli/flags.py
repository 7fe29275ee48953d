"""The flags that write down a setting and a size, shared by the commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from resolvent.nonlinearity import nonlinearity
from resolvent.setting import Setting, Tokens, Weights

TOKENS = Group("Tokens", sort_key=1)
WEIGHTS = Group("Weights", sort_key=2)
PROBE = Group("Attention and probe", sort_key=3)
SIZE = Group("Size", sort_key=4)
OUTPUT = Group("Output", sort_key=5)

Json = Annotated[bool, Parameter(name="--json", negative="", group=OUTPUT, help="Print one JSON object.")]


def _flag(group: Group, text: str) -> Parameter:
    return Parameter(group=group, help=text, negative="", allow_leading_hyphen=True)


@Parameter(name="*")
@dataclass(frozen=True)
class SettingFlags:
    """Everything that a setting holds."""

    f: Annotated[str, _flag(PROBE, 'Nonlinearity: a name, or an expression in t such as "t*tanh(t)".')] = (
        "tanh"
    )
    centred: Annotated[
        bool,
        Parameter(group=PROBE, help="Remove the mean of f, or keep it.", negative="--uncentred"),
    ] = True
    ratio: Annotated[float, _flag(TOKENS, "p/n.")] = 0.5
    snr: Annotated[float, _flag(TOKENS, "|mu|^2.")] = 1.0
    ridge: Annotated[float, _flag(PROBE, "Penalty of the probe; 0 is the ridgeless limit.")] = 0.1
    align: Annotated[float | None, _flag(WEIGHTS, "w_K = w_Q = align times mu; 0 by default.")] = None
    key_norm: Annotated[float, _flag(WEIGHTS, "|w_K|.")] = 0.0
    query_norm: Annotated[float, _flag(WEIGHTS, "|w_Q|.")] = 0.0
    key_cos: Annotated[float, _flag(WEIGHTS, "Cosine of w_K and mu.")] = 0.0
    query_cos: Annotated[float, _flag(WEIGHTS, "Cosine of w_Q and mu.")] = 0.0
    key_query_cos: Annotated[
        float | None,
        _flag(WEIGHTS, "Cosine of w_K and w_Q; by default their parts outside mu are orthogonal."),
    ] = None
    label_mean: Annotated[float, _flag(TOKENS, "Mean of the labels.")] = 0.0
    label_noise: Annotated[float, _flag(TOKENS, "Probability that a target is flipped.")] = 0.0
    skip: Annotated[float, _flag(PROBE, "Weight of a residual connection.")] = 0.0
    keep_diagonal: Annotated[bool, _flag(PROBE, "Let tokens attend to themselves.")] = False

    def setting(self) -> Setting:
        """The setting, validated."""
        try:
            nonlinearity(self.f, centred=self.centred).coefficients()
        except ValueError as error:
            raise ValueError(f"--f: {error}") from error
        tokens = Tokens(self.ratio, self.snr, self.label_mean, self.label_noise)
        return Setting(
            tokens, self.weights(), self.f, self.centred, self.ridge, self.skip, self.keep_diagonal
        )

    def weights(self) -> Weights:
        """From --align or from norms and cosines."""
        angles = self.key_norm, self.query_norm, self.key_cos, self.query_cos
        if self.align is not None:
            return Weights(self.align, *angles, self.key_query_cos or 0.0)
        if not any(angles) and self.key_query_cos is None:
            return Weights.aligned(0.0)
        key_norm, query_norm, key_cos, query_cos = angles
        return Weights.from_angles(
            key_norm=key_norm,
            query_norm=query_norm,
            key_cos=key_cos,
            query_cos=query_cos,
            key_query_cos=self.key_query_cos,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class SizeFlags:
    """How much is simulated."""

    n: Annotated[int, _flag(SIZE, "Tokens; p = round(ratio n).")] = 1024
    draws: Annotated[int, _flag(SIZE, "Independent repetitions.")] = 20
    seed: Annotated[int, _flag(SIZE, "The integer that decides all randomness.")] = 0
