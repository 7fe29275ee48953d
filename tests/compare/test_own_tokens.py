"""The user's own tokens: the errors retyped from raw tokens, what each split may see, and the real words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resolvent.compare import compare_tokens, own_tokens
from resolvent.dataset import LabelledTokens, demo_tokens, estimate, standardise
from resolvent.predict import predict
from resolvent.setting import Setting, Tokens, Weights
from resolvent.simulate.draws import Interrupted, stream


def raw(p=12, n=60, snr=3.0, seed=0, positive=0.5):
    """Tokens off centre and out of scale, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) < positive * n, 1.0, -1.0)[rng.permutation(n)]
    tokens = rng.standard_normal((p, n)) + np.outer(np.full(p, np.sqrt(snr / p)), labels)
    return 7.0 + 3.0 * tokens, labels


def labelled(**keywords):
    return LabelledTokens.from_arrays(*raw(**keywords))


def naive_fit(x, y):
    """Midpoint, scale, signal and snr of tokens, from the definitions of sections 1 and 2."""
    p, n = x.shape
    plus, minus = x[:, y > 0].mean(1), x[:, y < 0].mean(1)
    noise = x - np.where(y > 0, plus[:, None], minus[:, None])
    scale = np.sqrt(np.sum(noise**2) / (p * (n - 2)))
    half = (plus - minus) / 2 / scale
    snr = half @ half - p * (1 / np.sum(y > 0) + 1 / np.sum(y < 0)) / 4
    return (plus + minus) / 2, scale, half / np.linalg.norm(half), max(snr, 0.0)


def naive_errors(x, y, fresh, targets, align, ridge, skip=0.0):
    """Training and test error of attention, then of linear regression, by matrices and their inverses."""
    midpoint, scale, direction, snr = naive_fit(x, y)
    z, new = (x - midpoint[:, None]) / scale, (fresh - midpoint[:, None]) / scale
    p, n = z.shape
    w = align * np.sqrt(snr) * direction
    m = np.eye(p) + np.outer(w, w)
    k = np.tanh(z.T @ m @ z / np.sqrt(p)) / np.sqrt(p)
    np.fill_diagonal(k, 0.0)
    k_new = np.tanh(z.T @ m @ new / np.sqrt(p)) / np.sqrt(p)
    errors = []
    for h, h_new in ((z @ k + skip * z, z @ k_new + skip * new), (z, new)):
        probe = np.linalg.inv(h @ h.T + n * ridge * np.eye(p)) @ h @ y
        errors.append([np.mean((y - h.T @ probe) ** 2), np.mean((targets - h_new.T @ probe) ** 2)])
    return np.array(errors)


@pytest.mark.parametrize(("align", "skip", "positive"), [(0.0, 0.0, 0.5), (1.5, 0.0, 0.5), (0.7, -0.4, 0.3)])
def test_errors_retyped_from_raw_tokens(align, skip, positive):
    x, y = raw(positive=positive)
    setting = Setting(weights=Weights.aligned(align), ridge=0.05, skip=skip)
    found = compare_tokens(LabelledTokens.from_arrays(x, y), setting, draws=3, seed=11)
    np.testing.assert_allclose(found.train, naive_errors(x, y, x, y, align, 0.05, skip)[:, 0], rtol=1e-9)
    for index in range(3):
        order = stream(11, index).permutation(60)
        classes = [order[y[order] == label] for label in (-1.0, 1.0)]
        train = np.concatenate([tokens[: round(0.8 * len(tokens))] for tokens in classes])
        test = np.setdiff1d(order, train)
        naive = naive_errors(x[:, train], y[train], x[:, test], y[test], align, 0.05, skip)
        np.testing.assert_allclose(found.test[index], naive[:, 1], rtol=1e-9)


def test_predictions_are_those_of_the_estimates():
    data = labelled()
    found = compare_tokens(data, Setting(weights=Weights.aligned(0.5)), draws=2)
    e = estimate(standardise(data))
    for prediction, ratio in ((found.at_all, 12 / 60), (found.at_split, 12 / 48)):
        wanted = predict(Setting(Tokens(ratio, e.snr, e.label_mean), Weights.aligned(0.5)), p=12)
        assert prediction.attention.train == wanted.attention.train
        assert prediction.linear.test == wanted.linear.test


def test_permuted_labels_leave_nothing_to_gain(monkeypatch):
    """Aligned with a direction that has seen no test label, test errors stay above 1, that of answering 0.

    The second half is the mutation: with the direction of all tokens the same errors fall below 1.
    """
    rng = np.random.default_rng(0)
    sets = []
    for seed in range(3):
        x, y = raw(p=60, n=60, seed=seed)
        sets.append(LabelledTokens.from_arrays(x, rng.permutation(y)))
    setting = Setting(weights=Weights.aligned(3.0))
    honest = [compare_tokens(data, setting, draws=5).test[:, 0].mean() for data in sets]
    assert min(honest) > 1.1
    leaking = []
    for data in sets:
        everything = estimate(standardise(data))
        seen = replace(everything, snr=everything.snr_plugin)
        monkeypatch.setattr(own_tokens, "estimate", lambda _, seen=seen: seen)
        leaking.append(compare_tokens(data, setting, draws=5).test[:, 0].mean())
    assert np.mean(leaking) < 1.0


def test_a_split_does_not_depend_on_labels_it_leaves_out():
    """Held-out labels enter the error alone: flipping them, both errors add up to 2 + 2 E out^2."""
    standard = standardise(labelled())
    train, test = standard.split(np.arange(48), np.arange(48, 60))
    flipped = replace(test, labels=-test.labels)
    setting, ridge = Setting(weights=Weights.aligned(1.0)), np.array([0.1])
    first, second = (own_tokens._test_error(setting, train, part, ridge) for part in (test, flipped))
    silent = own_tokens._test_error(setting, train, replace(test, labels=0.0 * test.labels), ridge)
    np.testing.assert_allclose(first + second, 2.0 + 2.0 * silent, rtol=1e-12)


def test_splits_do_not_depend_on_the_workers(monkeypatch):
    results = []
    for workers in (1, 4):
        monkeypatch.setattr(own_tokens, "workers_for", lambda *_, workers=workers: workers)
        results.append(compare_tokens(labelled(), Setting(weights=Weights.aligned(1.0)), draws=6, seed=2))
    np.testing.assert_array_equal(results[0].test, results[1].test)
    np.testing.assert_array_equal(results[0].train, results[1].train)
    other = compare_tokens(labelled(), Setting(weights=Weights.aligned(1.0)), draws=6, seed=3)
    assert not np.array_equal(other.test, results[0].test)
    assert len(np.unique(other.test[:, 0])) == 6


@pytest.mark.parametrize(("rare", "trained"), [(2, 2), (3, 2), (10, 8)])
def test_a_rare_class_keeps_its_share_of_every_split(rare, trained):
    data = labelled(n=100, positive=rare / 100)
    found = compare_tokens(data, draws=20)
    assert found.plan.sizes == (round(0.8 * (100 - rare)), trained)
    assert found.plan.size == sum(found.plan.sizes)
    assert np.isfinite(found.test).all()


def test_five_tokens_are_the_fewest():
    x, _ = raw(p=3, n=5)
    x[:, :2] += 1.0
    labels = np.array([1, 1, -1, -1, -1])
    assert compare_tokens(LabelledTokens.from_arrays(x, labels), draws=2).plan.sizes == (2, 2)
    with pytest.raises(ValueError, match=r"^tokens must be at least 5, .* got 4$"):
        compare_tokens(LabelledTokens.from_arrays(x[:, :4], labels[:4]), draws=2)


def test_label_names_do_not_matter():
    x, y = raw(positive=0.4)
    setting = Setting(weights=Weights.aligned(1.0), nonlinearity="relu")
    found = compare_tokens(LabelledTokens.from_arrays(x, y), setting, draws=2)
    for minus, plus in ((0, 1), ("bad", "good"), (False, True), (2.5, 7.0)):
        named = LabelledTokens.from_arrays(x, np.where(y > 0, plus, minus))
        again = compare_tokens(named, setting, draws=2)
        np.testing.assert_array_equal(again.test, found.test)
        assert f"Label {plus!r} is +1 and {minus!r} is -1." in str(again)
    swapped = compare_tokens(LabelledTokens.from_arrays(x, np.where(y > 0, "a", "b")), setting, draws=2)
    np.testing.assert_allclose(swapped.train, found.train, rtol=1e-9)
    assert swapped.estimate.label_mean == -found.estimate.label_mean


def test_whitening_uses_the_background_unless_told():
    x, y = raw()
    stretched = np.linspace(1.0, 5.0, 12)[:, None] * x
    cov = np.diag(np.linspace(1.0, 5.0, 12) ** 2)
    data = LabelledTokens.from_arrays(stretched, y, background_cov=cov)
    plain = compare_tokens(LabelledTokens.from_arrays(x, y), draws=2)
    np.testing.assert_allclose(compare_tokens(data, draws=2).test, plain.test, rtol=1e-8)
    np.testing.assert_allclose(compare_tokens(data, whiten="background", draws=2).test, plain.test, rtol=1e-8)
    left = compare_tokens(data, whiten="none", draws=2)
    assert not np.allclose(left.test, plain.test, rtol=1e-2)
    assert "Not whitened" in str(left)


def test_a_winner_needs_numbers():
    found = compare_tokens(labelled(), draws=3)
    nothing = replace(found, train=np.array([np.nan, 0.5]), test=np.full((3, 2), np.nan))
    assert nothing.winner == {"train": "tie", "test": "tie"}
    close = replace(found, train=np.array([0.5, 0.5]), test=np.array([[0.5, 0.4], [0.4, 0.5], [0.5, 0.5]]))
    assert close.winner == {"train": "tie", "test": "tie"}
    apart = replace(found, train=np.array([0.4, 0.5]), test=np.array([[0.5, 0.4], [0.6, 0.5], [0.7, 0.59]]))
    assert apart.winner == {"train": "attention", "test": "linear"}
    same = replace(found, test=np.full((3, 2), 0.5))
    assert same.as_dict()["z"]["attention"] == {"train": None, "test": None}


def test_an_interrupt_holds_the_splits_that_were_finished(monkeypatch):
    whole = compare_tokens(labelled(), draws=6)

    def interrupted(task, draws, seed, *_):
        raise Interrupted(np.array([task(stream(seed, i), None) for i in range(3)]), draws)

    monkeypatch.setattr(own_tokens, "run_draws", interrupted)
    with pytest.raises(Interrupted, match=r"^interrupted after 3 of 6 draws$") as stop:
        compare_tokens(labelled(), draws=6)
    np.testing.assert_array_equal(stop.value.record.test, whole.test[:3])
    assert stop.value.record.as_dict()["setting"]["draws"] == 3


def test_more_ridges_of_the_same_splits():
    found = compare_tokens(labelled(), Setting(weights=Weights.aligned(1.0)), draws=3)
    train, test = found.over_ridges(np.array([0.01, 0.1, 1.0]))
    np.testing.assert_allclose(train[:, 1], found.train, rtol=1e-12)
    np.testing.assert_allclose(test[:, :, 1], found.test, rtol=1e-12)
    assert np.all(np.diff(train, axis=1) > 0.0)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"draws": 1}, "draws must be at least 2, got 1"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"train_share": 0.99}, "train_share must be between 0.1 and 0.95, got 0.99"),
        ({"whiten": "pca"}, "whiten must be one of"),
        ({"setting": Setting(Tokens(label_noise=0.1))}, "label_noise must be 0"),
        ({"setting": Setting(ridge=np.ones(2))}, "compare_tokens takes one setting"),
        (
            {"setting": Setting(weights=Weights.from_angles(key_norm=1, query_norm=1))},
            "weights must be none, aligned or a matrix",
        ),
    ],
)
def test_wrong_arguments(keywords, message):
    with pytest.raises(ValueError, match=message):
        compare_tokens(labelled(), **keywords)


@pytest.fixture(scope="module")
def words():
    """The real words with weights off and aligned."""
    data = demo_tokens()
    return [compare_tokens(data, Setting(weights=Weights.aligned(a)), draws=2) for a in (0.0, 1.0)]


def test_the_real_words(words):
    """Their page: attention loses with weights off and beats linear regression once aligned."""
    off, aligned = words
    assert off.train == pytest.approx([0.2064, 0.1808], abs=1e-3)
    assert aligned.train == pytest.approx([0.1703, 0.1808], abs=1e-3)
    assert off.winner["train"] == "linear"
    assert aligned.winner["train"] == "attention"
    assert "attention loses: its weights do not point at the signal" in off.reason
    assert "linear regression loses: aligned weights amplify the signal" in aligned.reason


def test_what_the_real_words_break(words):
    text = str(words[1])
    assert "MiniLM embeddings" in text
    assert "Whitened by the background covariance" in text
    assert "Unequal norms" in text
    assert "Noise is not white" in text
