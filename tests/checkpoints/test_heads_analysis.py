"""Every number of a head's summary against the d x d matrix itself."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_models import model_path

from resolvent.checkpoints import Head, read_heads, singular_directions, summarise_heads


def head_of(K, Q, *, layer=0, head=0, gain=None):
    return Head(layer, head, np.asarray(Q), np.asarray(K), None, None, "toy", gain, "memory", ("a note",))


def random_head(d_head, d, seed, **options):
    rng = np.random.default_rng(seed)
    return head_of(rng.normal(size=(d_head, d)), rng.normal(size=(d_head, d)), **options)


def summary_of(head, **options):
    (summary,) = summarise_heads([head], **options)
    return summary


@pytest.mark.parametrize("gain", [False, True])
@pytest.mark.parametrize(("d_head", "d"), [(4, 13), (5, 8), (6, 6), (1, 3)])
def test_against_the_whole_matrix(d_head, d, gain):
    g = np.random.default_rng(9).normal(size=d)
    head = random_head(d_head, d, seed=d, gain=g)
    M = head.W_K.T @ head.W_Q
    M = np.diag(g) @ M @ np.diag(g) if gain else M
    np.testing.assert_allclose(head.matrix(gain=gain), M)
    values = np.linalg.svd(M, compute_uv=False)
    got = summary_of(head, gain=gain)
    frobenius = np.sqrt(np.sum(M**2))
    assert got.norm == pytest.approx(frobenius)
    assert got.trace == pytest.approx(np.trace(M))
    assert got.alignment == pytest.approx(np.trace(M) / np.sqrt(d_head) / frobenius)
    assert got.stable_rank == pytest.approx(frobenius**2 / values[0] ** 2)
    assert got.symmetry == pytest.approx(np.trace(M @ M) / frobenius**2)
    counts = [2**i for i in range(9) if 2**i <= d_head]
    assert got.energy == pytest.approx([np.sum(values[:count] ** 2) / frobenius**2 for count in counts])
    assert got.floor == pytest.approx(np.sqrt(1 - d_head / d))
    assert (got.gain, got.d_head, got.d_model, got.notes) == (gain, d_head, d, ("a note",))


def misfit(M, c, rank):
    values = np.linalg.svd(M - c * np.eye(len(M)), compute_uv=False)
    return np.sqrt(np.sum(values[rank:] ** 2) / np.sum(M**2))


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("d_head", "d", "symmetric"), [(4, 13, False), (4, 13, True), (5, 8, False), (6, 6, False), (8, 40, True)]
)
def test_the_best_shift_is_the_best_of_a_fine_scan(d_head, d, symmetric, rank):
    for seed in range(5):
        head = random_head(d_head, d, seed)
        if symmetric:  # of either sign, so that what to remove is a real choice
            signs = np.where(np.arange(d_head) % 2, 1.0, -1.0)
            head = head_of(head.W_K, signs[:, None] * head.W_K)
        M, got = head.matrix(), summary_of(head, fit_rank=rank)
        assert got.misfit == pytest.approx(misfit(M, got.shift, rank), abs=1e-7)
        reach = (abs(np.trace(M)) + rank * np.linalg.norm(M, 2)) / max(d - rank, 1)
        scan = min(misfit(M, c, rank) for c in np.linspace(-reach, reach, 1001))
        assert got.misfit <= scan + 1e-9


def test_no_head_comes_nearer_to_the_identity_than_the_floor():
    for seed in range(20):
        got = summary_of(random_head(3, 10, seed), fit_rank=0)
        assert got.misfit >= got.floor
        assert abs(got.alignment) <= 1
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 3)))
    for sign in (1, -1):
        got = summary_of(head_of(basis.T, sign * 2 * basis.T), fit_rank=0)
        assert got.alignment == pytest.approx(sign)
        assert got.misfit == pytest.approx(got.floor)
        assert got.shift == pytest.approx(sign * 2 * 3 / 10)


def test_the_papers_weights_are_recognised():
    # With d_head = d a head can be the paper's I + w_K w_Q' itself; then nothing is left over.
    rng = np.random.default_rng(4)
    d = 12
    M = 0.7 * np.eye(d) + np.outer(rng.normal(size=d), rng.normal(size=d))
    got = summary_of(head_of(np.eye(d), M), fit_rank=1)
    assert got.shift == pytest.approx(0.7, abs=1e-6)
    assert got.misfit == pytest.approx(0, abs=1e-5)


def test_a_fit_of_the_heads_own_rank_is_exact_without_a_shift():
    got = summary_of(random_head(4, 30, 1), fit_rank=4)
    assert got.shift == pytest.approx(0, abs=1e-9)
    assert got.misfit == pytest.approx(0, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 10))
def test_only_the_product_of_the_factors_counts(seed, scale):
    head = random_head(4, 11, seed)
    A = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0] * scale
    other = head_of(A @ head.W_K, np.linalg.inv(A).T @ head.W_Q)
    one, two = summary_of(head).to_dict(), summary_of(other).to_dict()
    for name in ("norm", "trace", "alignment", "stable_rank", "energy", "symmetry", "misfit"):
        assert one[name] == pytest.approx(two[name], rel=1e-6, abs=1e-6)


def test_chance_is_that_of_independent_keys_and_queries():
    # Independent Gaussian entries have E (tr M)^2 = d_head d and E |M|^2 = d_head d^2.
    d_head, d, count = 16, 200, 24
    heads = [random_head(d_head, d, seed, head=seed) for seed in range(count)]
    chance = next(iter(summarise_heads(heads))).chance
    pairs = count * (count - 1)
    assert chance**2 * d_head * d == pytest.approx(1, abs=4 * np.sqrt(2 / pairs) + 2 / d_head)


def test_chance_leaves_out_queries_that_share_the_keys():
    layer = [random_head(3, 9, seed, head=seed) for seed in range(4)]
    grouped = [head_of(layer[i // 2].W_K, layer[i].W_Q, head=i) for i in range(4)]

    def alignment(K, Q):
        M = K.T @ Q
        return np.trace(M) / np.sqrt(3) / np.linalg.norm(M)

    pairs = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)]
    expected = np.sqrt(np.mean([alignment(grouped[a].W_K, grouped[b].W_Q) ** 2 for a, b in pairs]))
    for got in summarise_heads(grouped):
        assert got.chance == pytest.approx(expected)
        assert got.beyond_chance == pytest.approx(got.alignment / expected)
    assert np.isnan(summary_of(grouped[0]).chance)


def test_chance_is_that_of_the_heads_own_layer():
    heads = [random_head(3, 9, seed, layer=seed // 3, head=seed % 3) for seed in range(6)]
    together = [got.chance for got in summarise_heads(heads)]
    apart = [got.chance for part in (heads[:3], heads[3:]) for got in summarise_heads(part)]
    assert together == apart
    assert together[0] != together[3]


def test_a_head_of_zeros_has_no_ratios():
    got = summary_of(head_of(np.zeros((2, 5)), np.ones((2, 5))))
    assert (got.norm, got.trace, got.shift) == (0, 0, 0)
    assert np.isnan([got.alignment, got.stable_rank, got.symmetry, got.misfit, *got.energy]).all()


def test_leading_directions_rebuild_the_matrix():
    head = random_head(4, 11, 3)
    U, s, V = singular_directions(head, 4)
    np.testing.assert_allclose(U * s @ V.T, head.matrix(), atol=1e-12)
    key, value, query = singular_directions(head)
    assert key.shape == query.shape == (11, 1)
    assert float(key[:, 0] @ head.matrix() @ query[:, 0]) == pytest.approx(float(value[0]))
    with pytest.raises(ValueError, match="count must be from 1 to d_head = 4, got 5"):
        singular_directions(head, 5)


def test_what_cannot_be_summarised_is_said():
    with pytest.raises(ValueError, match="no norm gain is known for memory"):
        summary_of(random_head(2, 5, 0), gain=True)
    with pytest.raises(ValueError, match="fit_rank must be an integer from 0 on, got -1"):
        summary_of(random_head(2, 5, 0), fit_rank=-1)
    with pytest.raises(ValueError, match="weights are not finite"):
        summary_of(head_of(np.full((2, 5), np.inf), np.ones((2, 5))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"W_K": np.ones((3, 5))}, r"d_head x d_model alike, got \(2, 5\) and \(3, 5\)"),
        ({"b_Q": np.ones(3)}, r"b_Q must have shape \(2,\), got \(3,\)"),
        ({"norm_gain": np.ones(4)}, r"norm_gain must have shape \(5,\), got \(4,\)"),
    ],
)
def test_heads_of_shapes_that_do_not_fit_are_refused(change, message):
    fields = {"W_Q": np.ones((2, 5)), "W_K": np.ones((2, 5)), "b_Q": None, "b_K": None, "norm_gain": None}
    with pytest.raises(ValueError, match=message):
        Head(layer=0, head=0, kind="toy", source="memory", **(fields | change))


def test_a_summary_prints_and_becomes_json():
    heads = [random_head(3, 9, seed, head=seed) for seed in range(3)]
    got = next(iter(summarise_heads(heads)))
    assert str(got).startswith("layer 0 head 0: |M| ")
    assert json.loads(json.dumps(got.to_dict()))["beyond_chance"] == got.beyond_chance


def test_trained_heads_are_far_from_the_identity_but_not_without_a_trace():
    got = list(summarise_heads(read_heads(model_path("minilm"))))
    assert len(got) == 72
    assert max(abs(one.alignment) for one in got) < 0.5
    assert min(one.misfit for one in got) > 0.79
    assert np.median([one.stable_rank for one in got]) == pytest.approx(12.3, abs=0.1)
    assert sum(abs(one.beyond_chance) > 3 for one in got) >= 60
    assert 0 < sum(one.trace < 0 for one in got) < 36
