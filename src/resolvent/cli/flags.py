"""The flags that write down a setting and a size, shared by the commands.

A flag that was not given is None: the defaults stay those of the library, and a command can tell what it was
told from what it assumes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from resolvent.cli.weights import another_head, read_array, read_weights
from resolvent.nonlinearity import Nonlinearity, Softmax, nonlinearity
from resolvent.nonlinearity.softmax import SELF_SCORE
from resolvent.setting import Setting, Tokens, Weights
from resolvent.setting.heads import AnyWeights

TOKENS = Group("Tokens", sort_key=1)
WEIGHTS = Group("Weights", sort_key=2)
PROBE = Group("Attention and probe", sort_key=3)
SIZE = Group("Size", sort_key=4)
OUTPUT = Group("Output", sort_key=5)

MODEL = ("ratio", "snr", "label_mean", "label_noise")  # of synthetic tokens
NORMS = ("key_norm", "query_norm")
ANGLES = (*NORMS, "key_cos", "query_cos", "key_query_cos")

Json = Annotated[bool, Parameter(name="--json", negative="", group=OUTPUT, help="Print one JSON object.")]


def _convert(kind: type, tokens: Any) -> Any:
    """A number as Python reads it: no fraction is rounded to an integer."""
    return kind(tokens[0].value)


def number(group: Group, text: str, default: object = None) -> Parameter:
    """A flag that takes a number, which may be negative."""
    shown = False if default is None else str(default)
    return Parameter(
        group=group, help=text, allow_leading_hyphen=True, converter=_convert, show_default=shown
    )


def flag(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of a flag before a message about wrong input."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


@Parameter(name="*")
@dataclass(frozen=True)
class SettingFlags:
    """Everything that a setting holds."""

    f: Annotated[
        str,
        Parameter(
            group=PROBE,
            help='Nonlinearity: a name, or an expression in t such as "t*tanh(t)".',
            allow_leading_hyphen=True,
        ),
    ] = "tanh"
    centred: Annotated[
        bool,
        Parameter(group=PROBE, help="Remove the mean of f, or keep it.", negative="--uncentred"),
    ] = True
    ratio: Annotated[float | None, number(TOKENS, "p/n.", Tokens.ratio)] = None
    snr: Annotated[float | None, number(TOKENS, "|mu|^2.", Tokens.snr)] = None
    ridge: Annotated[
        float | None, number(PROBE, "Penalty of the probe; 0 is the ridgeless limit.", Setting.ridge)
    ] = None
    align: Annotated[float | None, number(WEIGHTS, "w_K = w_Q = align times mu.", 0.0)] = None
    key_norm: Annotated[float | None, number(WEIGHTS, "|w_K|.")] = None
    query_norm: Annotated[float | None, number(WEIGHTS, "|w_Q|.")] = None
    key_cos: Annotated[float | None, number(WEIGHTS, "Cosine of w_K and mu.", 0.0)] = None
    query_cos: Annotated[float | None, number(WEIGHTS, "Cosine of w_Q and mu.", 0.0)] = None
    key_query_cos: Annotated[
        float | None,
        number(WEIGHTS, "Cosine of w_K and w_Q; by default their parts outside mu are orthogonal."),
    ] = None
    label_mean: Annotated[float | None, number(TOKENS, "Mean of the labels.", Tokens.label_mean)] = None
    label_noise: Annotated[
        float | None, number(TOKENS, "Probability that a target is flipped.", Tokens.label_noise)
    ] = None
    skip: Annotated[float | None, number(PROBE, "Weight of a residual connection.", Setting.skip)] = None
    keep_diagonal: Annotated[
        bool, Parameter(group=PROBE, negative="", help="Let tokens attend to themselves.")
    ] = False
    beta: Annotated[float | None, number(PROBE, "Inverse temperature of --f softmax.", 1.0)] = None
    noise: Annotated[
        str | None,
        Parameter(
            group=TOKENS,
            help="Law of the noise entries: gaussian, rademacher, uniform, laplace, student-t:DEGREES.",
            show_default="gaussian",
        ),
    ] = None
    covariance: Annotated[
        str | None,
        Parameter(
            group=TOKENS,
            help="Of the noise: power-law:EXPONENT, ar1:CORRELATION, spiked:LEVEL:SHARE, or a .npy file.",
            show_default="white",
        ),
    ] = None
    norm_spread: Annotated[
        float | None, number(TOKENS, "Standard deviation of the tokens' log norms.", Tokens.norm_spread)
    ] = None
    normalise: Annotated[
        Literal["rms", "layer"] | None, Parameter(group=TOKENS, help="Scale every token to |x|^2 = p.")
    ] = None
    weights_file: Annotated[
        Path | None,
        Parameter(
            name="--weights",
            group=WEIGHTS,
            help="Key-query weights M (.npy), or W_K and W_Q (.npz), in place of I + w_K w_Q'.",
        ),
    ] = None
    tau: Annotated[float | None, number(WEIGHTS, "Scale --weights to scores of this standard deviation.")] = (
        None
    )
    signal: Annotated[
        Literal["random", "top-key", "top-query"] | None,
        Parameter(group=WEIGHTS, help="Direction of mu for --weights.", show_default="random"),
    ] = None
    head: Annotated[
        list[str] | None,
        Parameter(
            group=PROBE,
            negative="",
            help='Another head beside the first, as "f=relu align=0.5"; once for each head.',
        ),
    ] = None

    def given(self, *names: str) -> dict[str, Any]:
        """The values of the flags that were given, by field."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def setting(self) -> Setting:
        """The setting, validated."""
        first = self.function()
        others = [another_head(text) for text in self.head or ()]
        return Setting(
            Tokens(**self.given(*MODEL, "noise", "norm_spread", "normalise"), **self._covariance()),
            [self.weights(), *(weights for _, weights in others)] if others else self.weights(),
            [first, *(f for f, _ in others)] if others else first,
            self.centred if isinstance(first, Nonlinearity) else None,
            keep_diagonal=self.keep_diagonal,
            **self.given("ridge", "skip", "beta"),
        )

    def function(self) -> Nonlinearity | str:
        """From --f, --centred and --beta."""
        with naming("--f"):
            if self.f.strip() == "softmax":
                if self.keep_diagonal:
                    raise ValueError(SELF_SCORE)
                if not self.centred:
                    raise ValueError("softmax has columns of a fixed sum, so --uncentred must be left out")
                Softmax(**self.given("beta"))
                return "softmax"
            f = nonlinearity(self.f, centred=self.centred)
            f.coefficients()
        if self.beta is not None:
            raise ValueError(f"--beta {self.beta:g} goes with --f softmax")
        if self.keep_diagonal:
            with naming("--keep-diagonal"):
                f.kept_diagonal(1)
        return f

    def weights(self) -> AnyWeights:
        """From --weights, from --align or from norms and cosines."""
        angles = self.given(*ANGLES)
        if self.weights_file is not None:
            for name in ("align", *angles):
                if getattr(self, name) is not None:
                    raise ValueError(f"{flag(name)} cannot be given with --weights, which are M itself")
            with naming("--weights"):
                return read_weights(self.weights_file, **self.given("tau", "signal"))
        for name in self.given("tau", "signal"):
            raise ValueError(f"--{name} goes with --weights FILE")
        if not angles:
            return Weights.aligned(self.align or 0.0)
        first = flag(next(iter(angles)))
        if self.align is not None:
            raise ValueError(f"{first} cannot be given with --align, which already fixes both weights")
        for norm in NORMS:
            if norm not in angles:
                raise ValueError(f"{first} needs {flag(norm)} too: M = I + w_K w_Q' takes both weights")
        return Weights.from_angles(**angles)

    def _covariance(self) -> dict[str, Any]:
        """By name, or from a file of eigenvalues or of the matrix."""
        if self.covariance is None:
            return {}
        if not self.covariance.endswith(".npy"):
            return {"covariance": self.covariance}
        with naming("--covariance"):
            return {"covariance": read_array(Path(self.covariance), "covariance")}


@Parameter(name="*")
@dataclass(frozen=True)
class SizeFlags:
    """How much is simulated."""

    n: Annotated[int | None, number(SIZE, "Tokens; p = round(ratio n).", 1024)] = None
    draws: Annotated[int | None, number(SIZE, "Independent repetitions.", 20)] = None
    seed: Annotated[int | None, number(SIZE, "The integer that decides all randomness.", 0)] = None

    def given(self) -> dict[str, Any]:
        """The sizes that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}
