"""Spectra of settings: mass one, what is isolated, what is sampled, and what is refused."""

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, simulate
from resolvent.simulate.eigenvalues import eigenvalues
from resolvent.spectrum import spectrum


def setting(f="tanh", ratio=0.5, snr=2.0, align=0.0, **more):
    return Setting(Tokens(ratio, snr), Weights.aligned(align), f, **more)


def counted_below(limit, levels):
    """Mass of atoms and density below each level, the density by Gauss-Legendre nodes of its own."""
    u = np.repeat(np.arange(40), 8) / 40 + np.tile((1 + np.polynomial.legendre.leggauss(8)[0]) / 80, 40)
    w = np.tile(np.polynomial.legendre.leggauss(8)[1] / 80, 40)
    atoms = limit.atoms
    total = np.array([sum((mass for place, mass in atoms if place <= level), 0.0) for level in levels])
    for left, right in limit.support:
        angle, width = 0.5 * np.pi * u**2, right - left
        x = left + width * np.sin(angle) ** 2
        slope = width * np.sin(2 * angle) * np.pi * u
        parts = w * np.nan_to_num(limit.density(x)) * slope
        total += [np.sum(parts[x <= level]) for level in levels]
    return total


NAMES = ("tanh", "relu", "t^3 - 3*t", "identity", "abs")
CASES = [("attention", ratio, f) for ratio in (0.5, 1.0, 2.0) for f in NAMES]
CASES += [("features", 0.5, f) for f in ("tanh", "identity", "abs")]
CASES += [("features", 1.0, f) for f in ("tanh", "identity")]
CASES += [("features", 2.0, f) for f in ("relu", "identity")]
LONG = [("features", ratio, f) for ratio in (0.5, 1.0, 2.0) for f in NAMES]
LONG = [pytest.param(*case, marks=pytest.mark.slow) for case in LONG if case not in CASES]


@pytest.mark.parametrize(("of", "ratio", "f"), [*CASES, *LONG])
def test_mass_is_one_atoms_included(of, ratio, f):
    found = spectrum(setting(f, ratio), of=of)
    assert found.limit.mass == pytest.approx(1.0, abs=1e-6)
    if of == "attention" or f != "identity":  # that one is infinite inside, and checked where it is computed
        assert counted_below(found.limit, [np.inf]) == pytest.approx(1.0, abs=2e-4)
    assert found.as_dict()["mass"] == found.limit.mass
    atom = ratio < 1.0 and (of == "features" or f == "identity")
    assert sum(mass for _, mass in found.limit.atoms) == (1.0 - ratio if atom else 0.0)


@pytest.mark.parametrize(
    ("f", "ratio", "more"),
    [
        ("tanh", 0.5, {}),
        ("tanh", 2.0, {"skip": 0.4}),
        ("relu", 0.5, {"keep_diagonal": True}),
        ("exp", 2.0, {"centred": False}),
    ],
)
@pytest.mark.parametrize("of", ["attention", "features"])
def test_samples_follow_the_limit(f, ratio, more, of):
    found = spectrum(setting(f, ratio, **more), of=of, n=500, seed=2)
    values = found.measured.eigenvalues
    assert np.all(np.diff(values) >= 0)
    levels = np.quantile(values, [0.2, 0.55, 0.7, 0.9])
    shares = [np.mean(values <= level) for level in levels]
    np.testing.assert_allclose(counted_below(found.limit, levels + 1e-12), shares, atol=0.03)


def test_signal_and_norm_fluctuations_are_told_apart_and_measured():
    # ReLU at c = 1/4: an isolated eigenvalue of pure noise at -1.770
    found = spectrum(setting("relu", 0.25, 1.0), of="attention", n=1400, seed=1)
    assert [o.kind for o in found.outliers] == ["norm fluctuation (a2)", "signal"]
    assert found.outliers[0].place == pytest.approx(-1.7701, abs=1e-4)
    np.testing.assert_allclose(found.measured.outliers, [o.place for o in found.outliers], rtol=0.07)


def test_measured_outliers_close_in_on_their_limit():
    one = setting("tanh", 0.5, 1.0, 0.5)
    limit = spectrum(one).outliers[-1].place
    gaps = []
    for n in (150, 600):
        tops = np.array([eigenvalues(one, n=n, seed=seed)[-1] for seed in range(12)])
        gaps.append(abs(tops.mean() - limit))
        assert gaps[-1] < 4 * tops.std(ddof=1) / np.sqrt(12) + 60 / n
    assert gaps[1] < gaps[0]


@pytest.mark.parametrize(("of", "seeds"), [("attention", 8), ("features", 2)])
def test_noise_alone_has_nothing_isolated(of, seeds):
    # an eigenvalue beyond the margin has a probability of about 0.001
    found = [spectrum(setting("tanh", 2.0, 0.0), of=of, n=120, seed=seed).measured for seed in range(seeds)]
    assert sum(m.outliers.size for m in found) == 0


def test_an_outlier_close_to_the_bulk_is_said_to_be():
    found = spectrum(setting("tanh", 2.0, 2.0), of="attention", n=80)
    assert "1.2265 is too close to the bulk to be told apart here" in str(found)
    assert "none isolated, n = 80, p = 160" in str(found)


def test_a_sample_is_the_first_draw_of_simulate():
    one = setting("tanh", 2.0, ridge=[0.1, 0.3])
    values = eigenvalues(one, n=60, seed=5)
    probe = simulate(one, n=60, draws=1, seed=5, fresh=0).values[0, 0, 0]
    # sum over eigenvalues of (r/(l + r))^2 weighs each by its overlap with the target: between the extremes
    for r, error in zip((0.1, 0.3), probe, strict=True):
        assert (r / (values[-1] + r)) ** 2 <= error <= (r / (values[0] + r)) ** 2


def test_features_without_tokens_enough_have_exact_zeros():
    values = eigenvalues(setting("tanh", 0.5), n=64)
    assert np.count_nonzero(values == 0.0) == 32
    assert values[32] > 0.0


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (setting(), {"of": "weights"}, "of must be attention or features, got 'weights'"),
        (setting("exp", centred=False), {}, "n must be given for an uncentred f"),
        (setting(snr=[1.0, 2.0]), {}, r"one setting, got arrays of shape \(2,\)"),
        (setting(), {"n": 3}, "n must be at least 4, got 3"),
        (setting(), {"n": 10_000}, "n must be at most 8192"),
        (setting(ratio=0.01), {"n": 20}, "raise ratio or n"),
        (
            Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=1.0)),
            {"of": "attention"},
            "keys and queries must be equal",
        ),
    ],
)
def test_refusals(given, more, message):
    with pytest.raises(ValueError, match=message):
        spectrum(given, **more)


def test_features_take_different_keys_and_queries():
    weights = Weights.from_angles(key_norm=2.0, query_norm=1.0, key_cos=0.5)
    found = spectrum(Setting(weights=weights), n=400)
    assert found.limit.mass == pytest.approx(1.0, abs=1e-6)
    assert found.measured.outliers[-1] == pytest.approx(found.outliers[-1].place, rel=0.25)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Setting(nonlinearity=["tanh", "relu"]), "one head, got 2"),
        (Setting(weights=Weights.matrix(np.eye(20))), "weights I \\+ low rank, got a matrix"),
        (Setting(Tokens(covariance="ar1:0.5")), "white noise, got a covariance"),
        (Setting(Tokens(norm_spread=0.3)), "norm_spread must be 0 or come with normalise"),
    ],
)
def test_what_the_theory_does_not_cover(given, message):
    with pytest.raises(ValueError, match=message):
        spectrum(given, n=40)


def test_the_law_of_the_noise_moves_the_norm_fluctuations():
    def places(**law):
        tokens = Tokens(0.25, 0.0, **law)
        return [o.place for o in spectrum(Setting(tokens, nonlinearity="relu"), of="attention").outliers]

    assert places() == pytest.approx([-1.7701], abs=1e-4)
    assert places(noise="rademacher") == places(normalise="rms") == []
    assert places(noise="laplace")[0] < -1.9


def test_several_low_rank_terms_give_several_outliers():
    rows = 2.0 * np.eye(3, 6)
    weights = Weights.low_rank(rows[1:], rows[1:], mu=rows[0])
    found = spectrum(Setting(Tokens(0.5, 2.0), weights), of="attention", n=800)
    assert [o.kind for o in found.outliers] == ["signal", "weights", "weights"]
    np.testing.assert_allclose(found.measured.outliers, [o.place for o in found.outliers], rtol=0.15)


def test_softmax_has_the_mean_of_its_columns():
    # unbalanced classes: the direction of the mean takes a part of the signal's
    one, n = Setting(Tokens(0.5, 2.0, 0.5), nonlinearity="softmax", beta=0.8), 800
    found = spectrum(one, n=n)
    assert [o.kind for o in found.outliers] == ["signal", "mean (a0)"]
    tops = [eigenvalues(one, n=n, seed=seed)[-2:] for seed in range(4)]
    np.testing.assert_allclose(np.mean(tops, axis=0), [o.place for o in found.outliers], rtol=0.12)
    with pytest.raises(ValueError, match="of must be features with softmax, whose K is not symmetric"):
        spectrum(one, of="attention", n=n)
    with pytest.raises(ValueError, match="n must be given for an uncentred f or softmax"):
        spectrum(one)


def test_a_matrix_without_a_real_spectrum_is_refused():
    with pytest.raises(ValueError, match="K is not symmetric and has no real spectrum"):
        eigenvalues(Setting(nonlinearity="softmax"), of="attention", n=30)
