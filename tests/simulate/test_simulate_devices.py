"""The same numbers on every library of the array API; array_api_strict has nothing but the standard."""

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, simulate
from resolvent.nonlinearity import known_names, nonlinearity
from resolvent.simulate.device import PORTABLE, device

LIBRARIES = ("array_api_strict", "torch")
RIDGES = np.array([1e-3, 0.1, 10.0])
ANGLES = Weights.from_angles(key_norm=1.0, query_norm=1.5, key_cos=0.6, query_cos=0.3)
SETTINGS = [
    Setting(Tokens(0.5, 2.0), Weights.aligned(1.0), ridge=RIDGES),
    Setting(Tokens(1.5, 2.0, 0.3, 0.1), ANGLES, "relu", ridge=RIDGES),
    Setting(Tokens(0.5, 1.0), ANGLES, "gelu", ridge=RIDGES, skip=0.7),
    Setting(Tokens(0.5, 1.0), ANGLES, "t + t^2/2", centred=False, ridge=RIDGES, keep_diagonal=False),
    Setting(Tokens(2.0, 1.0), Weights.none(), "leaky_relu", centred=False, ridge=0.1, keep_diagonal=True),
    Setting(Tokens(0.5, 2.0), Weights.aligned(1.0), "sin", ridge=0.1),
    Setting(Tokens(0.5, 2.0), Weights.aligned(1.0), "cubic", ridge=0.0),
]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.f.name)
def test_values_are_those_of_numpy(library, setting, monkeypatch):
    pytest.importorskip(library, reason=f"needs {library}")
    pytest.importorskip("array_api_compat", reason="needs the extra device")
    monkeypatch.setattr("resolvent.simulate.elsewhere.BLOCK", 37)  # more than one block
    here = simulate(setting, n=100, draws=3, seed=4)
    there = simulate(setting, n=100, draws=3, seed=4, device=library)
    np.testing.assert_allclose(there.values, here.values, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_fresh_tokens_there_is_no_test_error(library):
    pytest.importorskip(library, reason=f"needs {library}")
    pytest.importorskip("array_api_compat", reason="needs the extra device")
    m = simulate(Setting(), n=40, draws=2, fresh=0, device=library)
    assert np.isnan(m.values[:, :, 1]).all()
    np.testing.assert_allclose(
        m.values[:, :, 0], simulate(Setting(), n=40, draws=2).values[:, :, 0], rtol=1e-10
    )


def test_a_single_ridge_needs_no_eigenpairs(monkeypatch):
    pytest.importorskip("array_api_strict", reason="needs array_api_strict")
    monkeypatch.delattr("resolvent.simulate.elsewhere._fit")
    m = simulate(Setting(), n=40, draws=2, device="array_api_strict")
    np.testing.assert_allclose(m.values, simulate(Setting(), n=40, draws=2).values, rtol=1e-10)
    with pytest.raises(NameError, match="_fit"):
        simulate(Setting(ridge=[0.1, 1.0]), n=40, draws=2, device="array_api_strict")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", known_names())
def test_every_named_function_is_the_same_there(library, name):
    pytest.importorskip(library, reason=f"needs {library}")
    pytest.importorskip("array_api_compat", reason="needs the extra device")
    t, f, there = np.linspace(-6.0, 6.0, 240).reshape(3, 80), nonlinearity(name), device(library)
    got = there.numpy(there.entrywise(f, there.array(t)))
    np.testing.assert_allclose(got, f.evaluate(t), rtol=1e-13, atol=1e-14)


def test_a_users_function_of_a_known_name_is_the_users():
    pytest.importorskip("array_api_strict", reason="needs array_api_strict")

    def tanh(t):
        return t**3

    m = simulate(Setting(nonlinearity=tanh), n=40, draws=2, device="array_api_strict")
    here = simulate(Setting(nonlinearity="t^3"), n=40, draws=2)
    np.testing.assert_allclose(m.values, here.values, rtol=1e-10)


def test_portable_functions_are_known_ones():
    assert set(PORTABLE) <= set(known_names())


def test_an_unknown_library_is_one_line():
    with pytest.raises(ValueError, match=r"device must be one of torch, .* got 'tensorflow'"):
        simulate(Setting(), n=40, draws=2, device="tensorflow")


def test_a_missing_library_is_one_line(monkeypatch):
    def missing(_):
        raise ModuleNotFoundError("No module named 'cupy'", name="cupy")

    monkeypatch.setattr("resolvent.simulate.device._namespace", missing)
    with pytest.raises(ImportError, match="device 'cupy' needs cupy: it is not installed"):
        simulate(Setting(), n=40, draws=2, device="cupy")


def test_a_place_that_the_library_lacks_is_one_line():
    pytest.importorskip("torch", reason="needs torch")
    with pytest.raises(ValueError, match="device 'torch:nowhere' can't be used") as caught:
        simulate(Setting(), n=40, draws=2, device="torch:nowhere")
    assert "\n" not in str(caught.value)


def test_single_precision_goes_without_a_device():
    with pytest.raises(ValueError, match="single goes without a device"):
        simulate(Setting(), n=40, draws=2, device="torch", single=True)
