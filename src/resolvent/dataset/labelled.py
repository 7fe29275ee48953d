"""One record for labelled tokens, whatever file they came from, with every check on the raw values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent.dataset.labels import LabelValue, signs

ASYMMETRY = 1e-4  # of correlations: more than single precision leaves


@dataclass(frozen=True, eq=False)
class LabelledTokens:
    """Tokens as read: one column a token, labels -1 or +1, not yet centred or scaled.

    `label_names` are the original values (at -1, at +1). `background_mean` (p,) and `background_cov` (p, p)
    describe tokens outside this set, for a whitening that does not look at the labels. `notes` say in
    sentences what was found and done.
    """

    tokens: NDArray[np.float64]
    labels: NDArray[np.float64]
    label_names: tuple[LabelValue, LabelValue]
    background_mean: NDArray[np.float64] | None = None
    background_cov: NDArray[np.float64] | None = None
    source: str = "arrays"
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def from_arrays(
        cls,
        tokens: ArrayLike,
        labels: ArrayLike,
        *,
        background_mean: ArrayLike | None = None,
        background_cov: ArrayLike | None = None,
        source: str = "arrays",
        notes: tuple[str, ...] = (),
    ) -> LabelledTokens:
        """Check and orient `tokens` (p x n; n x p is recognised by the number of labels) and n `labels`.

        A square matrix is taken as documented, one column a token. Raises ValueError, in one line, for what
        cannot be tokens: fewer than 4 of them or than 2 in a class, one dimension, more or fewer than two
        label values, values that are not finite real numbers, a dimension that never varies, a background
        that does not fit.

        >>> LabelledTokens.from_arrays([[1, 2, 3, 5], [0, 1, 0, 2]], ["spam", "ham", "ham", "spam"]).labels
        array([ 1., -1., -1.,  1.])
        """
        values, (minus, plus) = signs(labels)
        matrix, orientation = _oriented(_real(tokens, "tokens", 2), values.size)
        _refuse_tokens(matrix, values)
        p = matrix.shape[0]
        mean = None if background_mean is None else _fitting(background_mean, "background_mean", (p,))
        cov = None if background_cov is None else _covariance(background_cov, p)
        mapping = f"Label {plus!r} is +1 and {minus!r} is -1."
        found = (orientation, mapping, *notes, *_duplicates(matrix))
        return cls(matrix, values, (minus, plus), mean, cov, source, found)

    @property
    def p(self) -> int:
        """Dimensions."""
        return int(self.tokens.shape[0])

    @property
    def n(self) -> int:
        """Tokens."""
        return int(self.tokens.shape[1])

    def __str__(self) -> str:
        background = "a background covariance" if self.background_cov is not None else "no background"
        lines = (f"{self.source}: {self.n} tokens of {self.p} dimensions, {background}", *self.notes)
        return "\n".join(lines)


def _real(values: ArrayLike, name: str, ndim: int) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}")
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got shape {array.shape}")
    with np.errstate(over="ignore"):  # a wider float may overflow; the check below says where
        array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(np.argwhere(~finite)[0].tolist())
        where = first if ndim > 1 else first[0]
        raise ValueError(
            f"{name} hold {(~finite).sum()} NaN or infinite values, the first at {where}, counting from 0"
        )
    return array


def _oriented(matrix: NDArray[np.float64], labels: int) -> tuple[NDArray[np.float64], str]:
    rows, columns = matrix.shape
    if columns == labels:
        chosen = " by convention: it is square" if rows == columns else ""
        return matrix, f"Tokens are the {columns} columns of a {rows} x {columns} matrix{chosen}."
    if rows == labels:
        return matrix.T, f"Tokens are the {rows} rows of a {rows} x {columns} matrix, which was transposed."
    raise ValueError(
        f"tokens are {rows} x {columns} but there are {labels} labels; one side must be their number"
    )


def _refuse_tokens(tokens: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
    p, n = tokens.shape
    if p < 2:
        raise ValueError(f"tokens need at least 2 dimensions, got p = {p}")
    if n < 4:
        raise ValueError(f"at least 4 tokens are needed, got n = {n}")
    smaller = min(np.count_nonzero(labels > 0), np.count_nonzero(labels < 0))
    if smaller < 2:
        raise ValueError(f"each label needs at least 2 tokens, the rarer one has {smaller}")
    constant = np.flatnonzero(tokens.max(axis=1) == tokens.min(axis=1))
    if constant.size:
        raise ValueError(
            f"{constant.size} of {p} dimensions never vary, the first is {constant[0]}; leave them out"
        )


def _fitting(values: ArrayLike, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = _real(values, name, len(shape))
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape} to fit the tokens, got {array.shape}")
    return array


def _covariance(values: ArrayLike, p: int) -> NDArray[np.float64]:
    cov = _fitting(values, "background_cov", (p, p))
    variances = np.diagonal(cov)
    if not variances.min() > 0:
        raise ValueError(
            f"background_cov must have a positive diagonal, got {variances.min():.3g} at {variances.argmin()}"
        )
    deviation = np.sqrt(variances)
    asymmetry = np.abs((cov - cov.T) / deviation / deviation[:, None]).max()
    if asymmetry > ASYMMETRY:
        raise ValueError(f"background_cov must be symmetric, got correlations that differ by {asymmetry:.3g}")
    return cov / 2 + cov.T / 2


def _duplicates(tokens: NDArray[np.float64]) -> tuple[str, ...]:
    # 64-bit hashes, not the columns themselves: a chance collision is less likely than n^2 / 2^65
    repeated = tokens.shape[1] - len({hash(token.tobytes()) for token in tokens.T})
    return (f"{repeated} tokens repeat an earlier one exactly.",) if repeated else ()
