"""Standardising: the convention is met, the map is affine, whitening is label-free, splits do not leak."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.dataset import LabelledTokens, Standardiser, StandardTokens, estimate, standardise

SEEDS = st.integers(0, 2**32 - 1)


def well_conditioned(rng, p):
    """A random mixing of p coordinates with singular values from 0.3 to 3."""
    left, right = (np.linalg.qr(rng.standard_normal((p, p)))[0] for _ in range(2))
    return left * np.linspace(0.3, 3, p) @ right


def labelled(seed, p=6, n=20, background=False, scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0)
    mix = well_conditioned(rng, p)
    tokens = scale * (mix @ rng.standard_normal((p, n)) + np.outer(rng.standard_normal(p), labels)) + offset
    return LabelledTokens.from_arrays(
        tokens, labels, background_cov=scale**2 * mix @ mix.T if background else None
    )


def within(tokens, labels):
    """Within-class covariance, written out."""
    p, n = tokens.shape
    total = np.zeros((p, p))
    for sign in (1, -1):
        part = tokens[:, labels == sign]
        deviation = part - part.mean(axis=1, keepdims=True)
        total += deviation @ deviation.T
    return total / (n - 2)


@pytest.mark.parametrize("background", [False, True])
@settings(deadline=None)
@given(seed=SEEDS)
def test_convention(background, seed):
    standard = standardise(labelled(seed, background=background, offset=5.0))
    x, y = standard.tokens, standard.labels
    assert np.trace(within(x, y)) / standard.p == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(x[:, y > 0].mean(axis=1), -x[:, y < 0].mean(axis=1), atol=1e-12)


@settings(deadline=None)
@given(seed=SEEDS, scale=st.floats(1e-3, 1e3), offset=st.floats(-100, 100))
def test_units_and_origin_do_not_matter(seed, scale, offset):
    np.testing.assert_allclose(
        standardise(labelled(seed, scale=scale, offset=offset)).tokens,
        standardise(labelled(seed)).tokens,
        rtol=1e-8,
        atol=1e-8 * max(1.0, abs(offset) / scale),
    )


@settings(deadline=None)
@given(seed=SEEDS)
def test_standardising_twice_changes_nothing(seed):
    once = standardise(labelled(seed))
    again = Standardiser.fit(once.tokens, once.labels)
    assert again.scale == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(again.apply(once.tokens), once.tokens, atol=1e-12)


@pytest.mark.parametrize("background", [False, True])
def test_the_map_reproduces_the_tokens_and_carries_to_others(background):
    data = labelled(0, background=background)
    standard = standardise(data)
    map_ = standard.standardiser
    np.testing.assert_allclose(map_.apply(data.tokens), standard.tokens, atol=1e-12)
    fitted = Standardiser.fit(data.tokens, data.labels, data.background_cov)
    np.testing.assert_allclose(fitted.apply(data.tokens), standard.tokens, atol=1e-12)
    a, b = np.random.default_rng(1).standard_normal((2, 6, 3))
    mean = map_.apply((a + b) / 2)
    np.testing.assert_allclose(mean, (map_.apply(a) + map_.apply(b)) / 2, atol=1e-12)


def test_fitting_and_applying_leave_their_input_alone():
    data = labelled(0)
    before = data.tokens.copy()
    standard = standardise(data)
    standard.standardiser.apply(data.tokens)
    kept = standard.tokens.copy()
    standard.split(np.arange(12), np.arange(12, 20))
    np.testing.assert_array_equal(data.tokens, before)
    np.testing.assert_array_equal(standard.tokens, kept)


def test_whitening_makes_the_background_white_and_ignores_labels():
    data = labelled(3, background=True)
    root = standardise(data).standardiser.whitener
    np.testing.assert_allclose(root @ data.background_cov @ root.T, np.eye(6), atol=1e-10)
    swapped = LabelledTokens.from_arrays(data.tokens, -data.labels, background_cov=data.background_cov)
    np.testing.assert_array_equal(standardise(swapped).standardiser.whitener, root)


def test_the_metric_of_the_raw_tokens_is_whitened_away():
    """With the true covariance as background, any invertible mixing gives the same snr and spectrum."""
    rng = np.random.default_rng(5)
    z, labels = rng.standard_normal((8, 60)), np.arange(60) % 2
    mix = well_conditioned(rng, 8)
    plain = estimate(standardise(LabelledTokens.from_arrays(z, labels)))
    mixed = LabelledTokens.from_arrays(mix @ z, labels, background_cov=mix @ mix.T)
    whitened = estimate(standardise(mixed))
    assert whitened.snr == pytest.approx(plain.snr, abs=1e-10)
    np.testing.assert_allclose(whitened.noise.eigenvalues, plain.noise.eigenvalues, atol=1e-10)
    assert estimate(standardise(mixed, "none")).noise.s2 > 1.5 * plain.noise.s2


def test_whitening_does_not_depend_on_the_units_of_the_dimensions():
    data = labelled(7, background=True)
    units = 10.0 ** np.array([-6, -3, 0, 0, 3, 6])
    other = LabelledTokens.from_arrays(
        units[:, None] * data.tokens,
        data.labels,
        background_cov=units[:, None] * data.background_cov * units,
    )
    np.testing.assert_allclose(standardise(other).tokens, standardise(data).tokens, atol=1e-10)


def test_choices_of_whitening():
    without, with_ = labelled(0), labelled(0, background=True)
    assert standardise(without).standardiser.whitener is None
    assert standardise(with_).standardiser.whitener is not None
    assert standardise(with_, "none").standardiser.whitener is None
    np.testing.assert_array_equal(standardise(with_, "background").tokens, standardise(with_).tokens)
    assert "Whitened by the background covariance, which saw no labels" in str(standardise(with_))
    assert "Not whitened" in str(standardise(without))
    with pytest.raises(ValueError, match=r"^whiten must be 'auto' or 'none' for data without background_cov"):
        standardise(without, "background")
    with pytest.raises(ValueError, match=r"^whiten must be one of auto, none, background, got 'pca'$"):
        standardise(with_, "pca")


def test_a_direction_without_variance_is_guarded_and_said():
    rng = np.random.default_rng(0)
    centring = np.eye(6) - 1 / 6  # layer norm does this: coordinates sum to zero
    data = LabelledTokens.from_arrays(
        centring @ rng.standard_normal((6, 40)), np.arange(40) % 2, background_cov=centring
    )
    standard = standardise(data)
    assert (
        "1 of 6 background correlation eigenvalues were below 1e-07 of the largest and raised to it."
        in standard.notes
    )
    assert np.abs(standard.tokens).max() < 10


def test_a_background_that_does_not_describe_the_tokens_is_refused():
    tokens, labels = np.random.default_rng(0).standard_normal((6, 40)), np.arange(40) % 2
    few = np.random.default_rng(1).standard_normal((6, 4))
    with pytest.raises(
        ValueError, match=r"^background_cov is singular along 2 of 6 directions in which tokens"
    ):
        standardise(LabelledTokens.from_arrays(tokens, labels, background_cov=few @ few.T))
    indefinite = np.eye(6)
    indefinite[0, 1] = indefinite[1, 0] = 2.0
    with pytest.raises(
        ValueError, match=r"^background_cov is no covariance: the correlations have eigenvalues from -1 to 3$"
    ):
        standardise(LabelledTokens.from_arrays(tokens, labels, background_cov=indefinite))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.outer([1.0, 2.0], [1, 1, -1, -1]), "tokens have no noise about their class means"),
        (
            1e200 * np.array([[1.0, 2, 3, 5], [0, 1, 0, 2]]),
            r"tokens are too large to be squared: \|x\| up to",
        ),
        (1e-200 * np.array([[1.0, 2, 3, 5], [0, 1, 0, 2]]), "no noise"),
    ],
)
def test_tokens_without_a_usable_scale(tokens, message):
    with pytest.raises(ValueError, match=message):
        standardise(LabelledTokens.from_arrays(tokens, [1, 1, -1, -1]))


def test_apply_and_fit_refuse_what_does_not_fit():
    data = labelled(0)
    with pytest.raises(ValueError, match=r"^tokens must have 6 rows, one a dimension, got shape \(5, 3\)$"):
        standardise(data).standardiser.apply(np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"^each label needs at least 2 tokens, got 20 of \+1 and 0 of -1$"):
        Standardiser.fit(data.tokens, np.ones(20))


@pytest.mark.parametrize("background", [False, True])
def test_split_is_standardised_by_its_training_part_only(background):
    data = labelled(2, n=40, background=background)
    whole = standardise(data)
    first, second = np.arange(0, 25), np.arange(25, 40)
    train, test = whole.split(first, second)
    assert isinstance(train, StandardTokens)
    assert np.trace(within(train.tokens, train.labels)) / train.p == pytest.approx(1, rel=1e-12)
    np.testing.assert_array_equal(test.labels, data.labels[second])
    # the map is the one fitted on the raw training tokens alone
    alone = Standardiser.fit(data.tokens[:, first], data.labels[first], data.background_cov)
    np.testing.assert_allclose(test.tokens, alone.apply(data.tokens[:, second]), atol=1e-11)
    np.testing.assert_allclose(test.tokens, test.standardiser.apply(data.tokens[:, second]), atol=1e-11)
    # other test tokens leave the training part as it was
    np.testing.assert_array_equal(whole.split(first, second[:3])[0].tokens, train.tokens)
    with pytest.raises(ValueError, match="must not be in the training part and in the test part"):
        whole.split([0, 1, 2, 3, 4, 5, 6], [6, 7])
