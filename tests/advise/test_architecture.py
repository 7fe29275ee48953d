"""Multi-head softmax at initialisation: the limit law against its equation retyped and exact simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.advise import Architecture, architecture
from resolvent.advise.multihead import simulate_architecture
from resolvent.equivalents import architecture_errors

PUBLISHED = {
    "heads": 8, "beta": 1.0, "key_width": 1.0, "value_width": 1.0, "output_width": 0.5,
    "ridge": 1e-2, "noise": 0.1,
}  # fmt: skip


def naive_w(lam, h, beta, k, v, o):
    """The equation as the theory page has it, by bisection."""
    c = beta**2 / (np.exp(beta**2) - 1)

    def S(z):
        return 2 / (1 + c * z / k + np.sqrt((1 - c * z / k) ** 2 + 4 * c**2 * z / k))

    low, high = 0.0, min(1.0, h, v, o)
    for _ in range(200):
        w = (low + high) / 2
        if lam * w < (1 - w) * (1 - w / h) * (1 - w / v) * (1 - w / o) / S(-w):
            low = w
        else:
            high = w
    return w


def test_the_published_value():
    assert architecture_errors(**PUBLISHED).error == pytest.approx(0.1098, abs=5e-5)


@settings(max_examples=60)
@given(
    lam=st.floats(1e-4, 1e2), h=st.integers(1, 32), beta=st.floats(0.05, 2.5),
    k=st.floats(0.1, 5), v=st.floats(0.1, 5), o=st.floats(0.1, 5), noise=st.floats(0, 2),
)  # fmt: skip
def test_root_and_implicit_derivative(lam, h, beta, k, v, o, noise):
    found = architecture_errors(
        heads=h, beta=beta, key_width=k, value_width=v, output_width=o, ridge=lam, noise=noise
    )
    assert found.effective == pytest.approx(naive_w(lam, h, beta, k, v, o), rel=1e-9)
    step = 1e-3 * lam
    slope = (naive_w(lam + step, h, beta, k, v, o) - naive_w(lam - step, h, beta, k, v, o)) / (2 * step)
    naive = 1 - found.effective / o + (lam / o - noise) * slope
    assert found.error == pytest.approx(naive, rel=1e-4, abs=1e-6)
    assert found.error >= 0


def test_arguments_broadcast():
    found = architecture_errors(**PUBLISHED | {"heads": [[1], [8]], "ridge": [1e-2, 1e-1, 1.0]})
    assert found.error.shape == (2, 3)
    assert found.error[1, 0] == architecture_errors(**PUBLISHED).error


def test_simulation_approaches_the_limit():
    """Finite-size bias falls like 1/n: 0.1147, 0.1120, 0.1106 at n = 512, 1024, 2048 on the theory page."""
    limit, bias = architecture_errors(**PUBLISHED).error, []
    for n, draws in ((128, 12), (256, 6), (512, 3)):
        own = Architecture(d=n, heads=8, d_k=n // 8, d_v=n // 8, tokens=n, d_out=n // 2)
        assert own.limit.error == limit
        error, effective = simulate_architecture(own, draws=draws)
        bias.append(error.mean - limit)
        assert effective.mean == pytest.approx(own.limit.effective, rel=0.8 / n)
    assert np.polyfit([1 / 128, 1 / 256, 1 / 512], bias, 1)[1] == pytest.approx(0.0, abs=0.0015)
    assert bias[2] == pytest.approx(0.1147 - limit, abs=0.001)


def test_sharing_keys_and_values_leaves_the_law_alone_but_tying_them_does_not():
    own = Architecture(d=256, heads=4, d_k=64, d_v=64, tokens=256, d_out=128)
    apart, error = (simulate_architecture(replace(own, groups=g), draws=5)[0] for g in (4, 1))
    assert abs(apart.mean - error.mean) < 4 * np.hypot(apart.se, error.se)
    tied = simulate_architecture(replace(own, tied=True), draws=5)[0]
    assert abs(apart.mean - tied.mean) > 4 * np.hypot(apart.se, tied.se)
    assert np.isnan(replace(own, tied=True).limit.error)


def test_alternatives_keep_the_number_of_parameters():
    own = Architecture(d=64, heads=4, d_k=16, d_v=16, tokens=48, d_out=32)
    found = architecture(own, draws=2)
    rows = {row.name: row for row in found.rows}
    assert rows["as given"].architecture.parameters == 64 * (64 + 64 + 64) + 64 * 32
    assert {"1 head", "2 heads", "8 heads"} <= set(rows)
    for name, row in rows.items():
        limit = row.architecture.limit.error
        if "head" in name:
            assert row.architecture.parameters == own.parameters
        if name == "grouped":
            assert row.architecture.parameters < own.parameters
            assert limit == own.limit.error
        if name == "grouped, wider":
            assert 0.9 * own.parameters < row.architecture.parameters <= own.parameters
            assert limit < own.limit.error
    assert rows["1 head"].architecture.limit.error > rows["8 heads"].architecture.limit.error
    for word in ("predicted", "measured", "grouped, wider", "fewer than 16"):
        assert word in str(found)


def test_large_beta_is_warned_of():
    own = Architecture(d=64, heads=2, d_k=32, d_v=32, tokens=32)
    assert own.warnings == []
    assert "beyond 1.5" in replace(own, beta=1.6).warnings[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": 65}, "tokens must be at most d = 64"),
        ({"groups": 3}, "groups must divide heads = 4"),
        ({"beta": 0.0}, "beta must be positive, got 0"),
        ({"heads": 0}, "heads must be at least 1, got 0"),
        ({"noise": -1.0}, "noise must be zero or positive, got -1"),
        ({"tied": True, "d_v": 8}, "need d_k = d_v, got 16 and 8"),
    ],
)
def test_wrong_input_is_one_line(changes, message):
    with pytest.raises(ValueError, match=message):
        Architecture(**{"d": 64, "heads": 4, "d_k": 16, "d_v": 16, "tokens": 48} | changes)


@pytest.mark.parametrize("name", ["heads", "beta", "key_width", "value_width", "output_width", "ridge"])
def test_the_kernel_refuses_what_is_out_of_range(name):
    with pytest.raises(ValueError, match=name):
        architecture_errors(**PUBLISHED | {name: 0.0})
