"""Shares of a signal in a head's leading spaces: planted, absent, and under the null."""

import numpy as np
import pytest

from resolvent.checkpoints import Head, signal_shares, singular_directions

D, D_HEAD = 16, 4


def heads_at_random(count, seed=0, layers=1):
    rng = np.random.default_rng(seed)
    return [
        Head(i % layers, i, *rng.normal(size=(2, D_HEAD, D)), None, None, "toy", None, "memory")
        for i in sorted(range(count), key=lambda i: i % layers)
    ]


def tokens_with_signal(strength, n=200, seed=1):
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=D)
    mu *= strength / np.linalg.norm(mu)
    labels = np.repeat([1, -1], [n // 4, n - n // 4])
    return np.outer(mu, labels) + rng.normal(size=(D, n)) + 3, labels, mu


def test_a_head_that_looks_at_the_signal_is_found_on_the_right_side():
    X, y, mu = tokens_with_signal(3)
    heads = heads_at_random(8)
    looking = heads[5]
    W_K = looking.W_K.copy()
    W_K[0] += 40 * mu / np.linalg.norm(mu)
    heads[5] = Head(0, 5, looking.W_Q, W_K, None, None, "toy", None, "memory")
    got = signal_shares(heads, X, y, count=1, permutations=499)
    assert [one.head for one in got if one.adjusted_key < 0.05] == [5]
    assert not [one.head for one in got if one.adjusted_query < 0.05]
    assert got[5].key > 0.9
    assert got[5].p_key == got[5].adjusted_key == 1 / 500
    assert "over all 0.002" in str(got[5])


def test_numbers_are_those_of_the_definition():
    X, y, _ = tokens_with_signal(0.3, n=40)
    heads = heads_at_random(3)
    got = signal_shares(heads, X, y, count=2, permutations=99, seed=7)
    rng = np.random.default_rng(7)
    weights = np.where(y > 0, 0.5 / np.sum(y > 0), -0.5 / np.sum(y < 0))
    directions = [X[:, y > 0].mean(1) / 2 - X[:, y < 0].mean(1) / 2]
    directions += [X @ rng.permutation(weights) for _ in range(99)]
    highest, shares = np.full(100, -np.inf), {}
    for head in heads:
        U, _, V = np.linalg.svd(head.matrix())
        for side, space in (("key", U[:, :2]), ("query", V[:2].T)):
            share = np.array([np.sum((space.T @ mu) ** 2) / np.sum(mu**2) for mu in directions])
            shares[head.head, side] = share
            odds = np.log(share / (1 - share))
            highest = np.maximum(highest, (odds - odds.mean()) / odds.std())
    for one in got:
        for side in ("key", "query"):
            share = shares[one.head, side]
            assert getattr(one, side) == pytest.approx(share[0])
            assert getattr(one, f"expected_{side}") == pytest.approx(share[1:].mean())
            assert getattr(one, f"p_{side}") == pytest.approx(np.mean(share >= share[0] - 1e-12))
            odds = np.log(share / (1 - share))
            score = (odds[0] - odds.mean()) / odds.std()
            assert getattr(one, f"adjusted_{side}") == pytest.approx(np.mean(highest >= score - 1e-9))
            assert getattr(one, f"adjusted_{side}") >= getattr(one, f"p_{side}") / 2


def test_false_alarms_are_as_rare_as_promised():
    # Uneven tokens, labels at random: one head's p-values are uniform, and the level holds over all heads.
    heads, alarms, small = heads_at_random(5), 0, 0
    runs, level = 300, 0.1
    spread = np.linspace(0.2, 4, D)[:, None]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = spread * rng.normal(size=(D, 30))
        y = rng.permutation(np.repeat([1, -1], 15))
        got = signal_shares(heads, X, y, count=2, permutations=99, seed=seed)
        alarms += min(min(one.adjusted_key, one.adjusted_query) for one in got) <= level
        small += got[0].p_key <= level
    error = np.sqrt(level * (1 - level) / runs)
    assert alarms / runs == pytest.approx(level, abs=4 * error)
    assert small / runs == pytest.approx(level, abs=4 * error)


def test_each_layer_may_have_its_own_tokens():
    X, y, _ = tokens_with_signal(1)
    heads = heads_at_random(6, layers=2)
    same = signal_shares(heads, {0: X, 1: X}, y, permutations=49)
    assert same == signal_shares(heads, X, y, permutations=49)
    other = signal_shares(heads, {0: X, 1: X[::-1]}, y, permutations=49)
    assert [a.key == b.key for a, b in zip(same, other, strict=True)] == [one.layer == 0 for one in same]
    with pytest.raises(ValueError, match=r"tokens must have an entry for layer 1, got \[0\]"):
        signal_shares(heads, {0: X}, y)


def test_the_same_seed_gives_the_same_numbers_and_more_directions_hold_more():
    X, y, _ = tokens_with_signal(1)
    heads = heads_at_random(2)
    one = signal_shares(heads, X, y, permutations=49, seed=3)
    assert one == signal_shares(heads, X, y, permutations=49, seed=3)
    wide = signal_shares(heads, X, y, count=99, permutations=49)
    assert wide[0].count == D_HEAD
    assert wide[0].key >= signal_shares(heads, X, y, count=1, permutations=49)[0].key
    U, _, _ = singular_directions(heads[0], D_HEAD)
    assert wide[0].expected_key == pytest.approx(np.sum(U**2) / D, abs=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": np.ones((D + 1, 4))}, f"tokens must have {D} rows"),
        ({"tokens": np.ones(4)}, "tokens must be d_model x n"),
        ({"tokens": np.full((D, 4), np.nan)}, "tokens must be finite"),
        ({"labels": [1, -1, 1]}, "labels n long"),
        ({"labels": [1, 1, 1, 1]}, r"labels must be -1 and 1, both present, got \[1.0\]"),
        ({"labels": [0, 1, 0, 1]}, r"labels must be -1 and 1, both present, got \[0.0, 1.0\]"),
        ({"tokens": np.ones((D, 4))}, "a signal direction is zero"),
        ({"count": 0}, "count must be a positive integer, got 0"),
        ({"permutations": 1.5}, "permutations must be a positive integer, got 1.5"),
    ],
)
def test_wrong_input_is_one_line(change, message):
    rng = np.random.default_rng(0)
    given = {"tokens": rng.normal(size=(D, 4)), "labels": [1, -1, 1, -1], "permutations": 9}
    if "tokens" in change and change["tokens"].shape[0] == D + 1:
        change = {"tokens": rng.normal(size=(D + 1, 4))}
    with pytest.raises(ValueError, match=message):
        signal_shares(heads_at_random(1), **(given | change))
