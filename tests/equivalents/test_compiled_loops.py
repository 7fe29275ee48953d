"""The compiled loops give NumPy's numbers, whatever the chunks and threads, and can be done without."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import resolvent.equivalents.errors as errors_module
from resolvent.equivalents import AttentionErrors, attention_errors

SIZE = 2000


def random_settings(size: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Settings over the whole range that the solver promises, special values included."""
    rng = np.random.default_rng(seed)

    def some(values: np.ndarray, share: float, special: float = 0.0) -> np.ndarray:
        return np.where(rng.random(size) < share, values, special)

    vectors = rng.normal(size=(size, 3, 4)) * 10.0 ** rng.uniform(-1.0, 1.0, (size, 3, 1))
    return {
        "ratio": some(10.0 ** rng.uniform(-3, 3, size), 0.8, 1.0),
        "ridge": some(10.0 ** rng.uniform(-10, 4, size), 0.99),
        "a1": some(rng.normal(size=size), 0.8),
        "sigma2": some(10.0 ** rng.uniform(-8, 3, size), 0.9, 1.0),
        "shift": some(rng.uniform(-10, 10, size), 0.5),
        "skip": some(rng.normal(size=size), 0.3),
        "mean_spike": some(rng.normal(scale=10.0, size=size), 0.5),
        "a2": some(rng.normal(size=size), 0.5),
        "label_mean": some(rng.uniform(-0.9, 0.9, size), 0.5),
        "target_overlap": rng.uniform(-1, 1, size),
        "gram": vectors @ np.swapaxes(vectors, -1, -2),
    }


def assert_equal(one: AttentionErrors, other: AttentionErrors, rtol: float = 0.0) -> None:
    for field in fields(AttentionErrors):
        np.testing.assert_allclose(
            getattr(one, field.name), getattr(other, field.name), rtol=rtol, atol=0.0, err_msg=field.name
        )


@pytest.fixture(scope="module")
def settings() -> dict[str, np.ndarray]:
    return random_settings(SIZE)


@pytest.fixture(scope="module")
def interpreted(settings: dict[str, np.ndarray]) -> AttentionErrors:
    return attention_errors(**settings, compiled=False)


def test_compiled_loops_give_the_numbers_of_numpy(
    settings: dict[str, np.ndarray], interpreted: AttentionErrors
) -> None:
    pytest.importorskip("numba")
    compiled = attention_errors(**settings, compiled=True)
    assert compiled.converged[settings["ridge"] > 0.0].all()
    assert_equal(compiled, interpreted, rtol=1e-13)


@pytest.mark.parametrize(("rows", "cores"), [(SIZE, 1), (700, 1), (700, 2), (150, 5)])
def test_numbers_depend_on_neither_chunks_nor_threads(
    settings: dict[str, np.ndarray],
    interpreted: AttentionErrors,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    cores: int,
) -> None:
    monkeypatch.setattr(errors_module, "ROWS_AT_ONCE", rows)
    monkeypatch.setattr(errors_module, "_cores", lambda: cores)
    assert_equal(attention_errors(**settings, compiled=False), interpreted)


def test_rows_do_not_depend_on_their_company(
    settings: dict[str, np.ndarray], interpreted: AttentionErrors
) -> None:
    for row in range(0, SIZE, 500):
        alone = attention_errors(**{name: value[row] for name, value in settings.items()})
        assert alone.train == interpreted.train[row]
        assert alone.test == interpreted.test[row]
        assert alone.converged is True


def test_elimination_without_pivoting_agrees_with_lapack(
    settings: dict[str, np.ndarray], interpreted: AttentionErrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors_module, "CERTAIN", -1.0)
    pivoted = attention_errors(**settings, compiled=False)
    usual = (settings["ridge"] > 1e-3) & (settings["ridge"] < 1e2) & (settings["sigma2"] > 1e-3)
    assert usual.mean() > 0.1
    gap = np.abs(pivoted.train[usual] / interpreted.train[usual] - 1.0)
    assert gap.any()
    assert np.quantile(gap, 0.5) < 1e-14
    assert gap.max() < 1e-7


def test_a_vanishing_pivot_falls_back_to_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    pivoted: list[int] = []
    original = errors_module.pivoted_errors
    monkeypatch.setattr(
        errors_module, "pivoted_errors", lambda *args: pivoted.append(args[0].ratio.size) or original(*args)
    )
    size = 200
    edge = {"ratio": 1.0, "ridge": 1e-10, "sigma2": 1e-8, "shift": 0.0, "skip": 0.0, "a1": 1.0}
    hard = {name: np.full(size, value) for name, value in edge.items()}
    result = attention_errors(**random_settings(size, seed=1) | hard, compiled=False)
    assert pivoted
    assert result.converged.all()


BLOCKED = """
import sys
sys.modules["numba"] = None
from resolvent.equivalents import attention_errors
import resolvent.equivalents.errors as errors
setting = dict(ratio=0.5, ridge=[0.1, 0.2], a1=0.6, sigma2=0.03, gram=[[1.0] * 3] * 3)
errors.COMPILED_ROWS = 1
print(attention_errors(**setting).train[0])
try:
    attention_errors(**setting, compiled=True)
except ModuleNotFoundError as error:
    print(error)
"""


def test_numba_is_optional() -> None:
    run = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True)
    value, message = run.stdout.splitlines()
    assert float(value) == pytest.approx(0.32729863438500373, rel=1e-12)
    assert message == "compiled=True needs Numba: pip install 'resolvent[fast]'"


def test_few_settings_do_not_load_numba() -> None:
    code = BLOCKED.replace('sys.modules["numba"] = None', "").split("errors.COMPILED_ROWS")[0]
    code += "attention_errors(**setting)\nprint('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
