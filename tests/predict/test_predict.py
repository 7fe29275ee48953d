"""predict: what it returns, arrays against a loop, sizes, and its module that can be called."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import resolvent
from resolvent import Setting, Tokens, Weights, predict
from resolvent.equivalents import attention_errors, linear_errors
from resolvent.predict import ConvergenceError, Prediction

UNCENTRED = Setting(
    Tokens(ratio=0.5, label_mean=0.6), Weights.aligned(0.5), "relu", centred=False, keep_diagonal=True
)


def test_a_prediction_is_the_equivalents_at_the_setting() -> None:
    setting = Setting(
        Tokens(ratio=0.7, snr=2.0, label_mean=0.4, label_noise=0.1),
        Weights.from_angles(key_norm=1.0, query_norm=2.0, key_cos=0.5, query_cos=-0.2),
        "relu",
        centred=False,
        ridge=0.3,
        skip=0.5,
        keep_diagonal=True,
    )
    one = predict(setting, p=400)
    a0, nu = 1.0 / np.sqrt(2.0 * np.pi), 0.5
    expected = attention_errors(
        ratio=0.7,
        ridge=0.3,
        a1=0.5,
        sigma2=nu - a0**2 - 0.25,
        gram=setting.gram,
        shift=1.0,
        skip=0.5,
        mean_spike=a0 * 20.0,
        a2=0.5 / np.sqrt(np.pi),
        label_mean=0.4,
        target_overlap=0.8,
    )
    for name in ("train", "test", "t", "u", "alpha", "m"):
        assert getattr(one.attention, name) == pytest.approx(getattr(expected, name), rel=1e-10)
    linear = linear_errors(ratio=0.7, ridge=0.3, snr=2.0, target_overlap=0.8)
    assert one.linear == linear


def test_the_size_matters_only_through_the_diagonal_and_the_mean() -> None:
    limit, huge, small = predict(UNCENTRED), predict(UNCENTRED, p=10**12), predict(UNCENTRED, p=50)
    assert huge.attention.train == pytest.approx(limit.attention.train, rel=1e-5)
    assert abs(small.attention.train - limit.attention.train) > 1e-4
    centred = Setting(Tokens(label_mean=0.6))
    assert predict(centred, p=50).attention == predict(centred).attention
    kept = Setting(keep_diagonal=True)
    assert predict(kept).attention.train == pytest.approx(predict(Setting()).attention.train, rel=1e-8)
    assert predict(kept, p=50).attention.train != pytest.approx(predict(Setting()).attention.train, rel=1e-3)


@pytest.mark.parametrize(
    ("p", "kind"), [(1, ValueError), (-3, ValueError), (64.0, TypeError), (True, TypeError)]
)
def test_sizes_out_of_range(p: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^p must be (at least 2|an integer), got "):
        predict(Setting(), p=p)


def test_arrays_equal_a_loop() -> None:
    ratio, ridge, align = np.array([0.5, 1.0, 2.0]), np.array([0.01, 1.0]), np.array([-1.0, 0.0, 0.5, 2.0])
    tokens = Tokens(ratio=ratio[:, None, None], snr=2.0, label_noise=0.1)
    whole = predict(Setting(tokens, Weights.aligned(align), "relu", ridge=ridge[:, None]))
    for method in ("attention", "linear"):
        for error in ("train", "test"):
            assert getattr(getattr(whole, method), error).shape == (3, 2, 4)
    assert whole.attention.converged.shape == whole.attention.iterations.shape == (3, 2, 4)
    for i, j, k in np.ndindex(3, 2, 4):
        one = predict(
            Setting(
                Tokens(float(ratio[i]), 2.0, 0.0, 0.1),
                Weights.aligned(align[k]),
                "relu",
                ridge=float(ridge[j]),
            )
        )
        assert type(one.attention.train) is type(one.linear.test) is float
        for method in ("attention", "linear"):
            for error in ("train", "test"):
                value = getattr(getattr(whole, method), error)[i, j, k]
                assert getattr(getattr(one, method), error) == pytest.approx(value, rel=1e-12)


def test_no_settings_give_no_numbers() -> None:
    none = predict(Setting(ridge=[]))
    assert none.attention.train.shape == none.linear.test.shape == (0,)


def test_fields_for_json() -> None:
    record = json.loads(json.dumps(predict(Setting(Tokens(snr=2.0), Weights.aligned(1.0))).as_dict()))
    assert list(record) == ["setting", "nonlinearity", "attention", "linear", "solver", "cautions"]
    assert record["setting"] == Setting(Tokens(snr=2.0), Weights.aligned(1.0)).as_dict()
    assert list(record["nonlinearity"]) == ["name", "a0", "a1", "a2", "nu", "sigma2"]
    assert record["nonlinearity"]["name"] == "tanh"
    assert list(record["attention"]) == list(record["linear"]) == ["train", "test"]
    assert list(record["solver"]) == ["converged", "residual", "iterations"]
    assert record["solver"]["converged"] is True
    assert 0.0 < record["attention"]["train"] < 1.0


def test_text_shows_both_methods() -> None:
    lines = str(predict(Setting())).splitlines()
    assert lines[0].split() == ["train", "test"]
    assert lines[1].split() == ["attention", "0.34436", "0.84449"]
    assert lines[2].startswith("linear regression")
    assert "array (2,)" in str(predict(Setting(ridge=[0.1, 1.0])))


def test_predictions_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        predict(Setting()).attention = None


def unconverged(rows: np.ndarray | bool):
    def kernel(**kwargs: object):
        found = attention_errors(**kwargs)
        return replace(
            found, converged=rows, train=np.where(rows, found.train, np.nan), residual=0.5 * found.train
        )

    return kernel


def test_a_fixed_point_that_is_not_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    home = sys.modules["resolvent.predict.routes"]
    monkeypatch.setattr(home, "attention_errors", unconverged(False))
    with pytest.raises(
        ConvergenceError, match=r"^the fixed point did not converge, residual 1\.7e-01, at f tanh"
    ):
        predict(Setting())
    monkeypatch.setattr(home, "attention_errors", unconverged(np.array([False, False])))
    with pytest.raises(ConvergenceError, match=r"^the fixed point did not converge"):
        predict(Setting(ridge=[0.1, 0.2]))
    monkeypatch.setattr(home, "attention_errors", unconverged(np.array([False, True])))
    some = predict(Setting(ridge=[0.1, 0.2]))
    assert np.isnan(some.attention.train).tolist() == [True, False]
    assert issubclass(ConvergenceError, ArithmeticError)


def test_a_fixed_point_out_of_reach_is_an_error_without_help() -> None:
    with pytest.raises(ConvergenceError):
        predict(Setting(Tokens(ratio=3.0), nonlinearity="1000*t + t^3", ridge=1e-300))


INNER = "from resolvent.predict import predict as inner"
OUTER = "import resolvent; from resolvent import Setting, predict"
ORDERS = [
    f"{OUTER}; {INNER}",
    f"{INNER}; {OUTER}",
    f"import resolvent.predict; {OUTER}; {INNER}",
    f"import resolvent; from resolvent.predict import predict; {INNER}; from resolvent import Setting",
    f"import resolvent.simulate; {OUTER}; {INNER}",
]
CALLS = "s = Setting(); assert predict(s).attention == resolvent.predict(s).attention == inner(s).attention"


@pytest.mark.parametrize("order", ORDERS)
def test_predict_can_be_called_however_it_is_imported(order: str) -> None:
    code = f"{order}; {CALLS}; assert resolvent.predict.Prediction is resolvent.Prediction"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_callable_module_keeps_its_names() -> None:
    assert resolvent.predict.Prediction is Prediction
    assert resolvent.predict(setting=Setting(), p=64) == predict(Setting(), p=64)
    with pytest.raises(TypeError):
        resolvent.predict(Setting(), 64)


def test_parallel_directions_are_ordinary() -> None:
    """Weights along the signal give a singular Gram matrix, at any size."""
    align = np.array([-3.0, 1e-8, 1.0, 1e3])
    e = predict(Setting(Tokens(snr=[[1e-12], [0.0], [1e4]]), Weights.aligned(align))).attention
    assert np.all(e.converged)
