"""simulate: its numbers against a draw written out, seeds, what it returns, refuses and keeps on Ctrl-C."""

import json
import threading

import numpy as np
import pytest

import resolvent
from resolvent import Setting, Tokens, Weights, simulate
from resolvent.simulate import Interrupted, Measurement, draws, measure, memory, sampling
from resolvent.simulate.draws import run_draws, stream

SKEWED = Weights.from_angles(key_norm=1.2, query_norm=0.8, key_cos=0.7, query_cos=-0.3, key_query_cos=0.2)
FULL = Setting(
    Tokens(ratio=0.5, snr=2.0, label_mean=0.3, label_noise=0.1),
    SKEWED,
    "relu",
    ridge=[0.0, 0.1, 10.0],
    skip=0.4,
    keep_diagonal=True,
)


def by_hand(setting: Setting, p: int, n: int, seed: int, index: int) -> np.ndarray:
    """One draw with n x n matrices and a solve for each ridge."""
    rng = stream(seed, index)
    mu, key, query = sampling.vectors(setting.gram, p)
    samples = [sampling.draw(setting.tokens, mu, n, rng) for _ in range(2)]
    X, fresh = (sample.tokens for sample in samples)
    t, t0 = (sample.targets for sample in samples)
    M = np.eye(p) + np.outer(key, query)
    K = setting.f.evaluate(X.T @ M @ X / np.sqrt(p)) / np.sqrt(p)
    if not setting.keep_diagonal:
        np.fill_diagonal(K, 0.0)
    H = X @ (K + setting.skip * np.eye(n))
    H0 = X @ setting.f.evaluate(X.T @ M @ fresh / np.sqrt(p)) / np.sqrt(p) + setting.skip * fresh
    out = np.empty((2, 2, np.size(setting.ridge)))
    for method, (past, new) in enumerate(((H, H0), (X, fresh))):
        for k, ridge in enumerate(np.atleast_1d(setting.ridge)):
            rows = np.vstack([past.T, np.sqrt(n * ridge) * np.eye(p)])
            w = np.linalg.lstsq(rows, np.append(t, np.zeros(p)), rcond=1e-10)[0]
            out[method, :, k] = np.mean((t - past.T @ w) ** 2), np.mean((t0 - new.T @ w) ** 2)
    return out


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.5])
def test_a_measurement_is_the_model_written_out(ratio: float) -> None:
    setting = Setting(
        Tokens(ratio, *(getattr(FULL.tokens, name) for name in ("snr", "label_mean", "label_noise"))),
        *(FULL.weights, FULL.nonlinearity, True, FULL.ridge if ratio != 1.0 else [0.1, 1.0], FULL.skip, True),
    )
    n = 60
    measured = simulate(setting, n=n, draws=3, seed=5)
    assert measured.p == round(ratio * n)
    expected = np.array([by_hand(setting, measured.p, n, 5, index) for index in range(3)])
    np.testing.assert_allclose(measured.values, expected, rtol=1e-7, atol=1e-9)
    for method, errors in enumerate((measured.attention, measured.linear)):
        for error, average in enumerate(errors):
            np.testing.assert_allclose(
                average.mean, expected[:, method, error].mean(axis=0), rtol=1e-7, atol=1e-9
            )
            np.testing.assert_allclose(
                average.se,
                expected[:, method, error].std(axis=0, ddof=1) / np.sqrt(3.0),
                rtol=1e-5,
                atol=1e-9,
            )
    np.testing.assert_allclose(
        measured.difference.train.mean, measured.attention.train.mean - measured.linear.train.mean
    )


def test_vectors_have_the_inner_products_asked_for() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-8, 1.0, 1e8):
        basis = rng.standard_normal((3, 3)) * scale
        for gram in (basis @ basis.T, np.outer(basis[0], basis[0]), np.zeros((3, 3))):
            rows = sampling.vectors(gram, 5)
            np.testing.assert_allclose(rows @ rows.T, gram, atol=1e-12 * scale**2)
    with pytest.raises(
        ValueError,
        match=r"must be at least 3, the dimension that mu, w_K and w_Q span, got 2",
    ):
        sampling.vectors(np.eye(3), 2)


def test_draws_have_the_law_of_the_model() -> None:
    mu = np.array([2.0, 0.0, 0.0])
    sample = sampling.draw(Tokens(label_mean=0.5, label_noise=0.1), mu, 40_000, np.random.default_rng(0))
    assert set(np.unique(sample.labels)) == set(np.unique(sample.targets)) == {-1.0, 1.0}
    assert sample.labels.mean() == pytest.approx(0.5, abs=4 * np.sqrt(0.75 / 40_000))
    assert np.mean(sample.labels != sample.targets) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 40_000))
    noise = sample.tokens - np.outer(mu, sample.labels)
    np.testing.assert_allclose(noise @ noise.T / 40_000, np.eye(3), atol=0.03)
    assert abs(np.mean(noise * sample.labels)) < 0.015


def test_the_seed_decides_everything_whatever_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for workers in (1, 2, 5):
        monkeypatch.setattr(measure, "workers_for", lambda *_, w=workers: w)
        results.append(simulate(FULL, n=300, draws=4, seed=3).values)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    for workers in (1, 2):  # a single draw uses the workers for its blocks
        monkeypatch.setattr(measure, "workers_for", lambda *_, w=workers: w)
        np.testing.assert_array_equal(simulate(FULL, n=300, draws=1, seed=3).values[0], results[0][0])
    np.testing.assert_array_equal(simulate(FULL, n=300, draws=2, seed=3).values, results[0][:2])
    other = simulate(FULL, n=300, draws=4, seed=4).values
    assert not np.any(np.isclose(other[:, 0, 0, 1], results[0][:, 0, 0, 1], rtol=1e-9))
    assert len(set(results[0][:, 0, 0, 1])) == 4


def test_a_single_draw_has_no_standard_error() -> None:
    m = simulate(Setting(), n=40, draws=1)
    for average in (*m.attention, *m.linear):
        assert np.isfinite(average.mean)
        assert np.isnan(average.se)


def test_without_fresh_tokens_there_is_no_test_error() -> None:
    m = simulate(Setting(ridge=[0.1, 1.0]), n=40, draws=2, fresh=0)
    assert np.all(np.isfinite(m.attention.train.mean))
    assert np.all(np.isnan(m.attention.test.mean))
    with_fresh = simulate(Setting(ridge=[0.1, 1.0]), n=40, draws=2, fresh=10)
    np.testing.assert_array_equal(m.attention.train.mean, with_fresh.attention.train.mean)


def test_single_precision_changes_little() -> None:
    exact, single = (simulate(FULL, n=300, draws=2, single=single).values for single in (False, True))
    difference = np.abs(single / exact - 1.0)[:, :, :, 1:]  # with a ridge
    assert 0.0 < difference[:, 0].max() < 1e-4
    assert np.all(difference[:, 1] == 0.0)


def test_one_ridge_gives_numbers_and_a_curve_gives_arrays() -> None:
    one, curve = (
        simulate(Setting(ridge=0.1), n=40, draws=2),
        simulate(Setting(ridge=[0.1, 1.0]), n=40, draws=2),
    )
    assert type(one.attention.train.mean) is float
    assert one.values.shape == (2, 2, 2)
    assert curve.attention.train.mean.shape == curve.attention.test.se.shape == (2,)
    np.testing.assert_allclose(curve.values[..., 0], one.values, rtol=1e-12)
    assert np.all(np.diff(curve.values[:, :, 0], axis=-1) > 0.0)


def test_fields_for_json() -> None:
    m = simulate(Setting(Tokens(ratio=0.5), Weights.aligned(1.0)), n=41, draws=2, seed=7)
    record = json.loads(json.dumps(m.as_dict()))
    assert set(record) == {"setting", "attention", "linear"}
    assert {"n": 41, "p": 20, "draws": 2, "seed": 7}.items() <= record["setting"].items()
    assert record["setting"]["align"] == 1.0
    for method in ("attention", "linear"):
        assert set(record[method]) == {"train", "test"}
        assert set(record[method]["train"]) == {"mean", "se"}
    assert record["attention"]["train"]["mean"] == m.attention.train.mean
    text = str(m).splitlines()
    assert [line.split("  ")[0] for line in text[1:]] == ["attention", "linear regression"]
    assert f"{m.attention.train.mean:.5f} +- {m.attention.train.se:.5f}" in text[1]


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        (ValueError, {"n": 3}, "n must be at least 4, got 3"),
        (ValueError, {"draws": 0}, "draws must be at least 1, got 0"),
        (ValueError, {"seed": -1}, "seed must be at least 0, got -1"),
        (ValueError, {"fresh": -1}, "fresh must be at least 0, got -1"),
        (TypeError, {"n": 100.0}, "n must be an integer, got 100.0"),
        (TypeError, {"draws": True}, "draws must be an integer, got True"),
        (TypeError, {"seed": "0"}, "seed must be an integer, got '0'"),
    ],
)
def test_sizes_out_of_range(kind: type[Exception], kwargs: dict, message: str) -> None:
    with pytest.raises(kind, match=f"^{message}$"):
        simulate(Setting(), **kwargs)


@pytest.mark.parametrize(
    "setting",
    [
        Setting(Tokens(ratio=[0.5, 1.0])),
        Setting(skip=[0.0, 1.0], ridge=[0.1, 0.2]),
        Setting(Tokens(snr=[1.0, 2.0]), ridge=[0.1, 0.2]),
        Setting(weights=Weights.aligned([0.0, 1.0]), ridge=[0.1, 0.2]),
        Setting(ridge=[[0.1, 0.2]]),
    ],
)
def test_only_the_ridge_may_be_an_array(setting: Setting) -> None:
    with pytest.raises(ValueError, match=r"^simulate takes one setting, in which only ridge may be an array"):
        simulate(setting, n=10)


def test_too_few_dimensions_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^p = round\(ratio n\) must be at least 2, got 1: raise ratio or n$"
    ):
        simulate(Setting(Tokens(ratio=0.01)), n=100)
    with pytest.raises(ValueError, match=r"must be at least 3, the dimension that mu, w_K and w_Q span"):
        simulate(Setting(Tokens(ratio=0.1), SKEWED), n=20, draws=2)


def test_more_than_the_memory_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(
        ValueError, match=r"^n = 1000000 and p = 500000 need [\de.+]+ GiB of memory, [\de.+]+ GiB are av"
    ):
        simulate(Setting(), n=1_000_000)


def test_workers_fit_cores_draws_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    need = 8 * (100 * (3 * 200 + 200) + 4 * 100**2) + 8 * 2 * memory.BLOCK * 300
    monkeypatch.setattr(memory, "_available", lambda: 3 * need)
    assert memory.workers_for(100, 200, 200, draws=20) == 3
    assert memory.workers_for(100, 200, 200, draws=2) == 2
    monkeypatch.setattr(memory, "_available", lambda: need - 1)
    with pytest.raises(ValueError, match="of memory"):
        memory.workers_for(100, 200, 200, draws=1)
    monkeypatch.setattr(memory, "_available", lambda: 1000 * need)
    assert memory.workers_for(100, 200, 200, draws=20) == 8
    assert memory.workers_for(100, 200, 200, draws=1) == 8


def test_interruption_keeps_the_finished_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = simulate(Setting(), n=40, draws=6, seed=2)
    monkeypatch.setattr(measure, "workers_for", lambda *_: 1)
    original, count = measure._draw, iter(range(100))

    def fourth_fails(*args: object) -> np.ndarray:
        if next(count) == 3:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(measure, "_draw", fourth_fails)
    with pytest.raises(Interrupted, match=r"^interrupted after ") as caught:
        simulate(Setting(), n=40, draws=6, seed=2)
    record = caught.value.record
    assert isinstance(record, Measurement)
    assert 3 <= record.draws == len(record.values) == len(caught.value.values) < 6
    np.testing.assert_array_equal(record.values[:3], whole.values[:3])


def test_interruption_while_other_draws_run_keeps_those_too() -> None:
    """Draws that run are waited for and kept, the rest never start."""
    running, started = threading.Barrier(3), []

    def task(rng: np.random.Generator, _: object) -> np.ndarray:
        started.append(1)
        if len(started) == 3:
            running.wait(10)
            raise KeyboardInterrupt
        running.wait(10)
        return rng.random(2)

    with pytest.raises(Interrupted) as caught:
        run_draws(task, 3, seed=0, workers=3, progress=False)
    assert len(caught.value.values) == 2
    assert caught.value.values.shape == (2, 2)


def test_interruption_of_a_single_draw_leaves_nothing() -> None:
    def task(_: object, __: object) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        run_draws(task, 1, seed=0, workers=2, progress=False)
    assert len(caught.value.values) == 0
    assert caught.value.record is None


def test_a_draw_that_fails_stops_the_rest() -> None:
    started = []

    def task(_: object, __: object) -> np.ndarray:
        started.append(1)
        raise FloatingPointError("broken")

    with pytest.raises(FloatingPointError, match="broken"):
        run_draws(task, 50, seed=0, workers=1, progress=False)
    assert len(started) < 50


def test_overflow_is_one_line() -> None:
    setting = Setting(Tokens(snr=100.0), Weights.aligned(5.0), "exp")
    with pytest.raises(OverflowError, match=r"^f reaches .* on the scores of these tokens"):
        simulate(setting, n=50, draws=2)


def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    quiet, shown = (simulate(Setting(), n=20, draws=2, progress=progress) for progress in (False, True))
    np.testing.assert_array_equal(quiet.values, shown.values)
    assert capsys.readouterr().out == ""


def test_simulate_is_a_module_that_can_be_called() -> None:
    assert resolvent.simulate(Setting(), n=20, draws=2).n == 20
    assert resolvent.simulate.Measurement is Measurement
    assert sorted(resolvent.simulate.__all__) == [
        "Average",
        "Errors",
        "Interrupted",
        "Linearisation",
        "Measurement",
        "eigenvalues",
        "linearisation",
        "simulate",
    ]
    assert draws.Interrupted is Interrupted
