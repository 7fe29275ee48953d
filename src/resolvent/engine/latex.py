"""LaTeX of a pencil and of the matrix Dyson equation that its block traces solve."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from resolvent.engine.expression import Expression, Identity
from resolvent.engine.letters import Random
from resolvent.engine.scalar import Dim, Scalar
from resolvent.engine.vectors import Outer

GREEK = "alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
Position = tuple[int, int]


def name_latex(name: str) -> str:
    """`sigma` -> \\sigma, `a1` -> a_{1}, anything else upright."""
    if name in GREEK.split():
        return "\\" + name
    split = re.fullmatch(r"([A-Za-z]+)_?(\d+)", name)
    if split:
        return f"{name_latex(split[1])}_{{{split[2]}}}"
    return name if len(name) == 1 else r"\mathrm{" + re.sub(r"([_^\[\]])", r"\\\1", name) + "}"


def scalar_latex(value: Scalar) -> str:
    """Sum of monomials, negative powers under a fraction bar."""
    parts = []
    for monomial, number in value.terms:
        above: list[str] = []
        below: list[str] = []
        for atom, exponent in monomial:
            base = f"({scalar_latex(atom)})" if isinstance(atom, Scalar) else name_latex(str(atom))
            power = abs(exponent)
            text = base if power == 1 else rf"\sqrt{{{base}}}" if power * 2 == 1 else f"{base}^{{{power}}}"
            (above if exponent > 0 else below).append(text)
        sign, size = ("-" if number < 0 else "+"), abs(number)
        top = " ".join([f"{size:.6g}"] * (size != 1 or not above) + above)
        parts.append(sign + (rf"\frac{{{top}}}{{{' '.join(below)}}}" if below else top))
    return "".join(parts).removeprefix("+") or "0"


def leaf_latex(leaf: Expression) -> str:
    """A matrix of the pencil."""
    if isinstance(leaf, Identity):
        return f"I_{{{leaf.rows}}}"
    if isinstance(leaf, Outer):
        return f"{name_latex(leaf.left.name)} {name_latex(leaf.right.name)}^\\top"
    name = str(leaf).removesuffix(".T")
    text = (
        rf"\Xi_{{{name_latex(leaf.source.function.__name__)}}}"
        if isinstance(leaf, Random) and leaf.source
        else name_latex(name)
    )
    return text + (r"^\top" if str(leaf).endswith(".T") else "")


def _factor(value: Scalar) -> str:
    text = scalar_latex(value)
    return text if len(value.terms) == 1 else f"({text})"


def _block(block: Sequence[tuple[Expression, Scalar]]) -> str:
    texts = []
    for leaf, value in block:
        scale = scalar_latex(value)
        scale = {"1": "", "-1": "-"}.get(scale, f"({scale})" if len(value.terms) > 1 else scale)
        texts.append(f"{scale} {leaf_latex(leaf)}".strip())
    return " + ".join(texts).replace("+ -", "- ") or r"\cdot"


def matrix_latex(
    dims: Sequence[Dim],
    entries: Mapping[Position, Sequence[tuple[Expression, Scalar]]],
    covariance: Mapping[tuple[Position, Position], Scalar],
    read: Position,
) -> str:
    """The aligned equations: L, T = (A - eta(T))^-1, the entries of eta, and the block to read."""
    size = len(dims)
    rows = (" & ".join(_block(entries.get((i, j), ())) for j in range(size)) for i in range(size))
    matrix = r"\begin{pmatrix} " + r" \\ ".join(rows) + r" \end{pmatrix}"
    lines = [f"L &= {matrix}"]
    lines.append(
        r"T &= \bigl(A - \eta(T)\bigr)^{-1}, \quad A = \text{deterministic part of } L, \quad "
        + _normalisation(dims)
    )
    for write in sorted({w for w, _ in covariance}):
        terms = [
            f"{_factor(value)} T_{{{r[0] + 1}{r[1] + 1}}}"
            for (w, r), value in sorted(covariance.items())
            if w == write
        ]
        total = " + ".join(terms).replace("+ -", "- ")
        lines.append(rf"\eta(T)_{{{write[0] + 1}{write[1] + 1}}} &= {total}")
    lines.append(rf"\tfrac1{{{dims[read[0]]}}} \operatorname{{tr}} Q &\to T_{{{read[0] + 1}{read[1] + 1}}}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def _normalisation(dims: Sequence[Dim]) -> str:
    names = ", ".join(f"d_{{{k + 1}}} = {dim}" for k, dim in enumerate(dims))
    return rf"T_{{ij}} = \tfrac1{{d_i}} \operatorname{{tr}} (L^{{-1}})_{{ij}}, \; {names}"
