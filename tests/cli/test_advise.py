"""`resolvent advise` and `resolvent architecture`: one JSON object, a table, and one line for wrong input."""

from __future__ import annotations

import pytest


@pytest.fixture
def few(monkeypatch):
    """Rank three names: all of them take a while."""
    monkeypatch.setattr("resolvent.advise.advice.known_names", lambda: ("tanh", "identity", "cubic"))


@pytest.mark.usefixtures("few")
def test_advise_prints_one_json_object(resolvent):
    outcome = resolvent("advise", "--ratio", "2", "--align", "1", "--also", "t*tanh(t)", "--json")
    assert outcome.err == ""
    found = outcome.json
    assert found["setting"]["ratio"] == 2.0
    assert {c["name"] for c in found["ranking"]} == {"tanh", "identity", "cubic", "softmax", "t*tanh(t)"}
    for candidate in (*found["ranking"], found["linear"]):
        assert set(candidate["best_ridge"]) == {"ridge", "train", "test"}
        assert len(candidate["curve"]["test"]) == len(candidate["curve"]["ridge"])
    assert found["choice"] in ("attention", "linear", "either")
    assert set(found["alignment"]) == {"train", "test", "best_test"}
    assert [g["step"] for g in found["gains"]] == ["align + 1", "snr + 1", "twice the tokens"]
    assert found["optimum"]["share"] == pytest.approx(1.0)
    assert found["assumptions"]


@pytest.mark.usefixtures("few")
def test_the_table_holds_the_numbers_of_the_json(resolvent):
    arguments = ("advise", "--equal-ridge", "--ridge", "0.3", "--p", "60")
    found = resolvent(*arguments, "--json").json
    text = resolvent(*arguments).out
    assert found["budget"] == "equal"
    for candidate in found["ranking"]:
        assert f"{candidate['equal_ridge']['test']:.4f}" in text
    assert f"refined at p = {found['setting']['p']}" in text


@pytest.mark.usefixtures("few")
def test_advise_on_tokens(resolvent, folder):
    found = resolvent("advise", "--tokens", folder / "good.npz", "--draws", "3", "--top", "1", "--json").json
    assert found["tokens"]["n"] == 60
    assert [c["name"] for c in found["checked"]] == [found["ranking"][0]["name"], "linear regression"]
    assert found["verdict"]


def test_architecture(resolvent):
    size = ("--d", "64", "--heads", "2", "--d-k", "32", "--d-v", "32", "--tokens", "48")
    found = resolvent("architecture", *size, "--draws", "2", "--json").json
    names = [row["name"] for row in found["rows"]]
    assert names[0] == "as given"
    assert found["best"] in names
    for row in found["rows"]:
        assert row["measured"]["error"]["mean"] > 0
        assert (row["predicted"]["error"] is None) is row["tied"]
    assert "grouped" in resolvent("architecture", *size, "--draws", "0").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("advise --also tahn", ("--also", "did you mean tanh")),
        ("advise --p 1", ("--p", "at least 2", "got 1")),
        ("advise --p 2 --align 1", ("--p", "above 2", "got 2")),
        ("advise --noise laplace", ("white Gaussian tokens",)),
        ("advise --draws 5", ("--draws 5", "goes with --tokens")),
        ("advise --whiten none", ("--whiten none", "goes with --tokens")),
        ("advise --tokens good.npz --snr 2", ("--snr 2", "--tokens, which decide it")),
        ("advise --tokens good.npz --ridge 2", ("--ridge 2", "--tokens, which decide it")),
        ("advise --tokens good.npz --equal-ridge", ("--equal-ridge", "best ridge")),
        ("advise --tokens missing.npz", ("--tokens", "missing.npz")),
        ("advise --tokens good.npz --top 0", ("--top", "at least 1", "got 0")),
        ("architecture --d 8 --heads 1 --d-k 4 --d-v 4 --tokens 9", ("--tokens", "at most", "9")),
        ("architecture --d 8 --heads 0 --d-k 4 --d-v 4 --tokens 8", ("--heads", "at least 1", "got 0")),
        ("architecture --d 8 --heads 1 --d-k x --d-v 4 --tokens 8", ("--d-k", "an integer", "x")),
        ("architecture --d 8 --heads 1 --d-k 4 --d-v 4 --tokens 8 --draws 1", ("--draws", "got 1")),
        ("architecture --d 8 --heads 1 --d-k 4 --d-v 4 --tokens 8 --beta 0", ("--beta", "positive", "0")),
    ],
)
def test_wrong_input_is_one_line(resolvent, folder, arguments, words):
    assert folder.is_dir()
    outcome = resolvent(*arguments.split())
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err
