"""Attention errors against the theory page retyped, against solvable cases, and their invariances."""

import numpy as np
import pytest
from naive_equivalent import naive_errors

from resolvent.equivalents import attention_errors, linear_errors

NAMES = ("train", "test", "t", "u", "alpha", "m")


def random_setting(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((3, 3)) * np.exp(rng.normal(0.0, 0.5, (3, 1)))
    return {
        "ratio": float(np.exp(rng.uniform(-2.0, 2.0))),
        "ridge": float(10.0 ** rng.uniform(-1.3, 1.0)),
        "a1": float(rng.normal()),
        "sigma2": float(rng.exponential()),
        "gram": vectors @ vectors.T,
        "shift": float(rng.normal()),
        "skip": float(rng.normal()),
        "mean_spike": float(3.0 * rng.normal()),
        "a2": float(rng.normal()),
        "norm_variance": float(2.0 * rng.exponential()),
        "label_mean": float(rng.uniform(-0.95, 0.95)),
        "target_overlap": float(rng.uniform(-1.0, 1.0)),
    }


def agree(setting: dict, tolerance: float = 1e-10) -> None:
    mine, naive = attention_errors(**setting), naive_errors(**setting)
    assert mine.converged
    for name in NAMES:
        exact = naive[name]
        assert abs(getattr(mine, name) - exact) <= tolerance * (abs(exact) + 1e-3), (name, setting)


@pytest.mark.parametrize("seed", range(24))
def test_random_settings_agree_with_the_naive_formulas(seed: int) -> None:
    agree(random_setting(seed))


@pytest.mark.parametrize(
    "special",
    [
        {"ratio": 1.0},
        {"a1": 0.0},
        {"sigma2": 0.0},
        {"a1": 0.0, "sigma2": 0.0},
        {"a1": 0.0, "sigma2": 0.0, "shift": 0.0, "skip": 0.0},
        {"a1": 0.7, "shift": 0.7, "skip": 0.0},
        {"gram": np.zeros((3, 3))},
        {"gram": np.diag([0.0, 2.0, 3.0])},
        {"gram": np.outer([1.0, -2.0, -2.0], [1.0, -2.0, -2.0])},
        {"target_overlap": 0.0},
        {"norm_variance": 0.0},
        {"ratio": 12.0, "ridge": 40.0},
        {"ratio": 0.02, "ridge": 0.01},
    ],
    ids=str,
)
def test_special_settings_agree_with_the_naive_formulas(special: dict) -> None:
    agree({**random_setting(100), "ridge": 0.3, **special})


def test_skip_alone_is_linear_regression() -> None:
    """K = skip I: H is proportional to X, and a fresh token enters through the skip connection too."""
    ratio, snr = np.array([0.2, 1.0, 3.0])[:, None], np.array([0.0, 1.0, 40.0])
    gram = snr[:, None, None] * np.eye(3)
    mine = attention_errors(
        ratio=ratio, ridge=0.05 * 4.0, a1=0.0, sigma2=0.0, gram=gram, skip=2.0, target_overlap=0.8
    )
    linear = linear_errors(ratio=ratio, ridge=0.05, snr=snr, target_overlap=0.8)
    np.testing.assert_allclose(mine.train, linear.train, rtol=1e-12)
    np.testing.assert_allclose(mine.test, linear.test, rtol=1e-12)


def test_pure_noise_is_forgotten_on_fresh_tokens() -> None:
    """a1 = 0, no skip: features of fresh tokens are noise, so the best test error is that of no probe."""
    e = attention_errors(ratio=0.5, ridge=[0.1, 1e8], a1=0.0, sigma2=1.0, gram=np.eye(3))
    assert e.test[0] > 1.0
    assert e.test[1] == pytest.approx(1.0, abs=1e-6)
    assert e.train[1] == pytest.approx(1.0, abs=1e-6)


def same(first: dict, second: dict, *names: str, tolerance: float = 1e-12) -> None:
    one, two = attention_errors(**first), attention_errors(**second)
    for name in names:
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=tolerance, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_the_sign_of_f_does_not_matter(seed: int) -> None:
    setting = random_setting(seed)
    flipped = {name: -setting[name] for name in ("a1", "shift", "skip", "mean_spike", "a2")}
    same(setting, {**setting, **flipped}, "train", "test", "t", "alpha", "m")


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e4])
def test_scaling_attention_scales_the_ridge(scale: float) -> None:
    setting = random_setting(3)
    scaled = {name: scale * setting[name] for name in ("a1", "shift", "skip", "mean_spike", "a2")}
    scaled |= {"sigma2": scale**2 * setting["sigma2"], "ridge": scale**2 * setting["ridge"]}
    same(setting, {**setting, **scaled}, "train", "test", tolerance=1e-10)


def test_flipping_mu_and_the_labels_changes_nothing() -> None:
    setting = random_setting(4)
    signs = np.diag([-1.0, 1.0, 1.0])
    flipped = {"gram": signs @ setting["gram"] @ signs, "label_mean": -setting["label_mean"]}
    same(setting, {**setting, **flipped}, "train")
    weights = np.diag([1.0, -1.0, -1.0])
    same(setting, {**setting, "gram": weights @ setting["gram"] @ weights}, "train", "test")


def test_key_and_query_are_not_interchangeable() -> None:
    setting = random_setting(5)
    order = [0, 2, 1]
    swapped = attention_errors(**{**setting, "gram": setting["gram"][np.ix_(order, order)]})
    assert abs(swapped.train - attention_errors(**setting).train) > 1e-6


def test_the_target_sign_does_not_matter_and_the_training_error_mixes_linearly() -> None:
    setting = random_setting(6)
    same({**setting, "target_overlap": -0.6}, {**setting, "target_overlap": 0.6}, "train", "test")
    none, some, whole = (attention_errors(**{**setting, "target_overlap": k}).train for k in (0.0, 0.6, 1.0))
    assert some == pytest.approx(0.64 * none + 0.36 * whole, rel=1e-12)


def test_without_signal_a_random_target_does_not_see_the_weights() -> None:
    grams = np.array(
        [np.zeros((3, 3)), np.diag([0.0, 1.0, 4.0]), [[0, 0, 0], [0, 2, 2], [0, 2, 2]]], dtype=float
    )
    e = attention_errors(ratio=0.7, ridge=0.1, a1=0.6, sigma2=0.03, gram=grams, target_overlap=0.0)
    assert np.ptp(e.train) <= 1e-14
    assert np.ptp(e.test) <= 1e-13
    aligned = attention_errors(
        ratio=0.7, ridge=0.1, a1=0.6, sigma2=0.03, gram=np.ones((3, 3)), target_overlap=0.0
    )
    assert aligned.train == pytest.approx(e.train[0], rel=1e-13)  # train is free of them even with signal
    assert aligned.test == pytest.approx(e.test[0], rel=1e-13)


def test_spikes_orthogonal_to_balanced_labels_drop_out() -> None:
    spikes = {"mean_spike": [0.0, 3.0, 1e6], "a2": [0.0, 0.7, -2.0], "norm_variance": [2.0, 0.0, 9.0]}
    e = attention_errors(**{**random_setting(7), **spikes, "label_mean": 0.0})
    assert np.ptp(e.train) == 0.0
    assert np.ptp(e.test) == 0.0


def test_arguments_broadcast_and_equal_a_loop() -> None:
    setting = random_setting(8)
    axes = {"ratio": np.array([0.3, 2.0])[:, None, None], "ridge": np.array([0.1, 1.0, 0.0])[:, None]}
    grams = np.stack([setting["gram"], np.zeros((3, 3))])
    whole = attention_errors(**{**setting, **axes, "gram": grams})
    assert whole.train.shape == whole.converged.shape == whole.iterations.shape == (2, 3, 2)
    for i, ratio in enumerate((0.3, 2.0)):
        for j, ridge in enumerate((0.1, 1.0, 0.0)):
            for k, gram in enumerate(grams):
                one = attention_errors(**{**setting, "ratio": ratio, "ridge": ridge, "gram": gram})
                for name in (*NAMES, "residual", "iterations", "converged"):
                    assert getattr(one, name) == pytest.approx(getattr(whole, name)[i, j, k], rel=1e-13), name


def test_more_rows_than_a_chunk_equal_the_same_rows_apart() -> None:
    ridge = np.logspace(-6.0, 3.0, 9001)
    setting = {**random_setting(9), "ridge": ridge}
    some = slice(None, None, 1000)
    whole, few = attention_errors(**setting), attention_errors(**{**setting, "ridge": ridge[some]})
    np.testing.assert_array_equal(whole.train[some], few.train)


def test_results_are_plain_numbers_or_arrays() -> None:
    one = attention_errors(ratio=0.5, ridge=0.1, a1=0.6, sigma2=0.1, gram=np.eye(3))
    assert [type(getattr(one, name)) for name in NAMES] == [float] * 6
    assert type(one.iterations) is int
    assert one.converged is True
    none = attention_errors(ratio=[], ridge=0.1, a1=0.6, sigma2=0.1, gram=np.eye(3))
    assert none.train.shape == (0,)
