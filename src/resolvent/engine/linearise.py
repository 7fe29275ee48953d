"""Linearisation: a rational expression is a block of the inverse of a matrix that is linear in its random
matrices.

An expression e is kept as a system [[a, b], [c, d]] of linear blocks with Schur complement e = a - b d^-1 c:

    sum        the systems side by side
    product    x1 x2 x3 = [[0, 0, x1], [0, x2, -1], [x3, -1, 0]]
    inverse    inv(e) = [[0, 1, 0], [1, -a, -b], [0, -c, -d]]
    x + x^T    [[a + a^T, b, c^T], [b^T, 0, d^T], [c, d, 0]]

A symmetric expression gets a symmetric system (a palindrome x^T s x is one already), any other expression the
dilation [[0, L^T], [L, 0]]. Blocks whose rows hold multiples of the identity only are then eliminated.
Sources: Haagerup and Thorbjornsen 2005; Anderson 2013; Helton, Mai and Speicher 2018; theory page, section 9.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from resolvent.engine.entrywise import Entrywise
from resolvent.engine.expression import Expression, Identity, Inverse, Product, Sum, transpose_invariant
from resolvent.engine.scalar import Dim, Scalar, number

ONE, MINUS = number(1.0), number(-1.0)
Block = dict[Expression, Scalar]


@dataclass
class System:
    """Linear blocks; entries[i, j] maps a leaf to its coefficient. Row and column 0 are the outside."""

    rows: list[Dim]
    cols: list[Dim]
    entries: dict[tuple[int, int], Block] = field(default_factory=dict)

    def put(self, i: int, j: int, leaf: Expression, value: Scalar) -> None:
        """Add value * leaf to a block."""
        block = self.entries.setdefault((i, j), {})
        total = block.get(leaf, number(0.0)) + value
        if total.terms:
            block[leaf] = total
        else:
            block.pop(leaf, None)

    def insert(self, part: System, row: int, col: int, scale: Scalar = ONE) -> None:
        """Place scale times the expression of another system at (row, col)."""
        at_row = [row, *range(len(self.rows), len(self.rows) + len(part.rows) - 1)]
        at_col = [col, *range(len(self.cols), len(self.cols) + len(part.cols) - 1)]
        self.rows += part.rows[1:]
        self.cols += part.cols[1:]
        for (i, j), block in part.entries.items():
            for leaf, value in block.items():
                self.put(at_row[i], at_col[j], leaf, value * scale if i == 0 else value)

    def insert_both(self, part: System, row: int, col: int, scale: Scalar = ONE) -> None:
        """Place scale times an expression at (row, col) and its transpose at (col, row)."""
        start = len(self.rows)
        inner_cols, inner_rows = part.cols[1:], part.rows[1:]
        at_col = [col, *range(start, start + len(inner_cols))]
        at_row = [row, *range(start + len(inner_cols), start + len(inner_cols) + len(inner_rows))]
        self.rows += inner_cols + inner_rows
        self.cols += inner_cols + inner_rows
        for (i, j), block in part.entries.items():
            for leaf, value in block.items():
                scaled = value * scale if i == 0 else value
                self.put(at_row[i], at_col[j], leaf, scaled)
                self.put(at_col[j], at_row[i], leaf.T, scaled)


def _inverse(part: System) -> System:
    """System of the inverse."""
    system = System([part.cols[0], *part.rows], [part.rows[0], *part.cols])
    system.put(0, 1, Identity(part.cols[0]), ONE)
    system.put(1, 0, Identity(part.rows[0]), ONE)
    for (i, j), block in part.entries.items():
        for leaf, value in block.items():
            system.put(i + 1, j + 1, leaf, -value)
    return system


def _chain(factors: tuple[Expression, ...]) -> System:
    """The frame of a product: -1 on the antidiagonal below which the factors stand."""
    middles = [factor.cols for factor in factors[:-1]]
    return System([factors[0].rows, *middles], [factors[-1].cols, *reversed(middles)], {})


def general(expression: Expression) -> System:
    """System of any expression."""
    match expression:
        case Entrywise():
            return general(expression.linearised)
        case Sum():
            system = System([expression.rows], [expression.cols])
            for term, value in expression.terms:
                system.insert(general(term), 0, 0, value)
            return system
        case Product():
            system, count = _chain(expression.factors), len(expression.factors)
            for k in range(1, count):
                system.put(k, count - k, Identity(system.rows[k]), MINUS)
            for k, factor in enumerate(expression.factors):
                system.insert(general(factor), k, count - 1 - k)
            return system
        case Inverse():
            return _inverse(general(expression.argument))
    return System([expression.rows], [expression.cols], {(0, 0): {expression: ONE}})


def symmetric(expression: Expression, scale: Scalar = ONE) -> System:
    """Symmetric system of scale times a symmetric expression."""
    match expression:
        case Entrywise():
            return symmetric(expression.linearised, scale)
        case Sum():
            return _symmetric_sum(expression, scale)
        case Product():
            return _palindrome(expression, scale)
        case Inverse():
            return _inverse(symmetric(expression.argument, 1 / scale))
    return System([expression.rows], [expression.cols], {(0, 0): {expression: scale}})


def _symmetric_sum(expression: Sum, scale: Scalar) -> System:
    system = System([expression.rows], [expression.cols])
    seen: set[Expression] = set()
    for term, value in expression.terms:
        if transpose_invariant(term):
            system.insert(symmetric(term, value * scale), 0, 0)
        elif term not in seen:
            system.insert_both(general(term), 0, 0, value * scale)
            seen.add(term.T)
    return system


def _palindrome(expression: Product, scale: Scalar) -> System:
    factors = expression.factors
    system, count = _chain(factors), len(factors)
    for k in range(1, count):
        centre = 2 * k == count
        system.put(k, count - k, Identity(system.rows[k]), -1 / scale if centre else MINUS)
    for k in range(count // 2):
        system.insert_both(general(factors[k]), k, count - 1 - k)
    if count % 2:
        system.insert(symmetric(factors[count // 2], scale), count // 2, count // 2)
    return system


# ---------------------------------------------------------------- reduction


def _scalar_entry(block: Block) -> float | None:
    """The number c if the block is c times the identity, None otherwise."""
    ((leaf, value),) = block.items() if len(block) == 1 else ((None, ONE),)
    return value.constant if isinstance(leaf, Identity) else None


def _identity_only(system: System, i: int) -> bool:
    blocks = [block for (row, _), block in system.entries.items() if row == i and block]
    return all(all(isinstance(leaf, Identity) for leaf in block) for block in blocks)


def _pivot(system: System, kept: int) -> tuple[int, int] | None:
    """A block i of identities only and a partner j, or i itself, whose joint Schur complement is linear."""
    for i in range(kept, len(system.rows)):
        if not _identity_only(system, i):
            continue
        own = system.entries.get((i, i), {})
        if own:
            if _scalar_entry(own) is not None:
                return i, i
            continue
        for j in range(kept, len(system.rows)):
            if j != i and _scalar_entry(system.entries.get((i, j), {})) is not None:
                return i, j
    return None


def _eliminate(system: System, i: int, j: int) -> System:
    """Schur complement of the blocks i and j, row i holding identities only."""
    pivot = _scalar_entry(system.entries[i, j])
    assert pivot is not None
    keep = [k for k in range(len(system.rows)) if k not in (i, j)]
    reduced = System([system.rows[k] for k in keep], [system.cols[k] for k in keep])
    for new_r, r in enumerate(keep):
        for new_c, c in enumerate(keep):
            for leaf, value in system.entries.get((r, c), {}).items():
                reduced.put(new_r, new_c, leaf, value)
            left = _multiple(system.entries.get((r, i), {}))
            right = _multiple(system.entries.get((i, c), {}))
            terms: list[tuple[Expression, Scalar]]
            unit = Identity(reduced.rows[new_r])
            if i == j:
                terms = [(unit, -1 * left * right / pivot)]
            else:
                terms = [
                    (leaf, left * right * v / pivot**2) for leaf, v in system.entries.get((j, j), {}).items()
                ]
                terms += [(leaf, -1 * left * v / pivot) for leaf, v in system.entries.get((j, c), {}).items()]
                terms += [
                    (leaf, -1 * right * v / pivot) for leaf, v in system.entries.get((r, j), {}).items()
                ]
            for leaf, value in terms:
                if value.terms:
                    reduced.put(new_r, new_c, leaf, value)
    return reduced


def _multiple(block: Block) -> Scalar:
    return next(iter(block.values()), number(0.0))


def reduce(system: System, kept: int) -> System:
    """Eliminate blocks of a symmetric system that hold identities only; the first `kept` blocks stay."""
    while (pivot := _pivot(system, kept)) is not None:
        system = _eliminate(system, *pivot)
    return system


def linearise(expression: Expression) -> tuple[System, tuple[int, int]]:
    """Symmetric system L and the block (i, j) of its inverse that the expression is."""
    if transpose_invariant(expression):
        if isinstance(expression, Inverse):
            return reduce(symmetric(expression.argument), 1), (0, 0)
        return reduce(_inverse(symmetric(expression)), 1), (0, 0)
    part = general(expression.argument) if isinstance(expression, Inverse) else _inverse(general(expression))
    system = System([part.cols[0], part.rows[0]], [part.cols[0], part.rows[0]])
    # blocks 0 and 1 are the outside of L^T and of L: column 0 and row 0 of the system
    system.insert_both(part, 1, 0)
    return reduce(system, 2), (0, 1)
