"""Spectra of K and H'H/n: polynomial roots, closed forms of outliers, sampled matrices."""

import numpy as np
import pytest

from resolvent.equivalents import attention_spectrum, features_spectrum
from resolvent.laws import marchenko_pastur
from resolvent.nonlinearity import nonlinearity

NONE = np.zeros((3, 3))


def aligned(snr, align):
    v = np.array([1.0, align, align])
    return snr * np.outer(v, v)


def coefficients(name):
    k = nonlinearity(name).coefficients()
    return {"a1": k.a1, "a2": k.a2, "sigma2": k.sigma2}


@pytest.mark.parametrize(
    ("c", "a1", "sigma2", "d"),
    [(0.5, 0.6, 0.05, 0.0), (2.0, -0.5, 0.3, 0.4), (1.0, 0.9, 0.01, 0.0), (0.1, 0.6, 1e-4, 0.0)],
)
def test_density_of_attention_is_the_root_of_a_cubic(c, a1, sigma2, d):
    # m (-z + d - a1 + a1 c/(c + a1 m) - sigma2 m/c) = 1, multiplied out
    spectrum = attention_spectrum(ratio=c, a1=a1, sigma2=sigma2, gram=NONE, shift=d)
    x = np.linspace(spectrum.support[0, 0] - 0.5, spectrum.support[-1, 1] + 0.5, 61)
    s = sigma2 / c
    cubics = [[-s * a1, (d - a1 - z) * a1 - s * c, (d - a1 - z) * c + a1 * c - a1, -c] for z in x]
    expected = np.array([np.roots(cubic).imag.max() for cubic in cubics]) / np.pi
    np.testing.assert_allclose(spectrum.density(x), expected, atol=1e-8)
    for left, right in spectrum.support:
        just = 1e-5 * (right - left)
        inside, outside = (
            spectrum.density([left + just, right - just]),
            spectrum.density([left - just, right + just]),
        )
        assert inside.min() > 1e-5
        assert outside.max() < 1e-7
    assert spectrum.mass == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("c", "a1", "a2", "sigma2"), [(0.25, 0.5, 0.28209, 0.0908), (0.5, 0.0, 0.7, 0.5), (0.1, 0.3, 0.5, 0.3)]
)
@pytest.mark.parametrize("norm_variance", [2.0, 5.0])
def test_norm_fluctuation_outliers_have_a_closed_form(c, a1, a2, sigma2, norm_variance):
    delta = np.sqrt(2 / norm_variance) / a2
    expected = []
    for s in (1, -1):
        shared = a1 * delta / (1 + s * a1 * delta)
        if sigma2 * delta**2 + shared**2 < 1 / c:
            expected.append(-s / (c * delta) - s * a1 * shared - s * sigma2 * delta)
    spectrum = attention_spectrum(
        ratio=c, a1=a1, a2=a2, sigma2=sigma2, gram=NONE, norm_variance=norm_variance
    )
    np.testing.assert_allclose([o.place for o in spectrum.outliers], sorted(expected), atol=1e-7)
    assert {o.kind for o in spectrum.outliers} <= {"norm fluctuation (a2)"}


def test_no_norm_fluctuation_no_outlier():
    spectrum = attention_spectrum(ratio=0.25, gram=NONE, norm_variance=0.0, **coefficients("relu"))
    assert spectrum.outliers == ()


def test_semicircle():
    spectrum = attention_spectrum(ratio=0.5, a1=0.0, sigma2=0.5, gram=NONE)
    np.testing.assert_allclose(spectrum.support, [[-2.0, 2.0]], atol=1e-7)
    x = np.linspace(-1.9, 1.9, 7)
    np.testing.assert_allclose(spectrum.density(x), np.sqrt(4 - x**2) / (2 * np.pi), atol=1e-10)


def test_attention_without_noise_is_marchenko_pastur():
    c, a1 = 0.5, 0.8
    spectrum = attention_spectrum(ratio=c, a1=a1, sigma2=0.0, gram=NONE)
    edges = a1 * ((1 + np.array([-1, 1]) / np.sqrt(c)) ** 2 - 1)
    np.testing.assert_allclose(spectrum.support, [edges], atol=1e-6)
    assert spectrum.atoms == ((-a1, 0.5),)
    assert spectrum.mass == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("shift", [0.0, 0.7, -0.4])
def test_features_without_noise_are_an_image_of_marchenko_pastur(ratio, shift):
    # sum over the real roots g of c g (a1 (g - 1) + d)^2 = x of the Marchenko-Pastur density over |slope|
    a1, b, law = 0.8, shift - 0.8, marchenko_pastur(ratio)
    spectrum = features_spectrum(ratio=ratio, a1=a1, sigma2=0.0, gram=NONE, shift=shift)
    assert spectrum.mass == pytest.approx(1.0, abs=1e-6)
    assert spectrum.outliers == ()
    ((left, right),) = law.support
    top = max(ratio * g * (a1 * g + b) ** 2 for g in np.linspace(left, right, 2001))
    assert spectrum.support[-1, 1] == pytest.approx(top, rel=1e-5)
    for x in np.linspace(0.03, 0.97, 13) * top:
        roots = np.roots(ratio * np.array([a1**2, 2 * a1 * b, b**2, -x / ratio]))
        expected = 0.0
        for g in roots.real[np.abs(roots.imag) < 1e-9]:
            slope = ratio * (a1 * g + b) * (3 * a1 * g + b)
            inside = max((g - left) * (right - g), 0.0)
            expected += ratio * np.sqrt(inside) / (2 * np.pi * g) / abs(slope)
        assert spectrum.density(x) == pytest.approx(expected, rel=1e-6)


def test_little_noise_tends_to_none():
    gram = aligned(2.0, 0.5)
    base = {"ratio": 0.5, "a1": 0.9, "gram": gram, "shift": 0.3}
    for law in (attention_spectrum, features_spectrum):
        none, little = law(sigma2=0.0, **base), law(sigma2=1e-4, **base)
        assert len(none.outliers) == len(little.outliers) > 0
        for a, b in zip(none.outliers, little.outliers, strict=True):
            assert (a.place, a.overlap) == pytest.approx((b.place, b.overlap), rel=2e-3)
            assert a.kind == b.kind
        x = 0.5 * none.support[-1, 1]
        assert none.density(x) == pytest.approx(little.density(x), rel=2e-3)


@pytest.mark.parametrize("ratio", [0.3, pytest.param(1.0, marks=pytest.mark.slow), 2.0])
def test_mass_of_the_features_spectrum(ratio):
    spectrum = features_spectrum(ratio=ratio, gram=NONE, shift=0.1, **coefficients("tanh"))
    assert spectrum.mass == pytest.approx(1.0, abs=1e-6)
    assert spectrum.residual < 1e-9
    assert spectrum.atoms == (((0.0, 1 - ratio),) if ratio < 1 else ())


def sampled(name, c, n, snr, align, positive, skip):
    f, p = nonlinearity(name), round(c * n)
    rng = np.random.default_rng(1)
    y = np.where(np.arange(n) < positive * n, 1.0, -1.0)
    X = rng.standard_normal((p, n))
    X[0] += np.sqrt(snr) * y
    w = np.zeros(p)
    w[0] = align * np.sqrt(snr)
    K = f((X.T @ X + np.outer(X.T @ w, w @ X)) / np.sqrt(p)) / np.sqrt(p)
    np.fill_diagonal(K, 0.0)
    H = X @ (K + skip * np.eye(n))
    return [(v, (u.T @ y) ** 2 / n) for v, u in map(np.linalg.eigh, (K, H.T @ H / n))]


@pytest.mark.parametrize(
    ("name", "c", "snr", "align", "positive", "skip"),
    [
        ("tanh", 0.5, 2.0, 0.5, 0.5, 0.0),
        ("relu", 2.0, 2.0, 0.3, 0.5, 0.3),
        pytest.param("relu", 0.5, 2.0, 0.0, 0.7, 0.0, marks=pytest.mark.slow),
    ],
)
def test_spectra_are_those_of_sampled_matrices(name, c, snr, align, positive, skip):
    n = 1000 if c < 1 else 700
    common = {"ratio": c, "gram": aligned(snr, align), "label_mean": 2 * positive - 1} | coefficients(name)
    limits = attention_spectrum(**common), features_spectrum(skip=skip, **common)
    for limit, (values, overlaps) in zip(
        limits, sampled(name, c, n, snr, align, positive, skip), strict=True
    ):
        top = limit.outliers[-1]
        assert top.kind == "signal"
        assert values[-1] == pytest.approx(top.place, rel=0.1)
        assert overlaps[-1] == pytest.approx(top.overlap, abs=0.05)
        edge = limit.support[-1, 1]
        assert values[-2] == pytest.approx(edge, rel=0.08)
        for level in np.quantile(values[values > 1e-9], [0.1, 0.35, 0.6, 0.9]):
            left = max(limit.support[0, 0], 0.0) if limit is limits[1] else limit.support[0, 0]
            u, w = np.polynomial.legendre.leggauss(200)
            u, w = 0.5 * (u + 1), 0.5 * w
            x = left + (level - left) * u**4
            below = np.sum(w * limit.density(x) * 4 * u**3) * (level - left)
            below += sum(m for at, m in limit.atoms if at <= level)
            assert below == pytest.approx(np.mean(values <= level), abs=0.015)


def test_a_sample_without_noise():
    # f(t) = t: H'H/n is c g (g - 1 + skip)^2 of Marchenko-Pastur, and one signal beside it
    c, skip, law = 0.5, 0.2, marchenko_pastur(0.5, 20_000)
    values, overlaps = sampled("identity", c, 1000, 2.0, 0.0, 0.5, skip)[1]
    (top,) = features_spectrum(ratio=c, a1=1.0, sigma2=0.0, gram=aligned(2.0, 0.0), skip=skip).outliers
    assert top.kind == "signal"
    assert values[-1] == pytest.approx(top.place, rel=0.1)
    assert overlaps[-1] == pytest.approx(top.overlap, abs=0.05)
    limit = c * law.nodes * (law.nodes - 1 + skip) ** 2
    for level in np.quantile(values[values > 1e-9], [0.1, 0.35, 0.6, 0.9]):
        assert law.weights[limit <= level].sum() == pytest.approx(np.mean(values <= level), abs=0.015)


def test_outliers_of_every_kind_are_told_apart():
    weights = np.diag([0.0, 9.0, 9.0])
    weights[1, 2] = weights[2, 1] = 9.0
    base = {"ratio": 0.5, "a1": 0.6, "sigma2": 0.05}
    assert [o.kind for o in attention_spectrum(gram=weights, **base).outliers] == ["weights"]
    assert [o.kind for o in attention_spectrum(gram=NONE, mean_spike=3.0, **base).outliers] == ["mean (a0)"]
    assert [o.kind for o in features_spectrum(gram=aligned(2.0, 0.0), **base).outliers] == ["signal"]
    both = attention_spectrum(gram=aligned(4.0, 0.0), mean_spike=9.0, **base).outliers
    assert [o.kind for o in both] == ["signal", "mean (a0)"]
    assert both[1].overlap == pytest.approx(0.0, abs=1e-9)


def test_equal_outliers_are_both_found():
    # two orthogonal pairs of keys and queries: multiplicity two, where a determinant keeps its sign
    gram = 9.0 * np.kron([[1, 1], [1, 1]], np.eye(2))
    gram = np.pad(gram, (1, 0))
    outliers = attention_spectrum(ratio=0.5, a1=0.6, sigma2=0.05, gram=gram).outliers
    assert len(outliers) == 2
    assert outliers[0].place == pytest.approx(outliers[1].place, abs=1e-6)


def test_refusals():
    base = {"ratio": 0.5, "a1": 0.6, "sigma2": 0.05}
    gram = np.diag([1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="keys and queries must be equal"):
        attention_spectrum(gram=gram, **base)
    with pytest.raises(ValueError, match="must not both be zero"):
        attention_spectrum(gram=NONE, ratio=0.5, a1=0.0, sigma2=0.0)
