"""advise: from limits to what to choose, with reasons, assumptions and a finite-size check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from resolvent.advise.alignment import WinningAlignment, winning_alignment
from resolvent.advise.candidates import Candidate, Errors, attention, linear_regression
from resolvent.advise.gains import Gain, gains
from resolvent.advise.optimum import OptimalLinearPart, optimal_linear_part
from resolvent.advise.words import assumptions, why
from resolvent.nonlinearity import Nonlinearity, Softmax, known_names, nonlinearity
from resolvent.predict import ConvergenceError
from resolvent.setting import Setting, Weights
from resolvent.setting.cautions import cautions
from resolvent.setting.ranges import integer

F = str | Nonlinearity | Softmax
Budget = Literal["best", "equal"]
Choice = Literal["attention", "linear", "either"]

CLOSE = 0.01  # relative difference of errors below which a choice is not worth making
SHOWN = 8  # rows of the table


@dataclass(frozen=True)
class Advice:
    """What `advise` returns.

    `ranking` holds the candidates by predicted test error, the lowest first, at each one's best ridge
    (`budget` "best") or all at the setting's ("equal"); `linear` is linear regression. `left_out` says which
    were not ranked and why. `optimum` is None with a kept diagonal.
    """

    setting: Setting
    p: int | None
    budget: Budget
    ranking: tuple[Candidate, ...]
    linear: Candidate
    left_out: dict[str, str]
    alignment: WinningAlignment
    gains: tuple[Gain, ...]
    optimum: OptimalLinearPart | None

    def errors(self, candidate: Candidate) -> Errors:
        """A candidate's errors under the budget."""
        return candidate.best if self.budget == "best" else candidate.equal

    @property
    def choice(self) -> Choice:
        """What to use: the first of the ranking, linear regression, or either where they are within 1 %."""
        ours, theirs = (float(self.errors(c).test) for c in (self.ranking[0], self.linear))
        if abs(ours - theirs) <= CLOSE * min(ours, theirs):
            return "either"
        return "attention" if ours < theirs else "linear"

    @property
    def reason(self) -> str:
        """Why, through a1^2/nu, sigma2 and a2."""
        return why(self.setting, self.choice, self.ranking)

    @property
    def assumptions(self) -> list[str]:
        """What the prediction takes for granted."""
        return assumptions(self.setting, self.p)

    @property
    def cautions(self) -> list[str]:
        """How far the limit is from p: the low-rank part of the scores, and the refined errors."""
        found = cautions(self.setting, self.p)
        if self.p is None:
            return found
        first = self.ranking[0]
        limit = first.limit[1 if self.budget == "best" else 0].test
        refined = self.errors(first).test
        moved = abs(float(refined) / float(limit) - 1.0)
        return [
            *found,
            f"Finite size: for {first.name} the limit says {limit:.4f}, "
            f"refined at p = {self.p} {refined:.4f}, {100.0 * moved:.1f} % apart.",
        ]

    def as_dict(self) -> dict[str, object]:
        """The fields of `resolvent advise --json`."""
        return {
            "setting": {**self.setting.as_dict(), "p": self.p},
            "budget": self.budget,
            "choice": self.choice,
            "reason": self.reason,
            "ranking": [c.as_dict() for c in self.ranking],
            "linear": self.linear.as_dict(),
            "left_out": self.left_out,
            "alignment": self.alignment.as_dict(),
            "gains": [g.as_dict() for g in self.gains],
            "optimum": None if self.optimum is None else self.optimum.as_dict(),
            "assumptions": self.assumptions,
            "cautions": self.cautions,
        }

    def __str__(self) -> str:
        size = "in the limit" if self.p is None else f"at p = {self.p}"
        ridge = float(self.setting.ridge)
        head = f"Predicted errors {size}, by test error at " + (
            "each one's best ridge" if self.budget == "best" else f"ridge {ridge:g}"
        )
        blocks = [head, self._table(), f"Choose {_CHOICES[self.choice]}. {self.reason}"]
        blocks.append(f"Alignment from which {self.ranking[0].name} wins, in the limit: {self.alignment}.")
        blocks.append(self._gains())
        if self.optimum is not None:
            blocks.append(f"Best f with a0 = 0, nu = 1: {self.optimum}.")
        blocks.append("\n".join(["It assumes:", *(f"- {line}" for line in self.assumptions)]))
        return "\n\n".join([*blocks, *self.cautions])

    def _table(self) -> str:
        head = f"{'':3} {'':18} {'a1^2/nu':>8} {'ridge':>9} {'train':>8} {'test':>8}"
        head += f"   {f'at ridge {float(self.setting.ridge):g}: train':>24} {'test':>8}"
        rows = [head]
        shown = self.ranking[:SHOWN]
        ours = [(str(i + 1), c) for i, c in enumerate(shown)]
        rows += [_row(*row) for row in [*ours, ("", self.linear)]]
        more = len(self.ranking) - len(shown)
        return "\n".join([*rows, *([f"{'':3} and {more} more"] if more else [])])

    def _gains(self) -> str:
        name = self.ranking[0].name
        lines = [f"What more would bring to {name} (change of train, test, test at best ridge):"]
        for gain in self.gains:
            change = gain.change
            lines.append(
                f"  {gain.step:18} {change['train']:+.4f} {change['test']:+.4f} {change['best_test']:+.4f}"
            )
        return "\n".join(lines)


_CHOICES = {
    "attention": "attention",
    "linear": "linear regression",
    "either": "either: attention and linear regression are within 1 %",
}


def advise(
    setting: Setting,
    nonlinearities: Sequence[F] = (),
    *,
    p: int | None = None,
    budget: Budget = "best",
) -> Advice:
    """Which nonlinearity and ridge to choose for tokens and weights, or linear regression; and why.

    Candidates that cannot be used (a kept diagonal that grows, no convergence at this ridge) are left out,
    with the reason. Raises ValueError for a setting with arrays, several heads, weights other than I + w_K
    w_Q' or tokens other than white Gaussian ones, and where a given nonlinearity cannot be used.

    Source: theory page, sections 4 to 7, 11 and 12.

    Parameters
    ----------
    setting
        Tokens, weights, ridge and conventions. Its nonlinearity is ranked with the others.
    nonlinearities
        Names, expressions or `Nonlinearity` objects to rank beside every registered name and softmax.
    p
        The real size: errors are refined there (the theory page, section 12). Without it they are limits.
    budget
        "best": each candidate has the ridge of its own least test error, found globally over log-ridge from
        1e-6 to 1e6; "equal": all have the setting's ridge.

    >>> from resolvent import Setting, Tokens, Weights
    >>> advice = advise(Setting(Tokens(ratio=2.0, snr=1.0), Weights.aligned(1.0)))
    >>> advice.ranking[0].name, advice.choice
    ('identity', 'attention')
    """
    if budget not in ("best", "equal"):
        raise ValueError(f"budget must be best or equal, got {budget!r}")
    checked(setting)
    size = None if p is None else integer("p", p, 2)
    found, left_out = ranked(setting, nonlinearities, lambda own: attention(own, size), budget)
    leader = found[0][1]
    return Advice(
        setting,
        size,
        budget,
        tuple(candidate for candidate, _ in found),
        linear_regression(setting, size),
        left_out,
        winning_alignment(leader),
        tuple(gains(leader, found[0][0], size)),
        None if setting.keep_diagonal else optimal_linear_part(setting, best_ridge=budget == "best"),
    )


def checked(setting: Setting) -> None:
    """ValueError for a setting that advice is not for."""
    if setting.shape:
        raise ValueError(f"advise takes one setting, got arrays of shape {setting.shape}")
    tokens = setting.tokens
    plain = tokens.noise == "gaussian" and tokens.population is None and tokens.normalise is None
    if not plain or tokens.norm_spread:
        raise ValueError("advise takes white Gaussian tokens: their law must be left as it is")
    if len(setting.heads) > 1 or not isinstance(setting.head.weights, Weights):
        raise ValueError("advise takes one head, with weights I + w_K w_Q'")


def ranked(
    setting: Setting, more: Sequence[F], evaluate: Callable[[Setting], Candidate], budget: Budget
) -> tuple[list[tuple[Candidate, Setting]], dict[str, str]]:
    """Candidates with their settings, the lowest test error first, and what was left out and why."""
    given: list[F] = [setting.head.f, *more]
    names = {f if isinstance(f, str) else f.name for f in given}
    known = [name for name in (*known_names(), "softmax") if name not in names]
    found: list[tuple[Candidate, Setting]] = []
    left_out: dict[str, str] = {}
    for place, f in enumerate([*given, *known]):
        try:
            own = _with(setting, f)
            found.append((evaluate(own), own))
        except (ValueError, ConvergenceError) as error:
            if place < len(given):
                raise
            left_out[str(f)] = str(error)
    found.sort(key=lambda pair: float((pair[0].best if budget == "best" else pair[0].equal).test))
    return found, left_out


def _with(setting: Setting, f: F) -> Setting:
    """The setting with another f, centred as its own is."""
    if isinstance(f, str) and f != "softmax":
        f = nonlinearity(f, centred=setting.head.f.centred)
    return replace(setting, nonlinearity=f, centred=None, beta=None)


def _row(rank: str, c: Candidate) -> str:
    share = "" if c.coefficients is None else f"{c.coefficients.linear_share:.3f}"
    return (
        f"{rank:>3} {c.name:18} {share:>8} {c.best_ridge:9.3g} {c.best.train:8.4f} {c.best.test:8.4f}"
        f"   {c.equal.train:24.4f} {c.equal.test:8.4f}"
    )
