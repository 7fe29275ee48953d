"""Softmax, weights from files, more heads and laws of tokens on the command line: reached, and refused."""

from __future__ import annotations

import os
import shlex

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict
from resolvent.laws import population
from resolvent.nonlinearity import Softmax

MODEL = ("predict", "simulate", "compare")


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """Files of weights and covariances, whole and broken."""
    path = tmp_path_factory.mktemp("weights")
    rng = np.random.default_rng(0)
    W = rng.standard_normal((2, 6, 24))
    np.save(path / "M.npy", W[0].T @ W[1])
    np.savez(path / "W.npz", W_K=W[0], W_Q=W[1])
    np.savez(path / "M.npz", M=W[0].T @ W[1])
    np.savez(path / "other.npz", A=W[0])
    np.save(path / "flat.npy", np.ones((3, 4)))
    np.save(path / "nan.npy", np.full((4, 4), np.nan))
    np.save(path / "zero.npy", np.zeros((4, 4)))
    np.save(path / "complex.npy", np.eye(4) * 1j)
    np.save(path / "words.npy", np.array([["a", "b"], ["c", "d"]]))
    np.save(path / "objects.npy", np.array([[object()]]), allow_pickle=True)
    np.save(path / "levels.npy", np.array([0.5, 1.5]))
    whole = (path / "M.npy").read_bytes()
    (path / "cut.npy").write_bytes(whole[:200])
    (path / "cut.npz").write_bytes((path / "W.npz").read_bytes()[:200])
    (path / "empty.npy").write_bytes(b"")
    (path / "empty.npz").write_bytes(b"")
    (path / "text.npy").write_text("not an array")
    (path / "M.csv").write_text("1,2")
    huge = whole.replace(b"(24, 24)", b"(99999999, 99999999)".ljust(8))
    (path / "huge.npy").write_bytes(huge[: len(huge)])
    return path


REACHED = {
    "softmax": (("--f", "softmax", "--beta", "0.7"), Setting(nonlinearity="softmax", beta=0.7)),
    "noise": (
        ("--noise", "laplace", "--label-mean", "0.5", "--f", "relu"),
        Setting(Tokens(noise="laplace", label_mean=0.5), nonlinearity="relu"),
    ),
    "student": (
        ("--noise", "student-t:9", "--label-mean", "0.5", "--f", "relu"),
        Setting(Tokens(noise="student-t:9", label_mean=0.5), nonlinearity="relu"),
    ),
    "covariance": (("--covariance", "ar1:0.4"), Setting(Tokens(covariance="ar1:0.4"))),
    "norms": (
        ("--norm-spread", "0.3", "--normalise", "rms"),
        Setting(Tokens(norm_spread=0.3, normalise="rms")),
    ),
    "two heads": (
        ("--align", "1", "--head", "f=relu align=0.5"),
        Setting(weights=[Weights.aligned(1.0), Weights.aligned(0.5)], nonlinearity=["tanh", "relu"]),
    ),
    "three heads": (
        ("--head", "f=softmax beta=0.5", "--head", "f=sin key_norm=1 query_norm=2 key_cos=0.3"),
        Setting(
            weights=[
                *[Weights.aligned(0.0)] * 2,
                Weights.from_angles(key_norm=1.0, query_norm=2.0, key_cos=0.3),
            ],
            nonlinearity=["tanh", Softmax(0.5), "sin"],
        ),
    ),
}


@pytest.mark.parametrize("name", REACHED)
def test_reaches_the_setting(resolvent, name):
    arguments, expected = REACHED[name]
    found = resolvent("predict", *arguments, "--json").json["attention"]
    assert found["test"] == pytest.approx(predict(expected).attention.test, rel=1e-9)


@pytest.mark.parametrize("command", MODEL)
@pytest.mark.parametrize("file", ["M.npy", "M.npz", "W.npz"])
def test_weights_from_a_file(resolvent, arrays, command, file):
    size = () if command == "predict" else ("--draws", "2")
    options = ("--tau", "0.8", "--signal", "top-key", "--json")
    found = resolvent(command, "--weights", str(arrays / file), *options, *size).json
    setting = found["setting"]
    assert (setting["p"], setting["rank"], setting["signal"]) == (24, 6, "top-key")
    assert setting["tau"] == pytest.approx(0.8)
    if command != "predict":
        assert setting["n"] == 48


def test_a_covariance_from_a_file(resolvent, arrays):
    found = resolvent("predict", "--covariance", str(arrays / "levels.npy"), "--json").json
    expected = predict(Setting(Tokens(covariance=population([0.5, 1.5]))))
    assert found["attention"]["test"] == pytest.approx(expected.attention.test, rel=1e-9)


def test_causal_is_measured_and_marked(resolvent):
    size = ("--n", "40", "--draws", "2")
    plain = resolvent("simulate", "--f", "softmax", *size, "--json").json
    causal = resolvent("simulate", "--f", "softmax", "--causal", *size, "--json").json
    assert causal["setting"]["causal"] is True
    assert causal["attention"] != plain["attention"]
    assert "does not predict" in resolvent("simulate", "--causal", *size).out
    assert resolvent("predict", "--causal").status == 2


def test_cautions_are_shown(resolvent, arrays):
    assert "approaches its limit slowly" in resolvent("predict", "--f", "softmax", "--beta", "2").out
    weights = ("--weights", str(arrays / "M.npy"))
    assert "stable rank" in resolvent("predict", *weights, "--json").json["cautions"][0]


WRONG = {
    "--f softmax --keep-diagonal": "softmax with the self-score kept tends to the identity",
    "--f softmax --uncentred": "--uncentred must be left out",
    "--f softmax --beta 0": "beta must be positive",
    "--f softmax --beta nan": "beta must be positive",
    "--f softmax --beta": "--beta needs a value",
    "--beta 1": "--beta 1 goes with --f softmax",
    "--noise cauchy": "--noise must be one of gaussian",
    "--noise student-t:3": "degrees must be above 4",
    "--covariance ar1:2": "correlation must be between",
    "--covariance ar1:x": "--covariance must hold a number",
    "--covariance {}/flat.npy": "--covariance must be a symmetric matrix",
    "--covariance {}/missing.npy": "--covariance: ",
    "--norm-spread 0.3": "--norm-spread must be 0 or come with normalise",
    "--norm-spread -1": "--norm-spread must be between 0 and 2",
    "--normalise batch": "--normalise must be rms or layer",
    "--head relu": "--head must be",
    "--head f=relu --head": "--head needs a value",
    "--head f=reloo": "did you mean relu",
    "--head 'f=relu align=x'": "--head must be",
    "--head 'f=relu size=2'": "size is not known here",
    "--head 'f=relu align=1 key_norm=2'": "align already fixes the weights",
    "--tau 1": "--tau goes with --weights FILE",
    "--signal random": "--signal goes with --weights FILE",
    "--weights {}/M.npy --align 1": "--align cannot be given with --weights",
    "--weights {}/M.npy --key-norm 1": "--key-norm cannot be given with --weights",
    "--weights {}/M.npy --tau 0": "tau must be positive",
    "--weights {}/M.npy --signal left": "--signal must be random or top-key or top-query",
    "--weights {}/M.npy --ridge 0": "--ridge must be positive",
    "--weights {}/M.npy --covariance ar1:0.5": "weights given as a matrix need white Gaussian noise",
    "--weights {}/M.npy --head 'f=relu align=1'": "weights of heads must all be matrices",
    "--weights {}/flat.npy": "weights must be a square matrix, got shape (3, 4)",
    "--weights {}/nan.npy": "weights must be finite",
    "--weights {}/zero.npy": "weights must not be zero",
    "--weights {}/complex.npy": "weights must be real numbers",
    "--weights {}/words.npy": "weights must be real numbers",
    "--weights {}/objects.npy": "not a whole NumPy file",
    "--weights {}/cut.npy": "not a whole NumPy file",
    "--weights {}/cut.npz": "not a whole NumPy file",
    "--weights {}/empty.npy": "not a whole NumPy file",
    "--weights {}/empty.npz": "not a whole NumPy file",
    "--weights {}/text.npy": "not a whole NumPy file",
    "--weights {}/huge.npy": "not a whole NumPy file",
    "--weights {}/other.npz": "must hold M, or W_K and W_Q, got",
    "--weights {}/M.csv": "must be a .npy or .npz file",
    "--weights {}/missing.npy": "can't be read: No such file",
    "--weights {}": "must be a .npy or .npz file",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_is_one_line(resolvent, arrays, line):
    outcome = resolvent("predict", *shlex.split(line.replace("{}", os.fspath(arrays))))
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("resolvent: ")
    assert outcome.err.count("\n") == 1
    assert WRONG[line] in outcome.err


@pytest.mark.parametrize(
    "flag", ["--noise laplace", "--covariance ar1:0.5", "--norm-spread 0.1", "--normalise rms"]
)
@pytest.mark.usefixtures("folder")
def test_tokens_of_a_file_have_their_own_law(resolvent, flag):
    outcome = resolvent("compare", "--tokens", "good.npz", *flag.split())
    assert outcome.status == 2
    assert f"{flag} cannot be given with --tokens" in outcome.err


@pytest.mark.usefixtures("folder")
def test_softmax_and_a_matrix_on_given_tokens(resolvent, tmp_path):
    np.save(tmp_path / "M.npy", np.eye(8))
    plain = resolvent("compare", "--tokens", "good.npz", "--draws", "3", "--json").json
    matrix = resolvent(
        "compare", "--tokens", "good.npz", "--draws", "3", "--weights", str(tmp_path / "M.npy"), "--json"
    )
    softmax = resolvent(
        "compare", "--tokens", "good.npz", "--draws", "3", "--f", "softmax", "--beta", "0.5", "--json"
    )
    for method in ("attention", "linear"):
        for error in ("train", "test"):
            known = plain["measured"][method][error]["mean"]
            assert matrix.json["measured"][method][error]["mean"] == pytest.approx(known, rel=1e-9)
    assert softmax.json["measured"]["attention"] != plain["measured"]["attention"]
