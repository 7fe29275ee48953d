"""What every zoo test shares: the comparison of a limit with a simulation of the same expression."""

from __future__ import annotations

from resolvent.engine import Equivalent


def agrees(equivalent: Equivalent, n: int, draws: int = 6, **options: object) -> None:
    """Mean within 4 standard errors of the limit, and 2/n of it for the bias of finite size."""
    found = equivalent.measure(n, draws, seed=1, **options)  # type: ignore[arg-type]
    limit = float(found.predicted)
    assert abs(found.mean - limit) < 4 * found.se + 2 * abs(limit) / n, str(found)
