"""Which architecture: multi-head softmax attention at initialisation, its limit law beside exact simulation.

At fixed widths h d_K and h d_V the number of heads leaves the number of parameters alone,

    d (h d_K + G d_K + G d_V) + h d_V d_O,    G = h key-value heads, fewer where they are grouped,

and changes the limit through 1 - w/h only. Grouping them leaves the limit alone and frees parameters, which
`grouped` spends on wider heads. Theory page, section 8e, for the law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resolvent.equivalents.architecture import ArchitectureErrors, architecture_errors
from resolvent.setting.cautions import SLOW_BEYOND
from resolvent.setting.ranges import NON_NEGATIVE, POSITIVE, integer, number
from resolvent.simulate.draws import run_draws
from resolvent.simulate.measure import Average

Array = NDArray[np.float64]

NARROW = 16  # dimensions of a head, below which its scores are not nearly Gaussian


@dataclass(frozen=True)
class Architecture:
    """Multi-head softmax attention on `tokens` orthogonal tokens of dimension `d`, at initialisation.

    `heads` heads with `d_k` and `d_v` dimensions each, `groups` key-value heads that they share (all
    different by default), `d_out` outputs (d by default), inverse temperature `beta`; `tied` keys are also
    the values of their head, for which no limit is known. `ridge` and label noise `noise` (s^2, against
    coefficients of length 1) are those of the regression on the output.

    Raises ValueError or TypeError for a number out of range.
    """

    d: int
    heads: int
    d_k: int
    d_v: int
    tokens: int
    beta: float = 1.0
    d_out: int | None = None
    groups: int | None = None
    tied: bool = False
    ridge: float = 0.01
    noise: float = 0.1

    def __post_init__(self) -> None:
        for name in ("d", "heads", "d_k", "d_v", "tokens"):
            integer(name, getattr(self, name), 2 if name == "tokens" else 1)
        for name, own in (("d_out", self.d), ("groups", self.heads)):
            given = getattr(self, name)
            object.__setattr__(self, name, own if given is None else integer(name, given, 1))
        for name in ("beta", "ridge"):
            object.__setattr__(self, name, number(name, getattr(self, name), POSITIVE))
        object.__setattr__(self, "noise", number("noise", self.noise, NON_NEGATIVE))
        if self.tokens > self.d:
            raise ValueError(f"tokens must be at most d = {self.d}, to be orthogonal, got {self.tokens}")
        if self.heads % self.shared:
            raise ValueError(f"groups must divide heads = {self.heads}, got {self.shared}")
        if self.tied and self.d_k != self.d_v:
            raise ValueError(f"tied keys and values need d_k = d_v, got {self.d_k} and {self.d_v}")

    @property
    def outputs(self) -> int:
        """d_out, d where it was not given."""
        return self.d if self.d_out is None else self.d_out

    @property
    def shared(self) -> int:
        """Key-value heads, as many as heads where groups were not given."""
        return self.heads if self.groups is None else self.groups

    @property
    def parameters(self) -> int:
        """Entries of W_Q, W_K, W_V and W_O."""
        values = 0 if self.tied else self.shared * self.d_v
        return self.d * (self.heads * self.d_k + self.shared * self.d_k + values) + (
            self.heads * self.d_v * self.outputs
        )

    @property
    def limit(self) -> ArchitectureErrors:
        """The limit law at these ratios; NaN for tied keys and values."""
        if self.tied:
            return ArchitectureErrors(np.nan, np.nan)
        n = self.tokens
        return architecture_errors(
            heads=self.heads,
            beta=self.beta,
            key_width=self.heads * self.d_k / n,
            value_width=self.heads * self.d_v / n,
            output_width=self.outputs / n,
            ridge=self.ridge,
            noise=self.noise,
        )

    @property
    def warnings(self) -> list[str]:
        """Why the limit may be far from these sizes."""
        found = []
        if self.beta > SLOW_BEYOND:
            found.append(
                f"beta = {self.beta:g} approaches its limit slowly: beyond {SLOW_BEYOND} a few scores of "
                "each row dominate at any size that can be simulated"
            )
        if min(self.d_k, self.d_v) < NARROW:
            found.append(
                f"heads of fewer than {NARROW} dimensions are far from the limit, which wants them large"
            )
        return found


@dataclass(frozen=True)
class ArchitectureRow:
    """One architecture: its limit, and its measured error and effective dimension per token."""

    name: str
    architecture: Architecture
    error: Average | None
    effective: Average | None

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        a, limit = self.architecture, self.architecture.limit
        measured = {"error": self.error, "effective": self.effective}
        return {
            "name": self.name,
            **vars(a),
            "parameters": a.parameters,
            "predicted": {"error": limit.error, "effective_dimension": float(limit.effective) * a.tokens},
            "measured": {k: None if v is None else v.as_dict() for k, v in measured.items()},
        }


@dataclass(frozen=True)
class ArchitectureAdvice:
    """The architecture and its alternatives at the same number of parameters."""

    rows: tuple[ArchitectureRow, ...]

    @property
    def best(self) -> ArchitectureRow:
        """The least predicted error."""
        return min(self.rows, key=lambda row: np.nan_to_num(float(row.architecture.limit.error), nan=np.inf))

    @property
    def warnings(self) -> list[str]:
        """On beta, and on heads that are too narrow."""
        return list(dict.fromkeys(line for row in self.rows for line in row.architecture.warnings))

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent architecture --json`."""
        return {
            "rows": [row.as_dict() for row in self.rows],
            "best": self.best.name,
            "warnings": self.warnings,
        }

    def __str__(self) -> str:
        a = self.rows[0].architecture
        lines = [
            f"{a.tokens} orthogonal tokens of dimension {a.d}, beta {a.beta:g}, ridge {a.ridge:g}, "
            f"noise {a.noise:g}: ridge coefficient error",
            f"{'':24} {'parameters':>10} {'predicted':>10} {'measured':>20} {'effective dimension':>20}",
        ]
        for row in self.rows:
            limit = row.architecture.limit
            measured = "" if row.error is None else f"{row.error.mean:.4f} +- {row.error.se:.4f}"
            known = "" if np.isnan(limit.error) else f"{limit.error:.4f}"
            size = float(limit.effective) * a.tokens
            dimension = "" if np.isnan(size) else f"{size:.1f}"
            lines.append(
                f"{row.name:24} {row.architecture.parameters:10d} {known:>10} {measured:>20} {dimension:>20}"
            )
        lines.append(f"Least predicted: {self.best.name}.")
        return "\n".join([*lines, *(f"Caution: {line}." for line in self.warnings)])


def architecture(given: Architecture, *, draws: int = 4, seed: int = 0) -> ArchitectureAdvice:
    """The limit law of an architecture and of its alternatives, beside exact simulation.

    Alternatives keep the number of parameters, as far as whole dimensions allow: fewer and more heads at the
    same total widths, and keys and values shared by all heads, first at the same widths (the same limit with
    fewer parameters), then with what that saves spent on wider heads. Tied keys and values are simulated
    where d_k = d_v. `draws` of at least 2 are simulated, 0 for none.

    Source: theory page, section 8e.

    >>> print(architecture(Architecture(d=64, heads=4, d_k=16, d_v=16, tokens=64), draws=0).best.name)
    grouped, wider
    """
    if integer("draws", draws, 0) == 1:
        raise ValueError("draws must be 0 or at least 2, got 1")
    integer("seed", seed, 0)
    rows = []
    for name, one in {"as given": given, **_alternatives(given)}.items():
        error, effective = (None, None) if draws == 0 else simulate_architecture(one, draws=draws, seed=seed)
        rows.append(ArchitectureRow(name, one, error, effective))
    return ArchitectureAdvice(tuple(rows))


def _alternatives(a: Architecture) -> dict[str, Architecture]:
    found: dict[str, Architecture] = {}
    for heads in (1, 2, 4, 8, 16, 32):
        whole = a.heads * a.d_k % heads == 0 and a.heads * a.d_v % heads == 0
        if heads != a.heads and whole and a.shared == a.heads:
            name = f"{heads} head{'s' * (heads > 1)}"
            d_k, d_v = a.heads * a.d_k // heads, a.heads * a.d_v // heads
            found[name] = replace(a, heads=heads, groups=None, d_k=d_k, d_v=d_v)
    if a.shared > 1:
        found["grouped"] = grouped = replace(a, groups=1)
        spare = a.parameters / grouped.parameters
        wider = replace(grouped, d_k=int(a.d_k * spare), d_v=int(a.d_v * spare))
        if wider.d_k > a.d_k:
            found["grouped, wider"] = wider
    if a.d_k == a.d_v and not a.tied:
        found["tied keys and values"] = replace(a, tied=True)
    return found


def simulate_architecture(a: Architecture, *, draws: int = 4, seed: int = 0) -> tuple[Average, Average]:
    """Measured ridge coefficient error and effective dimension per token: exact softmax, finite sizes.

    On orthogonal tokens W_Q X, W_K X and W_V X have iid normal entries, so those are drawn. The error is
    averaged over coefficients and label noise exactly, through the singular values of F.
    """

    def one(rng: np.random.Generator, _: object) -> Array:
        x = np.linalg.svd(_output(a, rng), compute_uv=False) ** 2
        x = np.r_[x, np.zeros(a.outputs - x.size)]
        bias = float(np.mean((a.ridge / (x + a.ridge)) ** 2))
        variance = a.noise * float(np.sum(x / (x + a.ridge) ** 2)) / a.tokens
        return np.array([bias + variance, np.sum(x / (x + a.ridge)) / a.tokens])

    with threadpool_limits(1, user_api="blas"):
        values = run_draws(one, draws, seed, 1, False)
    return Average.over_draws(values[:, 0]), Average.over_draws(values[:, 1])


def _output(a: Architecture, rng: np.random.Generator) -> Array:
    """F (tokens x outputs): the centred multi-head output, scaled to tr FF'/n = 1 on average."""
    n, out = a.tokens, np.zeros((a.tokens, a.outputs))
    for _ in range(a.shared):
        keys = rng.standard_normal((n, a.d_k))
        values = keys if a.tied else rng.standard_normal((n, a.d_v))
        for _ in range(a.heads // a.shared):
            scores = (a.beta / np.sqrt(a.d_k)) * (rng.standard_normal((n, a.d_k)) @ keys.T)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            centred = n * weights / weights.sum(axis=1, keepdims=True) - 1.0
            out += (centred / np.sqrt(n)) @ values @ rng.standard_normal((a.d_v, a.outputs))
    return np.asarray(out / np.sqrt(np.expm1(a.beta**2) * a.heads * a.d_v * a.outputs))
