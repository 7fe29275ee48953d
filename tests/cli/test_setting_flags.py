"""Every flag reaches the setting, of every command that takes it, and changes what is computed."""

from __future__ import annotations

import inspect

import pytest

from resolvent.compare import compare, compare_tokens
from resolvent.setting import Setting
from resolvent.simulate import simulate
from resolvent.simulate.measure import sizes

ANGLES = ("--key-norm", "1", "--query-norm", "2", "--key-cos", "0.3", "--query-cos", "0.4")
FLAGS = {
    "f": (("--f", "relu"), {"f": "relu"}),
    "f expression": (("--f", "-t*tanh(t)"), {"f": "-t*tanh(t)"}),
    "uncentred": (("--f", "relu", "--uncentred"), {"f": "relu", "centred": False}),
    "ratio": (("--ratio", "0.75"), {"ratio": 0.75}),
    "snr": (("--snr", "2.5"), {"snr": 2.5}),
    "no signal": (("--snr=0",), {"snr": 0.0}),
    "ridge": (("--ridge", "1e-3"), {"ridge": 1e-3}),
    "align": (("--align", "0.7"), {"align": 0.7}),
    "anti-aligned": (("--align", "-0.7"), {"align": -0.7}),
    "label mean": (("--label-mean", "-0.4", "--f", "relu"), {"label_mean": -0.4, "f": "relu"}),
    "label noise": (("--label-noise", "0.2"), {"label_noise": 0.2}),
    "skip": (("--skip", "-0.5"), {"skip": -0.5}),
    "kept diagonal": (("--f", "relu", "--keep-diagonal"), {"f": "relu", "keep_diagonal": True}),
}
WEIGHTS = {
    "key norm": ("--key-norm", "1.5"),
    "query norm": ("--query-norm", "2.5"),
    "key cosine": ("--key-cos", "-0.2"),
    "query cosine": ("--query-cos", "-0.1"),
    "both": ("--key-query-cos", "0.5"),
}
COMMANDS = {
    "predict": ("predict",),
    "simulate": ("simulate", "--n", "16", "--draws", "2"),
    "compare": ("compare", "--n", "16", "--draws", "2"),
}


def errors(found):
    """Every number that a command computes for attention and linear regression."""
    return [found.get(key) for key in ("attention", "linear", "predicted", "measured")]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", FLAGS)
def test_flag_reaches_the_setting(resolvent, command, flag):
    arguments, changed = FLAGS[flag]
    base = resolvent(*COMMANDS[command], "--json").json
    found = resolvent(*COMMANDS[command], *arguments, "--json").json
    size = {"p": round(16 * changed["ratio"])} if "ratio" in changed and command != "predict" else {}
    assert found["setting"] == base["setting"] | changed | size
    assert errors(found) != errors(base)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", WEIGHTS)
def test_weight_flag_reaches_the_setting(resolvent, command, flag):
    name, value = WEIGHTS[flag]
    given = dict(zip(ANGLES[::2], ANGLES[1::2], strict=True))
    base = resolvent(*COMMANDS[command], *ANGLES, "--json").json
    changed = [part for pair in (given | {name: value}).items() for part in pair]
    found = resolvent(*COMMANDS[command], *changed, "--json").json
    assert base["setting"]["key_query_cos"] == pytest.approx(0.3 * 0.4)  # parts outside mu are orthogonal
    assert found["setting"][name[2:].replace("-", "_")] == float(value)
    assert "align" not in found["setting"]
    assert errors(found) != errors(base)


def test_uncentred_changes_what_is_predicted(resolvent):
    arguments = ("predict", "--f", "relu", "--label-mean", "0.5", "--json")
    centred, uncentred = resolvent(*arguments).json, resolvent(*arguments, "--uncentred").json
    assert centred["nonlinearity"]["a0"] == 0.0
    assert uncentred["nonlinearity"]["a0"] == pytest.approx(0.3989422804)
    assert centred["attention"] != uncentred["attention"]
    assert resolvent(*arguments, "--centred").json == centred


def test_p_sets_the_size_at_which_a_kept_diagonal_is_taken(resolvent):
    arguments = ("predict", "--keep-diagonal", "--json")
    assert resolvent(*arguments, "--p", "16").json["attention"] != resolvent(*arguments).json["attention"]
    far = resolvent(*arguments, "--p", "10000000000000000000000").json["attention"]
    assert far["test"] == pytest.approx(resolvent(*arguments).json["attention"]["test"], rel=1e-5)


def test_p_of_the_card(resolvent):
    card = resolvent("nonlinearity", "relu", "--uncentred", "--p", "100", "--json").json
    assert card["kept_diagonal"] == pytest.approx(1.0)
    assert card["a0"] == pytest.approx(0.3989422804)
    assert resolvent("nonlinearity", "-tanh(t)", "--json").json["a1"] < 0.0


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_sizes(resolvent, command):
    sizes = ("--n", "24", "--draws", "3", "--seed", "7", "--ratio", "0.25")
    found = resolvent(command, *sizes, "--json").json
    setting = found["setting"]
    assert {k: setting[k] for k in ("n", "p", "draws", "seed")} == {"n": 24, "p": 6, "draws": 3, "seed": 7}
    again = resolvent(command, *sizes, "--json").json
    assert again == found
    other = resolvent(command, *sizes[:4], "--seed", "8", *sizes[6:], "--json").json
    assert errors(other) != errors(found)


def test_default_sizes():
    """1024 tokens, 20 draws, seed 0: the commands pass on what was given and nothing else."""
    wanted = {"n": None, "draws": 20, "seed": 0}
    for function in (simulate, compare, compare_tokens):
        parameters = inspect.signature(function).parameters
        assert {k: parameters[k].default for k in wanted if k in parameters}.items() <= wanted.items()
    assert sizes(Setting()) == (1024, 512)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_help_shows_the_defaults(resolvent, command):
    text = " ".join(resolvent(command, "--help").out.split())
    for flag, default in (("--ratio", "0.5"), ("--snr", "1.0"), ("--ridge", "0.1"), ("--align", "0.0")):
        assert f"[default: {default}]" in text[text.index(flag) :][:160]
    for flag, default in (("--n ", "1024"), ("--draws", "20"), ("--seed", "0"), ("--f ", "tanh")):
        assert f"[default: {default}]" in text[text.index(flag) :][:160]


@pytest.mark.usefixtures("folder")
def test_flags_that_hold_on_given_tokens(resolvent):
    base = resolvent("compare", "--tokens", "good.npz", "--draws", "2", "--json").json
    for arguments in (
        ("--f", "relu"),
        ("--ridge", "1"),
        ("--align", "2"),
        ("--skip", "0.5"),
        ("--f", "relu", "--keep-diagonal"),
        ("--f", "relu", "--uncentred"),
        ("--seed", "4"),
    ):
        found = resolvent("compare", "--tokens", "good.npz", "--draws", "2", *arguments, "--json").json
        assert found["measured"] != base["measured"], arguments
    pair = resolvent("compare", "--tokens", "tokens.npy", "--labels", "labels.npy", "--draws", "2", "--json")
    assert pair.json["measured"] == base["measured"]


@pytest.mark.usefixtures("folder")
def test_whitening(resolvent):
    def measured(*arguments):
        return resolvent("compare", "--tokens", "white.npz", "--draws", "2", *arguments, "--json").json

    assert measured()["measured"] == measured("--whiten", "background")["measured"]
    assert measured()["measured"] == measured("--whiten", "auto")["measured"]
    assert measured()["measured"] != measured("--whiten", "none")["measured"]
    assert measured("--whiten", "none")["notes"][-1].startswith("Not whitened")
