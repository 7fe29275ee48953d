"""The card of a nonlinearity: its coefficients, and in words what the theory says it can and cannot do.

The words follow from the linearisation of attention (the theory page, section 3; Lemma 1 of Liao, Liu, Hou,
Zou, Ling, arXiv 2506.18656): signal and weights enter through a_1 only, the rest of f acts as independent
noise of power sigma^2, and beyond the paper a_0 and a_2 add directions that balanced classes do not see.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill

from resolvent.nonlinearity.diagonal import GrowthError, limit_slope
from resolvent.nonlinearity.nonlinearity import Coefficients, Nonlinearity


@dataclass(frozen=True)
class Card:
    """What `card` returns.

    `kept_diagonal` is f(sqrt p)/sqrt p at the given p, or its limit for p None; None when it has none, since
    f grows faster than linearly or f(t)/t does not settle. `sentence` is what the theory says, in words.
    """

    name: str
    centred: bool
    scale: float
    p: int | None
    coefficients: Coefficients
    kept_diagonal: float | None
    sentence: str

    @property
    def linear_share(self) -> float:
        """Share of linear power a1^2/nu."""
        return self.coefficients.linear_share

    def as_dict(self) -> dict[str, str | float | None]:
        """Fields for JSON."""
        return {
            "name": self.name,
            **self.coefficients.as_dict(),
            "linear_share": self.linear_share,
            "kept_diagonal": self.kept_diagonal,
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        kind = "centred" if self.centred else "not centred"
        diagonal = "none" if self.kept_diagonal is None else f"{self.kept_diagonal:.6g}"
        at = "in the limit" if self.p is None else f"at p = {self.p}"
        rows = [
            *((name, f"{value:.10g}") for name, value in self.coefficients.as_dict().items()),
            ("linear share a1^2/nu", f"{self.linear_share:.4g}"),
            (f"kept-diagonal shift {at}", diagonal),
        ]
        table = "\n".join(f"  {name:<34}{value}" for name, value in rows)
        title = f"{self.name}, {kind}, scores N(0, {self.scale:g}^2)"
        return f"{title}\n{table}\n{fill(self.sentence, 88, initial_indent='  ', subsequent_indent='  ')}"


def card(f: Nonlinearity, p: int | None = None, scale: float = 1.0) -> Card:
    """The card of f under scores N(0, scale^2), with the kept diagonal at dimension p or in the limit.

    Raises ValueError when f has no coefficients (see `Nonlinearity.coefficients`).

    >>> from resolvent.nonlinearity import nonlinearity
    >>> print(card(nonlinearity("hermite2")))
    hermite2, centred, scores N(0, 1^2)
      a0                                0
      a1                                0
      a2                                1.414213562
      nu                                2
      sigma2                            2
      linear share a1^2/nu              0
      kept-diagonal shift in the limit  none
      f is even, so a1 = 0: with balanced classes neither signal nor weights reach the
      scores. Training error is memorisation, flat in the signal-to-noise ratio, and fresh
      tokens are not predicted at all. a2 is not 0: unbalanced classes meet two more spikes,
      along the constant vector and the fluctuation of the token norms. The diagonal cannot
      be kept: hermite2 grows faster than linearly.
    """
    coefficients = f.coefficients(scale)
    try:
        diagonal, growth = _kept(f, p, scale), None
    except GrowthError as error:
        diagonal, growth = None, str(error)
    words = [*_power(f.parity(scale), coefficients), *_directions(coefficients), _diagonal(diagonal, growth)]
    return Card(f.name, f.centred, scale, p, coefficients, diagonal, " ".join(words))


def _kept(f: Nonlinearity, p: int | None, scale: float) -> float | None:
    return limit_slope(f.function, f.name) if p is None else f.kept_diagonal(p, scale)


def _power(parity: str, a: Coefficients) -> Iterator[str]:
    if a.a1 == 0:
        reason = "f is even, so a1 = 0" if parity == "even" else "a1 = 0"
        yield (
            f"{reason}: with balanced classes neither signal nor weights reach the scores. Training error is "
            "memorisation, flat in the signal-to-noise ratio, and fresh tokens are not predicted at all."
        )
    elif a.sigma2 == 0:
        yield "f is linear: signal and weights act through a1 alone and the scores gain no noise."
    else:
        share = a.a1**2 / (a.a1**2 + a.sigma2)
        yield (
            f"{100 * share:.3g} % of its variance is linear: signal and weights act through that part only; "
            "the rest acts as independent noise, which helps to memorise and not to predict."
        )


def _directions(a: Coefficients) -> Iterator[str]:
    if a.a0 != 0:
        yield "Its mean is not 0: K gains a constant part that grows with p; centring removes it."
    if a.a2 != 0:
        yield (
            "a2 is not 0: unbalanced classes meet two more spikes, along the constant vector and the "
            "fluctuation of the token norms."
        )
    else:
        yield "a2 = 0: unbalanced classes meet no further spike."


def _diagonal(shift: float | None, growth: str | None) -> str:
    if growth is not None:
        return f"{growth[0].upper()}{growth[1:]}."
    if shift is None:
        return "A kept diagonal has no limit: f(t)/t does not settle."
    if shift == 0:
        return "A kept diagonal vanishes in the limit."
    return f"A kept diagonal shifts K by {shift:.3g} times the identity."
