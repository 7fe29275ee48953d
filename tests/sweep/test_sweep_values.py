"""A sweep's numbers are those of predict and simulate, point by point and cell by cell."""

import numpy as np
import pytest
from sweeps import OVER, SETTING, SIZES, small

from resolvent import Setting, Tokens, Weights, predict, simulate, sweep
from resolvent.setting.variation import varied


def test_predictions_are_those_of_every_point_by_itself():
    d = sweep(SETTING, OVER)
    assert d["predicted"].dims == ("method", "error", "snr", "ridge", "f")
    for i, snr in enumerate(OVER["snr"]):
        for j, ridge in enumerate(OVER["ridge"]):
            for k, f in enumerate(OVER["f"]):
                one = predict(Setting(Tokens(0.5, snr), Weights.aligned(0.5), f, ridge=ridge))
                got = d["predicted"][:, :, i, j, k].values
                want = [[one.attention.train, one.attention.test], [one.linear.train, one.linear.test]]
                np.testing.assert_allclose(got, want, rtol=1e-9)
    assert d["converged"].all()
    assert d["residual"].max() < 1e-9


@pytest.mark.parametrize(
    ("base", "name", "values", "naive"),
    [
        (SETTING, "ratio", [0.2, 2.0], lambda v: Setting(Tokens(v, 2.0), Weights.aligned(0.5))),
        (SETTING, "label_mean", [-0.3, 0.4], lambda v: Setting(Tokens(0.5, 2.0, v), Weights.aligned(0.5))),
        (SETTING, "label_noise", [0.1], lambda v: Setting(Tokens(0.5, 2.0, 0.0, v), Weights.aligned(0.5))),
        (SETTING, "skip", [-0.5, 0.7], lambda v: Setting(Tokens(0.5, 2.0), Weights.aligned(0.5), skip=v)),
        (SETTING, "align", [-1.0, 2.0], lambda v: Setting(Tokens(0.5, 2.0), Weights.aligned(v))),
        (
            SETTING,
            "keep_diagonal",
            [True, False],
            lambda v: Setting(Tokens(0.5, 2.0), Weights.aligned(0.5), keep_diagonal=v),
        ),
        (
            Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=2.0, query_cos=0.5)),
            "key_cos",
            [0.0, 0.6],
            lambda v: Setting(
                weights=Weights.from_angles(key_norm=1.0, query_norm=2.0, key_cos=v, query_cos=0.5)
            ),
        ),
        (
            Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=2.0, key_query_cos=0.3)),
            "key_cos",
            [0.0, 0.6],
            lambda v: Setting(
                weights=Weights.from_angles(key_norm=1.0, query_norm=2.0, key_cos=v, key_query_cos=0.3)
            ),
        ),
        (
            Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=2.0)),
            "key_query_cos",
            [-1.0, 0.6],
            lambda v: Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=2.0, key_query_cos=v)),
        ),
        (
            Setting(nonlinearity="relu"),
            "centred",
            [True, False],
            lambda v: Setting(nonlinearity="relu", centred=v),
        ),
    ],
)
def test_each_field_varies_as_if_it_were_written_down(base, name, values, naive):
    d = sweep(base, {name: values})
    for i, value in enumerate(values):
        one = predict(naive(value))
        np.testing.assert_allclose(
            d["predicted"][0, :, i], [one.attention.train, one.attention.test], rtol=1e-9
        )
    assert name not in d.attrs


def test_norms_vary_from_weights_that_are_off():
    d = sweep(
        Setting(weights=Weights.aligned(0.0)), {"key_norm": [1.0], "query_norm": [2.0], "query_cos": [0.7]}
    )
    one = predict(Setting(weights=Weights.from_angles(key_norm=1.0, query_norm=2.0, query_cos=0.7)))
    assert d["predicted"][0, 1].item() == pytest.approx(one.attention.test, rel=1e-9)


def test_a_cell_is_simulate_with_the_seed_of_its_place():
    d = small()
    setting = varied(SETTING, {"snr": 2.0, "f": "relu", "ridge": OVER["ridge"]})
    cell = 2 * 2 + 1
    words = np.random.SeedSequence(7, spawn_key=(cell,)).generate_state(1, np.uint64)
    m = simulate(setting, n=SIZES["n"], draws=SIZES["draws"], seed=int(words[0]))
    for i, errors in enumerate((m.attention, m.linear)):
        for j, average in enumerate(errors):
            np.testing.assert_array_equal(d["measured"][i, j, 2, :, 1], average.mean)
            np.testing.assert_array_equal(d["standard_error"][i, j, 2, :, 1], average.se)
    paired = m.values[:, 0] - m.values[:, 1]
    np.testing.assert_allclose(d["difference"][:, 2, :, 1], paired.mean(0), rtol=1e-12)
    np.testing.assert_allclose(d["difference_se"][:, 2, :, 1], paired.std(0, ddof=1) / np.sqrt(3), rtol=1e-12)


def test_every_cell_has_a_seed_of_its_own():
    d = sweep(SETTING, {"label_mean": [0.0, 1e-300]}, simulate=SIZES)
    assert d["measured"][0, 0, 0] != d["measured"][0, 0, 1]


@pytest.mark.parametrize("f", ["relu", "tanh"])
def test_measured_agrees_with_predicted_at_the_simulated_dimension(f):
    base = Setting(Tokens(0.5, 1.0), nonlinearity=f, centred=False, keep_diagonal=True)
    d = sweep(base, {"ratio": [0.25, 0.5]}, simulate={"n": 400, "draws": 20, "seed": 0})
    for i, p in enumerate((100, 200)):
        one = predict(varied(base, {"ratio": [0.25, 0.5][i]}), p=p)
        np.testing.assert_allclose(
            d["predicted"][0, :, i], [one.attention.train, one.attention.test], rtol=1e-9
        )
    z = (d["measured"] - d["predicted"]) / np.hypot(d["standard_error"], 0.005)
    assert abs(z).max() < 4.0


def test_one_draw_has_no_standard_error():
    d = sweep(SETTING, {"snr": [1.0]}, simulate={"n": 40, "draws": 1})
    assert np.isfinite(d["measured"]).all()
    assert np.isnan(d["standard_error"]).all()


def test_the_ridge_alone_is_one_cell():
    d = sweep(SETTING, {"ridge": [0.1, 1.0]}, simulate=SIZES)
    assert d["measured"].shape == (2, 2, 2)
    assert np.isfinite(d["measured"]).all()


def test_attributes_hold_the_rest_of_the_setting():
    attrs = small().attrs
    assert {k: attrs[k] for k in ("ratio", "align", "n", "draws", "seed")} == {
        "ratio": 0.5,
        "align": 0.5,
        "n": 40,
        "draws": 3,
        "seed": 7,
    }
    assert {"resolvent", "numpy", "scipy"} <= set(attrs)
    assert not {"snr", "ridge", "f"} & set(attrs)


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({}, {}, "at least one"),
        ({"snrr": [1.0]}, {}, "can vary, got 'snrr'"),
        ({"snr": []}, {}, "at least one value"),
        ({"snr": 1.0}, {}, "list of values, got 1.0"),
        ({"f": "tanh"}, {}, "list of values, got 'tanh'"),
        ({"f": [1.0]}, {}, "names or expressions, got 1.0"),
        ({"snr": [1.0, 1.0]}, {}, "distinct values, got 1.0 twice"),
        ({"snr": [1.0, -1.0]}, {}, "snr must be zero or positive, got -1"),
        ({"keep_diagonal": [1]}, {}, "keep_diagonal must be True or False"),
        ({"align": [0.0], "key_norm": [1.0]}, {}, "key_norm cannot vary with it"),
        ({"key_norm": [1.0]}, {}, "align already fixes the weights"),
        ({"snr": [1.0]}, {"simulate": {"nn": 3}}, "dict of n, draws, seed"),
        ({"snr": [1.0]}, {"simulate": {"n": 3}}, "n must be at least 4, got 3"),
        ({"snr": [1.0]}, {"simulate": {"seed": 2**63}}, "seed must be below"),
        ({"ratio": [0.5, 0.01]}, {"simulate": {"n": 10}}, "p = round"),
        ({"snr": [1.0]}, {"workers": 0}, "workers must be at least 1"),
        ({"snr": [1.0]}, {"simulate": SIZES, "executor": 3}, "executor must be a Dask"),
    ],
)
def test_wrong_input_is_one_line(over, options, message):
    if "executor" in options:
        pytest.importorskip("distributed", reason="needs the extra dask")
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        sweep(SETTING, over, **options)
    assert "\n" not in str(caught.value)


def test_a_setting_of_arrays_is_refused():
    with pytest.raises(ValueError, match="one setting"):
        sweep(Setting(ridge=[0.1, 0.2]), {"snr": [1.0]})


def test_settings_of_every_kind_can_vary_and_are_told_apart() -> None:
    softmax = sweep(Setting(nonlinearity="softmax", beta=0.5), over={"f": ["tanh", "softmax"]})
    expected = [predict(Setting()), predict(Setting(nonlinearity="softmax", beta=0.5))]
    np.testing.assert_allclose(softmax["predicted"].values[0, 0], [e.attention.train for e in expected])
    betas = sweep(Setting(nonlinearity="softmax"), over={"beta": [0.5, 1.0]})
    assert betas["predicted"].values[0, 0, 0] == pytest.approx(expected[1].attention.train)
    matrix = Setting(weights=Weights.matrix(np.eye(32)))
    measured = sweep(matrix, over={"snr": [0.5, 1.0], "ridge": [0.1, 1.0]}, simulate={"n": 64, "draws": 2})
    assert measured["measured"].shape == (2, 2, 2, 2)
    heads = [
        sweep(Setting(weights=[Weights.aligned(a), Weights.none()]), over={"snr": [1.0]}).attrs
        for a in (0.5, 1.0)
    ]
    assert heads[0] != heads[1]
    with pytest.raises(ValueError, match="align can vary only for one head"):
        sweep(matrix, over={"align": [0.5, 1.0]})
