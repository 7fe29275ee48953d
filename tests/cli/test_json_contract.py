"""`--json`: the fields that are promised, as one JSON object and nothing else; the text agrees with it."""

from __future__ import annotations

import re
from functools import partial

import pytest

from resolvent.dataset import read_tokens

METHODS, ERRORS = ("attention", "linear"), ("train", "test")
SMALL = ("--n", "32", "--draws", "3")
DEFAULTS = {
    "f": "tanh",
    "centred": True,
    "ratio": 0.5,
    "snr": 1.0,
    "label_mean": 0.0,
    "label_noise": 0.0,
    "ridge": 0.1,
    "skip": 0.0,
    "align": 0.0,
    "keep_diagonal": False,
}


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_predicted(values):
    for method in METHODS:
        assert set(values[method]) >= set(ERRORS)
        assert all(is_number(values[method][error]) for error in ERRORS)


def check_measured(values):
    for method in METHODS:
        for error in ERRORS:
            assert set(values[method][error]) == {"mean", "se"}
            assert all(is_number(v) for v in values[method][error].values())


def check_solver(solver):
    assert solver["converged"] is True
    assert is_number(solver["residual"])
    assert isinstance(solver["iterations"], int)


def check_nonlinearity(values):
    assert isinstance(values["name"], str)
    assert all(is_number(values[name]) for name in ("a0", "a1", "a2", "nu", "sigma2"))


def test_predict(resolvent):
    outcome = resolvent("predict", "--json")
    assert outcome.out.count("\n") == 1
    assert outcome.err == ""
    found = outcome.json
    assert found["setting"] == DEFAULTS
    check_nonlinearity(found["nonlinearity"])
    check_predicted(found)
    check_solver(found["solver"])


def test_simulate(resolvent):
    outcome = resolvent("simulate", *SMALL, "--json")
    assert outcome.out.count("\n") == 1
    assert outcome.err == ""
    assert outcome.json["setting"] == DEFAULTS | {"n": 32, "p": 16, "draws": 3, "seed": 0}
    check_measured(outcome.json)


def test_compare(resolvent):
    outcome = resolvent("compare", *SMALL, "--seed", "5", "--json")
    assert outcome.out.count("\n") == 1
    assert outcome.err == ""
    found = outcome.json
    assert found["setting"] == DEFAULTS | {"n": 32, "p": 16, "draws": 3, "seed": 5}
    check_solver(found["solver"])
    check_predicted(found["predicted"])
    check_measured(found["measured"])
    for method in METHODS:
        for error in ERRORS:
            measured, predicted = found["measured"][method][error], found["predicted"][method][error]
            assert found["z"][method][error] == pytest.approx((measured["mean"] - predicted) / measured["se"])
    assert set(found["winner"]) == set(ERRORS)
    assert set(found["winner"].values()) <= {"attention", "linear", "tie"}


def test_compare_is_predict_beside_simulate(resolvent):
    setting = ("--f", "relu", "--align", "0.5", "--ratio", "0.75")
    compared = resolvent("compare", *setting, *SMALL, "--json").json
    predicted = resolvent("predict", *setting, "--p", "24", "--json").json
    measured = resolvent("simulate", *setting, *SMALL, "--json").json
    for method in METHODS:
        assert compared["predicted"][method] == predicted[method]
        assert compared["measured"][method] == measured[method]


@pytest.mark.usefixtures("folder")
def test_compare_tokens(resolvent):
    outcome = resolvent("compare", "--tokens", "good.npz", "--align", "1", "--draws", "3", "--json")
    assert outcome.out.count("\n") == 1
    assert outcome.err == ""
    found = outcome.json
    setting = found["setting"]
    assert {name: setting[name] for name in ("f", "ridge", "align", "n", "p", "draws", "seed")} == {
        "f": "tanh",
        "ridge": 0.1,
        "align": 1.0,
        "n": 60,
        "p": 8,
        "draws": 3,
        "seed": 0,
    }
    assert setting["ratio"] == pytest.approx(8 / 60)
    check_solver(found["solver"])
    check_predicted(found["predicted"])
    for method in METHODS:
        assert is_number(found["measured"][method]["train"]["mean"])
        assert found["measured"][method]["train"]["se"] is None
        assert found["z"][method]["train"] is None
        test = found["measured"][method]["test"]
        assert found["z"][method]["test"] == pytest.approx(
            (test["mean"] - found["predicted"][method]["test"]) / test["se"]
        )
    assert set(found["winner"]) == set(ERRORS)
    assert found["tokens"]["snr_se"] > 0.0
    assert isinstance(found["assumptions"], list)


def test_nonlinearity(resolvent):
    outcome = resolvent("nonlinearity", "relu", "--json")
    assert outcome.out.count("\n") == 1
    assert outcome.err == ""
    found = outcome.json
    check_nonlinearity(found)
    assert found["name"] == "relu"
    assert found["a1"] == pytest.approx(0.5, rel=1e-10)
    assert found["linear_share"] == pytest.approx(found["a1"] ** 2 / found["nu"])
    assert found["kept_diagonal"] == pytest.approx(1.0)
    assert found["sentence"]


def test_demo(resolvent, folder, monkeypatch):
    monkeypatch.setattr("resolvent.cli.demo.DRAWS", 2)
    monkeypatch.setattr("resolvent.cli.demo.demo_tokens", partial(read_tokens, folder / "good.npz"))
    outcome = resolvent("demo", "--json")
    assert outcome.out.count("\n") == 1
    assert len(outcome.json) == 4
    for found in outcome.json.values():
        assert set(found) >= {"setting", "solver", "predicted", "measured", "z", "winner"}


def test_numbers_that_json_lacks_are_null(resolvent):
    """One draw has no standard error; the ridgeless test error of a square system is infinite."""
    once = resolvent("simulate", "--n", "16", "--draws", "1", "--json").json
    assert once["attention"]["train"]["se"] is None
    ridgeless = resolvent(
        "compare", "--ratio", "1", "--ridge", "0", "--n", "8", "--draws", "2", "--json"
    ).json
    assert ridgeless["predicted"]["linear"]["test"] is None
    assert ridgeless["z"]["linear"]["test"] is None


def numbers(line: str) -> list[float]:
    return [float(word) for word in re.findall(r"[-+]?\d+\.\d+", line)]


def test_text_of_predict_agrees(resolvent):
    found, text = resolvent("predict", "--json").json, resolvent("predict").out
    for line, method in zip(text.splitlines()[1:], METHODS, strict=True):
        assert numbers(line) == pytest.approx([found[method][error] for error in ERRORS], abs=5.1e-6)


def test_text_of_simulate_agrees(resolvent):
    found, text = resolvent("simulate", *SMALL, "--json").json, resolvent("simulate", *SMALL).out
    for line, method in zip(text.splitlines()[1:], METHODS, strict=True):
        wanted = [found[method][error][part] for error in ERRORS for part in ("mean", "se")]
        assert numbers(line) == pytest.approx(wanted, abs=5.1e-6)
    assert "nan" not in resolvent("simulate", "--n", "16", "--draws", "1").out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("tokens", [False, True])
def test_text_of_compare_agrees(resolvent, tokens):
    arguments = ("compare", "--draws", "3", *(("--tokens", "good.npz") if tokens else ("--n", "32")))
    found, text = resolvent(*arguments, "--json").json, resolvent(*arguments).out
    rows = [line for line in text.splitlines() if line.startswith(("train ", "test "))]
    assert len(rows) == 4
    for row in rows:
        error, method = row.split()[:2]
        measured, z = found["measured"][method][error], found["z"][method][error]
        refined = found["predicted"].get("refined")
        wanted = [
            found["predicted"][method][error],
            refined and refined[method][error],
            measured["mean"],
            measured["se"],
            z,
        ]
        wanted = [w for w in wanted if w is not None]
        assert numbers(row) == pytest.approx(wanted, abs=0.0501)
        assert numbers(row)[:2] == pytest.approx(wanted[:2], abs=5.1e-5)
    names = {"attention": "attention wins", "linear": "linear regression wins", "tie": "a tie"}
    verdicts = [line.strip() for line in text.splitlines() if line.strip().startswith("->")]
    assert verdicts == [f"-> {names[found['winner'][error]]}" for error in ERRORS]
    assert found["reason"] in text


@pytest.mark.usefixtures("folder")
def test_text_of_compare_tokens_says_what_was_read_and_broken(resolvent):
    text = resolvent("compare", "--tokens", "white.npz", "--draws", "2").out
    assert "white.npz: 60 tokens of 8 dimensions" in text
    assert "Tokens are the 60 columns of a 8 x 60 matrix." in text
    assert "Label 1 is +1 and -1 is -1." in text
    assert "Whitened by the background covariance" in text
    assert "Small: n = 60 tokens" in text


def test_text_of_nonlinearity_agrees(resolvent):
    found, text = resolvent("nonlinearity", "gelu", "--json").json, resolvent("nonlinearity", "gelu").out
    for name in ("a0", "a1", "a2", "nu", "sigma2"):
        assert f"{found[name]:.10g}" in next(
            line for line in text.splitlines() if line.strip().startswith(name)
        )
