"""Laws of the scores of tokens that are not Gaussian, and errors predicted with them."""

import numpy as np
import pytest
from refined_simulation import probe

from resolvent.equivalents.refined import refined_errors, token_classes
from resolvent.equivalents.refined.score_law import score_law, similarity
from resolvent.equivalents.refined.tables import tables
from resolvent.nonlinearity import nonlinearity


def two_shapes(rng, p, n, spread):
    """Tokens with a weak mean whose covariance has its large eigenvalues elsewhere for either label."""
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    large = np.where((np.arange(p) % 2 == 0)[:, None] == (y > 0.0), 1.0 + spread, 1.0 - spread)
    return np.sqrt(large) * rng.normal(size=(p, n)) + np.outer(np.full(p, np.sqrt(0.5 / p)), y), y


def naive_scores(outside):
    u = outside / np.linalg.norm(outside, axis=0)
    return np.sqrt(len(u)) * u.T @ u


def test_the_law_has_the_moments_of_the_pairs():
    rng = np.random.default_rng(0)
    X, y = two_shapes(rng, 20, 90, 0.5)
    X[:, 1] = X[:, 3] + 0.1 * X[:, 1]  # a pair of near-duplicates
    group = np.where(y > 0.0, 0, 1)
    law, x = score_law(X, group), naive_scores(X)
    for g, h in ((0, 0), (0, 1), (1, 1)):
        block = x[np.ix_(group == g, group == h)]
        pairs = block[~np.eye(len(block), dtype=bool)] if g == h else block.ravel()
        share, centre, width = (part[:, g, h] for part in (law.share, law.centre, law.width))
        assert share.sum() == pytest.approx(1.0)
        assert share @ centre == pytest.approx(0.0, abs=1e-9)
        assert law.spread()[g, h] == pytest.approx(pairs.std(), rel=0.01)
        kurtosis = share @ (centre**4 + 6 * centre**2 * width**2 + 3 * width**4)
        assert kurtosis == pytest.approx(((pairs - pairs.mean()) ** 4).mean(), rel=0.1)
    assert law.spread()[0, 0] > 1.2 * law.spread()[0, 1]


def test_similarity_leaves_the_token_itself_out():
    X, y = two_shapes(np.random.default_rng(1), 8, 12, 0.5)
    x2 = naive_scores(X) ** 2
    for j in (0, 5, 11):
        other = np.arange(12) != j
        plus, minus = (x2[other & (y == sign), j].mean() for sign in (1.0, -1.0))
        assert similarity(X, y)[j] == pytest.approx(plus - minus)


def test_tables_are_moments_of_the_mixture():
    X, y = two_shapes(np.random.default_rng(2), 16, 80, 0.5)
    key, query = np.eye(16)[0], 0.7 * np.eye(16)[1]
    classes = token_classes(X, y, key=key, query=query, quantiles=(2, 1, 1, 1, 1))
    f = nonlinearity("relu")
    found, delta, rests = tables(classes, f, 0.0, False), classes.scores(), classes.rests()
    xi = (np.arange(-90000, 90000) + 0.5) / 1e4
    density = np.exp(-(xi**2) / 2) / np.sqrt(2 * np.pi) / 1e4
    for a, b in ((0, 0), (0, 3), (6, 1)):
        one = other = m0 = slope = square = back = back_slope = cross = 0.0
        for share, centre, width in zip(
            *(q[:, a, b] for q in (rests.share, rests.centre, rests.width)), strict=True
        ):
            x = centre + width * xi
            one, other = f(delta[a, b] + x), f(delta[b, a] + x)
            m0, back = m0 + share * density @ one, back + share * density @ other
            slope, back_slope = (
                slope + share * density @ (x * one),
                back_slope + share * density @ (x * other),
            )
            square, cross = square + share * density @ one**2, cross + share * density @ (one * other)
        variance = rests.spread()[a, b] ** 2
        assert found.m0[a, b] == pytest.approx(m0, abs=1e-6)
        assert found.m1[a, b] == pytest.approx(slope / variance, abs=1e-6)
        assert found.v[a, b] == pytest.approx(square - m0**2 - slope**2 / variance, abs=1e-5)
        assert found.kap[a, b] == pytest.approx(cross - m0 * back - slope * back_slope / variance, abs=1e-5)


def gaps(draw, f, seeds=3, p=48, n=480):
    """Mean and standard error of predicted/measured - 1, with the laws of the scores and without."""
    out = []
    for seed in range(seeds):
        X, y = draw(np.random.default_rng(seed), p, n)
        K = f(X.T @ X / np.sqrt(p)) / np.sqrt(p)
        np.fill_diagonal(K, 0.0)
        measured = probe(X @ K, X @ K, y, y, 0.1)[0]
        ways = (token_classes(X, y, quantiles=(3, 2, 2), gaussian=g) for g in (False, True))
        out.append([refined_errors(classes, ridge=0.1, f=f).train / measured - 1.0 for classes in ways])
    return np.mean(out, axis=0), np.std(out, axis=0, ddof=1) / np.sqrt(seeds)


def test_an_even_part_reads_the_label_off_the_covariance():
    gap, error = gaps(lambda rng, p, n: two_shapes(rng, p, n, 0.5), nonlinearity("relu"))
    assert abs(gap[0]) < 4.0 * error[0] + 0.03
    assert gap[1] > 0.2


def test_gaussian_scores_need_no_law():
    def draw(rng, p, n):
        return two_shapes(rng, p, n, 0.0)

    gap, error = gaps(draw, nonlinearity("tanh"))
    assert (np.abs(gap) < 4.0 * error + 0.03).all(), (gap, error)
