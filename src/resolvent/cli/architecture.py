"""`resolvent architecture`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Group, Parameter

from resolvent.advise.multihead import Architecture
from resolvent.advise.multihead import architecture as advise_architecture
from resolvent.cli.flags import SIZE, Json, number
from resolvent.cli.output import show

LAYER = Group("Attention layer", sort_key=1)
PROBE = Group("Regression on its output", sort_key=2)


def architecture(
    *,
    d: Annotated[int, number(LAYER, "Dimension of the tokens.")],
    heads: Annotated[int, number(LAYER, "Heads.")],
    d_k: Annotated[int, number(LAYER, "Dimensions of a head's keys and queries.")],
    d_v: Annotated[int, number(LAYER, "Dimensions of a head's values.")],
    tokens: Annotated[int, number(LAYER, "Orthogonal tokens, at most d.")],
    beta: Annotated[float, number(LAYER, "Inverse temperature of the softmax.", 1.0)] = 1.0,
    d_out: Annotated[int | None, number(LAYER, "Dimensions of the output.", "d")] = None,
    groups: Annotated[int | None, number(LAYER, "Key-value heads, shared by the heads.", "heads")] = None,
    tied: Annotated[
        bool, Parameter(group=LAYER, negative="", help="Keys are values: simulated only, no limit is known.")
    ] = False,
    ridge: Annotated[float, number(PROBE, "Penalty.", 0.01)] = 0.01,
    noise: Annotated[float, number(PROBE, "Label noise against coefficients of length 1.", 0.1)] = 0.1,
    draws: Annotated[int, number(SIZE, "Independent repetitions; 0 simulates nothing.", 4)] = 4,
    seed: Annotated[int, number(SIZE, "The integer that decides all randomness.", 0)] = 0,
    json: Json = False,
) -> None:
    """Multi-head softmax attention at initialisation: head counts and grouped keys at equal parameters."""
    given = Architecture(d, heads, d_k, d_v, tokens, beta, d_out, groups, tied, ridge, noise)
    show(advise_architecture(given, draws=draws, seed=seed), json)
