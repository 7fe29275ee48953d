"""Spectral laws: moments, closed forms, sampled matrices, and what is refused."""

import numpy as np
import pytest

from resolvent.laws import (
    Law,
    autoregressive,
    empirical,
    entry_law,
    generalised_marchenko_pastur,
    marchenko_pastur,
    population,
    power_law,
    spiked,
)
from resolvent.laws import marchenko_pastur as table
from resolvent.laws.generalised import density as generalised_density
from resolvent.laws.generalised import support
from resolvent.laws.marchenko_pastur import density, edges, stieltjes

POPULATIONS = {
    "two levels": population([1.0, 8.0]),
    "power law": power_law(1.0, 200),
    "AR(1)": autoregressive(0.5),
    "AR(1), strong": autoregressive(0.9, 200),
    "spikes": spiked({9.0: 0.1, 30.0: 0.02}),
    "random": population(np.random.default_rng(0).exponential(size=100)),
}


@pytest.mark.parametrize("ratio", [0.2, 1.0, 3.0])
def test_marchenko_pastur_has_its_moments_and_transform(ratio):
    law = marchenko_pastur(ratio)
    assert law.mass_error < 1e-12
    moments = [1.0, 1.0 + 1 / ratio, 1.0 + 3 / ratio + 1 / ratio**2]
    for k, moment in enumerate(moments, 1):
        assert law.mean(lambda g, k=k: g**k) == pytest.approx(moment, rel=1e-12)
    z = np.array([-0.3, 0.5 + 0.4j, 30.0, -2j, 1.0 - 0.5j])
    np.testing.assert_allclose(stieltjes(ratio, z), law.stieltjes(z), rtol=1e-10)
    left, right = edges(ratio)
    x = np.linspace(left, right, 9)[1:-1]
    np.testing.assert_allclose(density(ratio, x), stieltjes(ratio, x + 1e-13j).imag / np.pi, atol=1e-7)
    assert density(ratio, [left - 0.01, right + 0.01]).tolist() == [0.0, 0.0]


def test_marchenko_pastur_nodes_converge_at_the_hard_edge():
    exact = stieltjes(1.0, -1e-3).real
    errors = [abs(table(1.0, size).stieltjes(-1e-3).real / exact - 1) for size in (64, 256)]
    assert errors[0] < 0.05
    assert errors[1] < 1e-4


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("ratio", [0.2, 1.0, 2.0])
def test_generalised_law_has_its_moments(name, ratio):
    noise = POPULATIONS[name]
    law = generalised_marchenko_pastur(noise, ratio)
    assert law.mass_error < 1e-6
    s2, s3 = noise.moment(2), noise.moment(3)
    assert law.mean(lambda g: g) == pytest.approx(1.0, abs=1e-8)
    assert law.mean(lambda g: g**2) == pytest.approx(1 + s2 / ratio, rel=1e-8)
    assert law.mean(lambda g: g**3) == pytest.approx(1 + 3 * s2 / ratio + s3 / ratio**2, rel=1e-8)
    # Silverstein's equation at a point outside: 1/N = -z + E[l/(1 + l N/c)]
    N = law.stieltjes(-0.7).real
    assert (
        pytest.approx(0.7 + noise.shares @ (noise.levels / (1 + noise.levels * N / ratio)), rel=1e-8) == 1 / N
    )


def test_generalised_law_of_white_noise_is_marchenko_pastur():
    law = generalised_marchenko_pastur(population([1.0, 1.0]), 0.5)
    np.testing.assert_allclose(law.support, [edges(0.5)], rtol=1e-12)
    x = np.linspace(0.2, 5.0, 7)
    np.testing.assert_allclose(generalised_density(population([3.0]), 0.5, x), density(0.5, x), rtol=1e-9)


def test_support_splits_when_levels_part():
    assert len(support(population([1.0, 8.0]), 0.2)) == 2
    assert len(support(population([1.0, 8.0]), 1.0)) == 1
    bounds = support(POPULATIONS["spikes"], 0.2)
    assert len(bounds) == 3
    assert np.all(np.diff(bounds.ravel()) > 0)


def test_generalised_law_is_that_of_sampled_noise():
    noise, n = POPULATIONS["two levels"], 1200
    p = 240
    scale = np.repeat(noise.levels, p // 2)
    Z = np.sqrt(scale)[:, None] * np.random.default_rng(1).standard_normal((p, n))
    values = np.linalg.eigvalsh(Z @ Z.T / p)
    law = generalised_marchenko_pastur(noise, p / n)
    sample = empirical(np.concatenate([values, np.zeros(n - p)]))
    for z in (-0.5, 3.0, 4.0 + 1.0j):
        assert abs(law.stieltjes(z) - sample.stieltjes(z)) < 0.01 * abs(law.stieltjes(z))
    assert values[0] == pytest.approx(law.support[0, 0], rel=0.03)
    assert values[-1] == pytest.approx(law.support[-1, 1], rel=0.05)  # it fluctuates like p^-2/3
    # below the gap lie the eigenvalues of the lower level, none inside
    low, high = law.support[0, 1], law.support[1, 0]
    assert np.sum(values < 0.5 * (low + high)) == p // 2
    assert not np.any((values > low * 1.05) & (values < high * 0.97))


def test_populations_have_mean_one():
    for noise in POPULATIONS.values():
        assert noise.moment(1) == pytest.approx(1.0)
        assert noise.shares.sum() == pytest.approx(1.0)
        assert noise.norm_variance == pytest.approx(2 * noise.moment(4) / noise.moment(2) ** 2)
    covariance = 0.6 ** np.abs(np.subtract.outer(np.arange(300), np.arange(300)))
    expected = np.trace(covariance @ covariance @ covariance) / 300
    assert autoregressive(0.6).moment(3) == pytest.approx(expected, rel=0.02)
    assert power_law(0.0, 5).levels.tolist() == [1.0]


@pytest.mark.parametrize(
    ("name", "degrees"),
    [("gaussian", None), ("rademacher", None), ("uniform", None), ("laplace", None), ("student-t", 12.0)],
)
def test_entries_have_unit_variance_and_their_kurtosis(name, degrees):
    law = entry_law(name, degrees)
    z = law.sample(np.random.default_rng(2), (400, 1000))
    assert z.shape == (400, 1000)
    assert z.mean() == pytest.approx(0.0, abs=0.01)
    assert np.mean(z**2) == pytest.approx(1.0, abs=0.01)
    assert np.mean(z**4) == pytest.approx(law.kurtosis, rel=0.1)
    norms = np.sqrt(400) * (np.mean(z**2, axis=0) - 1)
    assert norms.var() == pytest.approx(law.norm_variance, rel=0.15, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: marchenko_pastur(0.0), "ratio must be positive, got 0"),
        (lambda: marchenko_pastur(1.0, 0), "size must be at least 1, got 0"),
        (
            lambda: generalised_marchenko_pastur(population([1.0, 2.0]), -1.0),
            "ratio must be positive, got -1",
        ),
        (lambda: population([1.0, -2.0]), "eigenvalues must be positive and finite"),
        (lambda: population([]), "lists of one length"),
        (lambda: power_law(-1.0, 10), "exponent must be zero or positive, got -1"),
        (lambda: autoregressive(1.0), r"between -1 and 1 \(bounds excluded\), got 1"),
        (lambda: spiked({5.0: 0.6, 3.0: 0.5}), r"sum to less than 1, got 1\.1"),
        (lambda: empirical([-1.0, 3.0]), "nodes must be finite and not negative"),
        (lambda: empirical([]), "lists of one length"),
        (lambda: Law(np.ones(2), np.ones(2), np.empty((0, 2))), "weights must sum to 1, got 2"),
        (lambda: entry_law("cauchy"), "noise must be one of gaussian, .*student-t, got 'cauchy'"),
        (lambda: entry_law("student-t"), "needs its degrees of freedom"),
        (
            lambda: entry_law("student-t", 4.0),
            "degrees must be above 4, where the fourth moment exists, got 4",
        ),
        (lambda: entry_law("laplace", 5.0), "degrees belong to student-t noise"),
    ],
)
def test_bad_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
