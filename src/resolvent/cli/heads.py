"""`resolvent heads`: the attention heads of a pretrained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from resolvent.checkpoints import (
    HeadTable,
    SignalShare,
    signal_direction,
    signal_shares,
    summarise_heads,
)
from resolvent.cli.checkpoint import MODEL, ModelFlags, Opened
from resolvent.cli.flags import OUTPUT, TOKENS, WEIGHTS, Json, SettingFlags, flag, naming, number
from resolvent.cli.output import progress_wanted, show
from resolvent.compare.gains import GainTable, head_gains
from resolvent.compare.heads import EVERYWHERE, Axis, HeadComparison, Signal, compare_head
from resolvent.dataset import LabelledTokens, read_tokens
from resolvent.setting import Weights
from resolvent.setting.ranges import integer
from resolvent.simulate import Interrupted

TASK = Group("Prediction", sort_key=0)
TOP, PERMUTATIONS, DRAWS, TAU = 4, 999, 8, 1.0
_NOT_HERE = Parameter(parse=False)


@Parameter(name="*")
@dataclass(frozen=True)
class SignalFlags:
    """The user's own signal direction."""

    tokens: Annotated[
        Path | None, Parameter(group=TOKENS, help="Labelled tokens as the heads read them: a signal.")
    ] = None
    labels: Annotated[Path | None, Parameter(group=TOKENS, help="Labels of an .npy file.")] = None
    top: Annotated[int | None, number(TOKENS, "Leading directions that may hold the signal.", TOP)] = None
    permutations: Annotated[int | None, number(TOKENS, "Of the labels, for p-values.", PERMUTATIONS)] = None

    def read(self) -> LabelledTokens | None:
        """The tokens, where there are any."""
        if self.tokens is None:
            _refuse(
                "goes with --tokens FILE", labels=self.labels, top=self.top, permutations=self.permutations
            )
            return None
        with naming("--tokens"):
            return read_tokens(self.tokens, self.labels)


@Parameter(name="*")
@dataclass(frozen=True)
class ProbeFlags(SettingFlags):
    """The flags of a setting, but for those of the weights, which are the head's own."""

    align: Annotated[float | None, _NOT_HERE] = None
    key_norm: Annotated[float | None, _NOT_HERE] = None
    query_norm: Annotated[float | None, _NOT_HERE] = None
    key_cos: Annotated[float | None, _NOT_HERE] = None
    query_cos: Annotated[float | None, _NOT_HERE] = None
    key_query_cos: Annotated[float | None, _NOT_HERE] = None
    weights_file: Annotated[Path | None, _NOT_HERE] = None
    head: Annotated[list[str] | None, _NOT_HERE] = None
    tau: Annotated[float | None, number(WEIGHTS, "Scale M to scores of this standard deviation.", TAU)] = None
    signal: Annotated[
        Literal["random", "top-key", "top-query"] | None,
        Parameter(
            group=WEIGHTS, help="Direction of mu: one in place of all for --compare; top-key for --all."
        ),
    ] = None

    def weights(self) -> Weights:
        """None: the head's take their place."""
        return Weights.none()


_MODEL, _SIGNAL, _PROBE = ModelFlags(), SignalFlags(), ProbeFlags()


def heads(
    source: Annotated[
        str, Parameter(help='A file or folder of weights, or an id on the Hugging Face hub ("org/name").')
    ],
    /,
    *,
    model: ModelFlags = _MODEL,
    fit_rank: Annotated[int | None, number(MODEL, "k of the best c I + rank k.", 1)] = None,
    signal: SignalFlags = _SIGNAL,
    compare: Annotated[
        bool, Parameter(group=TASK, negative="", help="One head's errors, predicted beside measured.")
    ] = False,
    every: Annotated[
        bool, Parameter(name="--all", group=TASK, negative="", help="Predict the errors of every head.")
    ] = False,
    over: Annotated[
        Axis | None,
        Parameter(group=TASK, help="What --compare varies.", show_default="ridge"),
    ] = None,
    probe: ProbeFlags = _PROBE,
    draws: Annotated[int | None, number(TASK, "Independent repetitions of --compare.", DRAWS)] = None,
    seed: Annotated[int | None, number(TASK, "The integer that decides all randomness.", 0)] = None,
    plot: Annotated[
        Path | None, Parameter(group=OUTPUT, help="Draw --compare or --all into a .png, .pdf or .svg.")
    ] = None,
    json: Json = False,
) -> None:
    """The heads of a pretrained model: what M looks like, and what a probe on attention with M can do."""
    if compare and every:
        raise ValueError("--all cannot be given with --compare, which takes one head")
    if compare or every:
        _refuse("goes without --compare and --all", fit_rank=fit_rank, top=signal.top)
        _refuse("goes without --compare and --all", permutations=signal.permutations)
    else:
        given = {k: v for k, v in vars(probe).items() if v != getattr(_PROBE, k)}
        _refuse("goes with --compare or --all", **given, plot=plot)
    if not compare:
        _refuse("goes with --compare", over=over, draws=draws)
    if plot is not None:
        from resolvent.plot import checked_path

        checked_path(plot)
    tokens, opened = signal.read(), Opened(source, model, progress_wanted(json))
    result: HeadTable | GainTable | Compared
    if compare:
        result = _compared(
            opened, tokens, probe, over or "ridge", DRAWS if draws is None else draws, seed or 0
        )
    elif every:
        result = _predicted(opened, tokens, probe)
    else:
        result = _described(opened, tokens, signal, 1 if fit_rank is None else fit_rank, seed or 0)
    show(result, json)
    if plot is not None:
        _plot(result, plot)


def _refuse(why: str, **flags: object) -> None:
    """ValueError where one of the flags was given."""
    for name, value in flags.items():
        if value is not None:
            raise ValueError(f"{flag(name)} {value} {why}")


def _described(
    opened: Opened, tokens: LabelledTokens | None, signal: SignalFlags, fit_rank: int, seed: int
) -> HeadTable:
    """What each M looks like, and with tokens how much of their signal it reads."""
    layer, gain = opened.flags.layer, opened.flags.gain
    shares: tuple[SignalShare, ...] = ()
    if tokens is not None:  # corrected over all heads, also those that are not shown
        found = signal_shares(
            opened.read(),
            tokens.tokens,
            tokens.labels,
            count=TOP if signal.top is None else integer("top", signal.top, 1),
            gain=gain,
            permutations=PERMUTATIONS if signal.permutations is None else signal.permutations,
            seed=seed,
        )
        shares = tuple(filter(opened.wanted, found))
    rows = summarise_heads(opened.read(layer), gain=gain, fit_rank=fit_rank)
    return opened.collect(rows, lambda done: HeadTable(opened.source, done, shares[: len(done)]))


def _predicted(opened: Opened, tokens: LabelledTokens | None, probe: ProbeFlags) -> GainTable:
    """Every head's errors, with the signal along its first key direction unless told otherwise."""
    place = probe.signal or ("top-key" if tokens is None else "tokens")
    setting = probe.setting()
    heads = filter(opened.wanted, opened.read(opened.flags.layer))
    rows = head_gains(
        heads, setting, signal=_signals(opened, tokens)[place], tau=_tau(probe), gain=opened.flags.gain
    )
    return opened.collect(rows, lambda done: GainTable(opened.source, setting, place, done))


def _compared(
    opened: Opened, tokens: LabelledTokens | None, probe: ProbeFlags, over: Axis, draws: int, seed: int
) -> Compared:
    """One head, predicted and measured."""
    signals = _signals(opened, tokens)
    if probe.signal is not None:
        signals = {place: s for place, s in signals.items() if place in (probe.signal, "tokens")}
    try:
        comparison = compare_head(
            opened.one(),
            probe.setting(),
            signals=signals,
            over=over,
            draws=draws,
            seed=seed,
            tau=_tau(probe),
            gain=opened.flags.gain,
            progress=opened.progress,
        )
    except Interrupted as stop:
        if isinstance(stop.record, HeadComparison):
            stop.record = Compared(opened.source, stop.record)
        raise
    return Compared(opened.source, comparison)


@dataclass(frozen=True)
class Compared:
    """A comparison and where its head comes from."""

    source: str
    comparison: HeadComparison

    def as_dict(self) -> dict[str, object]:
        """{"source", "heads": [...]}, one head."""
        return {"source": self.source, "heads": [self.comparison.as_dict()]}

    def __str__(self) -> str:
        return f"{self.source}: {self.comparison}"


def _signals(opened: Opened, tokens: LabelledTokens | None) -> dict[str, Signal]:
    """Where mu may lie: every place, and along the user's own signal."""
    if tokens is None:
        return EVERYWHERE
    width = next(opened.read(opened.layers[0])).d_model
    if tokens.p != width:
        raise ValueError(f"tokens must have {width} dimensions for these heads, got {tokens.p}")
    return {**EVERYWHERE, "tokens": signal_direction(tokens.tokens, tokens.labels)}


def _tau(probe: ProbeFlags) -> float:
    return TAU if probe.tau is None else probe.tau


def _plot(result: object, path: Path) -> None:
    from resolvent.plot import plot_gains, plot_head_comparison

    match result:
        case GainTable():
            plot_gains(result, path)
        case Compared():
            plot_head_comparison(result.comparison, path)
