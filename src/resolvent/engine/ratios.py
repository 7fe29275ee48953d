"""Dimensions in units of one of them, from the ratios that fix the shape of the limit."""

from __future__ import annotations

from collections.abc import Mapping

from resolvent.engine.scalar import Dim, Scalar, number, scalar


def sizes(reference: Dim, dims: set[Dim], ratios: Mapping[Scalar, object]) -> dict[Dim, Scalar]:
    """Size of every dimension over that of the reference; ValueError if the ratios leave one open."""
    links = [_link(key, value) for key, value in ratios.items()]
    known = {reference: number(1.0)}
    for _ in dims:
        for top, bottom, size in links:
            if bottom in known:
                known.setdefault(top, size * known[bottom])
            elif top in known:
                known[bottom] = known[top] / size
    lost = sorted(str(dim) for dim in dims - set(known))
    if lost:
        raise ValueError(f"ratios must relate every dimension to {reference}, got none for {', '.join(lost)}")
    return known


def _link(key: Scalar, value: object) -> tuple[Dim, Dim, Scalar]:
    powers = dict(key.terms[0][0]) if isinstance(key, Scalar) and len(key.terms) == 1 else {}
    tops = [dim for dim, power in powers.items() if isinstance(dim, Dim) and power == 1]
    bottoms = [dim for dim, power in powers.items() if isinstance(dim, Dim) and power == -1]
    if len(powers) != 2 or len(tops) != 1 or len(bottoms) != 1:
        raise ValueError(f"a ratio must be one dimension over another, such as p / n, got {key}")
    size = scalar(value)
    if size.constant is not None and not size.constant > 0:
        raise ValueError(f"the ratio {tops[0]}/{bottoms[0]} must be positive, got {size}")
    return tops[0], bottoms[0], size
