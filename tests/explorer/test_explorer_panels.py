"""What the panels say is what the library says; the code they offer gives the same numbers."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict
from resolvent.cli.app import run
from resolvent.explorer.code import command_line, python_code
from resolvent.explorer.view import ANGLES, CHOICES, View
from resolvent.explorer.work import measured_points
from resolvent.nonlinearity import card, nonlinearity

METHODS, ERRORS = ("attention", "linear"), ("train", "test")
APART = {"weights": "apart", "key_norm": "1.2", "query_norm": "0.8", "key_cos": "0.5", "query_cos": "-0.4"}


def get(client, panel, **query):
    reply = client.get(f"/api/{panel}", params=query)
    assert reply.status_code == 200, reply.text
    return json.loads(reply.text, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))


def by_hand(over, value, **given):
    """The setting at one point, retyped without `View`."""
    v = {"ratio": 0.5, "snr": 1.0, "ridge": 0.1, "skip": 0.0, "label_mean": 0.0, "label_noise": 0.0}
    v |= {"align": 0.0, "key_norm": 1.0, "query_norm": 1.0, "key_cos": 0.0, "query_cos": 0.0}
    v |= {name: float(x) for name, x in given.items() if name not in ("weights", "f")} | {over: value}
    f, beta = ("softmax", v["beta"]) if given.get("f") == "softmax" else ("tanh", None)
    angles = {name: v[name] for name in ANGLES}
    weights = (
        Weights.from_angles(**angles) if given.get("weights") == "apart" else Weights.aligned(v["align"])
    )
    tokens = Tokens(v["ratio"], v["snr"], v["label_mean"], v["label_noise"])
    return Setting(tokens, weights, f, ridge=v["ridge"], skip=v["skip"], beta=beta)


@pytest.mark.parametrize("over", CHOICES["over"])
def test_a_curve_is_the_prediction_at_each_of_its_points(client, over):
    given = APART if over in ANGLES else {"align": "0.7"}
    given |= {"f": "softmax"} if over == "beta" else {}
    found = get(client, "curve", over=over, **given)
    assert len(found["x"]) == 60
    for k in (0, 23, 59):
        expected = predict(by_hand(over, found["x"][k], **given))
        for method in METHODS:
            for error in ERRORS:
                there = getattr(getattr(expected, method), error)
                assert found["y"][method][error][k] == pytest.approx(there, rel=1e-9)


def test_the_values_here_are_those_of_the_view(client):
    found = get(client, "curve", snr="2", align="1", ridge="0.3")
    expected = predict(by_hand("ridge", 0.3, snr=2, align=1))
    assert found["here"]["attention"]["test"] == pytest.approx(expected.attention.test, rel=1e-12)
    assert found["here"]["linear"]["train"] == pytest.approx(expected.linear.train, rel=1e-12)
    ahead = "attention" if expected.attention.test < expected.linear.test else "linear"
    assert found["winner"]["test"] == ahead
    assert get(client, "curve", f="t", centred="0", snr="0", label_noise="0.5", align="0")["winner"]


def test_the_phase_diagram_is_the_difference_of_the_predictions(client):
    found = get(client, "phase", align="1", error="train", x="snr", y="ridge")
    i, j = 11, 20
    setting = by_hand("snr", found["x"]["values"][j], align=1, ridge=found["y"]["values"][i])
    expected = predict(setting)
    assert found["difference"][i][j] == pytest.approx(
        float(expected.attention.train - expected.linear.train), abs=1e-9
    )
    wins = np.mean(np.array(found["difference"]) < -1e-9)
    assert found["share"] == pytest.approx(wins)


@pytest.mark.parametrize("matrix", ["features", "attention"])
def test_the_spectrum_has_mass_one(client, matrix):
    found = get(client, "spectrum", matrix=matrix, ratio="0.5", snr="3", align="0.5")
    area = sum(np.trapezoid(piece["density"], piece["x"]) for piece in found["pieces"])
    assert area + sum(atom["mass"] for atom in found["atoms"]) == pytest.approx(1.0, abs=5e-3)
    assert [o["kind"] for o in found["outliers"]].count("signal") >= 1
    assert len(found["sample"]) == 256
    (piece,) = found["pieces"]
    low, high = piece["x"][0] - 0.2, piece["x"][-1] + 0.2
    assert np.mean([low <= v <= high for v in found["sample"]]) > 0.95


def test_the_card_is_that_of_the_nonlinearity(client):
    found = get(client, "card", f="relu")
    assert found["card"] == card(nonlinearity("relu")).as_dict()
    half = nonlinearity("relu").evaluate(np.array([0.0, 4.0]))
    assert [found["f"][100], found["f"][200]] == pytest.approx(half.tolist())


def series(found, x):
    return np.array([[found["y"][m][e] for e in ERRORS] for m in METHODS]).reshape(2, 2, len(x))


@pytest.mark.parametrize(
    "query",
    [
        {"over": "snr", "f": "t*tanh(t)", "ratio": "1.5", "label_mean": "0.25", "skip": "-0.5"},
        {"over": "query_cos", "f": "maximum(t, 0)", "centred": "0", "keep_diagonal": "1", **APART},
        {"over": "ridge", "align": "-0.75", "label_noise": "0.125", "f": "-sin(t)"},
        {"over": "snr", "f": "softmax", "beta": "0.7", "align": "0.5"},
        {"over": "beta", "f": "softmax", "align": "0.5", "ridge": "1"},
    ],
    ids=["snr", "query_cos", "ridge", "softmax", "beta"],
)
def test_the_code_makes_the_same_numbers(client, query, capsys):
    found = get(client, "curve", **query)
    names: dict = {}
    exec(found["python"], names)
    np.testing.assert_allclose(names["curves"].predicted.values, series(found, found["x"]), rtol=1e-12)
    capsys.readouterr()
    assert run(shlex.split(found["command"])[1:]) == 0
    printed = json.loads(capsys.readouterr().out)["predicted"]
    from_command = np.array([[printed[m][e] for e in ERRORS] for m in METHODS])
    np.testing.assert_allclose(from_command, series(found, found["x"]), rtol=1e-12)


@pytest.mark.parametrize("over", ["ridge", "align"])
def test_measured_points_are_those_of_the_code(client, events, over, capsys):
    query = {"over": over, "n": "24", "draws": "3", "seed": "7", "snr": "2", "align": "0.5"}
    stream = events(client.post("/api/measure", params=query).text)
    points = [value for name, value in stream if name == "point"]
    assert [p["done"] for p in points] == list(range(1, 10))
    assert [name for name, _ in stream[9:]] == ["code", "done"]  # too small to be refined
    mean = np.array([[[p["y"][m][e]["mean"] for p in points] for e in ERRORS] for m in METHODS])
    (code,) = [value for name, value in stream if name == "code"]
    names: dict = {}
    exec(code["python"], names)
    np.testing.assert_allclose(mean, names["points"].measured.values, rtol=1e-9)
    capsys.readouterr()
    curves, measured = code["command"].splitlines()
    assert run(shlex.split(measured)[1:]) == 0
    printed = json.loads(capsys.readouterr().out)["measured"]
    there = np.array([[printed[m][e]["mean"] for e in ERRORS] for m in METHODS])
    np.testing.assert_allclose(mean, there, rtol=1e-9)
    assert "--simulate" not in curves


def test_points_come_with_the_prediction_at_their_size():
    view = View.of([("over", "snr"), ("n", "128"), ("draws", "2"), ("align", "1")])
    at = next(value for name, value in measured_points(view) if name == "refined")
    expected = predict(by_hand("snr", at["x"], align=1), p=64).refined
    assert at["y"]["attention"]["test"] == pytest.approx(expected.attention.test, rel=1e-9)


def test_code_of_a_view_names_only_what_was_chosen():
    view = View.of([("snr", "2")])
    assert python_code(view, 60).splitlines()[4] == (
        "setting = Setting(Tokens(snr=2.0), Weights.aligned(0.0), 'tanh', ridge=0.1)"
    )
    assert command_line(view, 60) == "resolvent sweep --over ridge=1e-06:1000.0:60:log --snr=2.0 --json\n"


def test_own_tokens_are_compared_as_in_the_library(client, events, tokens_csv):
    from resolvent.compare import compare_tokens
    from resolvent.dataset import read_token_bytes

    query = {"file": "words.csv", "align": "1", "draws": "4"}
    stream = events(client.post("/api/tokens", params=query, content=tokens_csv).text)
    assert [name for name, _ in stream] == ["tokens", "curves", "done"], stream
    said, drawn = stream[0][1], stream[1][1]
    own = compare_tokens(
        read_token_bytes("words.csv", tokens_csv), Setting(weights=Weights.aligned(1.0)), draws=4
    )
    assert said["use"] == {"ratio": 6 / 40, "snr": own.estimate.snr_used, "label_mean": 0.0}
    train, test = own.over_ridges(np.geomspace(1e-6, 1e3, 9))
    np.testing.assert_allclose(drawn["points"]["y"]["attention"]["train"]["mean"], train[0], rtol=1e-9)
    np.testing.assert_allclose(drawn["points"]["y"]["linear"]["test"]["mean"], test[:, 1].mean(axis=0))


def test_the_seed_decides_the_points(client, events):
    def first(seed):
        query = {"n": "16", "draws": "2", "seed": seed, "over": "label_noise"}
        return dict(events(client.post("/api/measure", params=query).text)[:1])["point"]["y"]

    assert first("1") == first("1") != first("2")


def test_the_mean_of_an_uncentred_function_is_an_isolated_eigenvalue(client):
    query = {"f": "relu", "centred": "0", "matrix": "attention", "ratio": "0.5", "n": "200", "snr": "0"}
    highest = get(client, "spectrum", **query)["outliers"][-1]
    assert highest["kind"] == "mean (a0)"
    assert highest["place"] == pytest.approx(np.sqrt(100 / (2 * np.pi)) / 0.5, rel=0.1)


def test_softmax_has_the_panels_that_it_can_have(client):
    found = get(client, "card", f="softmax", beta="0.5")
    assert found["card"]["a1"] == pytest.approx(0.5)
    assert found["card"]["linear_share"] == pytest.approx(0.25 / (np.exp(0.25) - 1.0))
    assert np.diff(found["f"]).min() > 0.0
    assert get(client, "phase", f="softmax", x="beta", y="snr", align="0.5")["boundary"]
    assert "whose K is not symmetric" in get(client, "spectrum", f="softmax", matrix="attention")["missing"]
    assert get(client, "spectrum", f="softmax", n="64")["outliers"]
