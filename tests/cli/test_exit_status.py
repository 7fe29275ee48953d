"""How commands end when something outside goes wrong: 1 failed, 130 interrupted, quiet on a closed pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from resolvent.predict import ConvergenceError
from resolvent.simulate import draws

COMMAND = [sys.executable, "-m", "resolvent"]
SIZE = ("--n", "16", "--draws", "8")


def check_line(outcome, status, *words):
    assert outcome.status == status
    assert outcome.err.startswith("resolvent: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def failing(error):
    def function(*_, **__):
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConvergenceError("the fixed point did not converge\n(residual 1.0e-03)"),
            "converge (residual 1.0e-03)",
        ),
        (np.linalg.LinAlgError("Singular matrix"), "Singular matrix"),
        (OverflowError("f reaches inf on these scores"), "f reaches inf"),
        (MemoryError(), "MemoryError"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (KeyError("alpha"), "alpha"),
        (AssertionError(), "AssertionError"),
        (RuntimeError("label_mean is lost"), "label_mean is lost"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failed_computation(resolvent, monkeypatch, error, words):
    monkeypatch.setattr("resolvent.cli.predict.predict_setting", failing(error))
    outcome = resolvent("predict", "--json")
    check_line(outcome, 1, words)
    assert outcome.out == ""
    with pytest.raises(type(error)):
        resolvent("predict", "--debug")


def test_a_draw_that_fails(resolvent, monkeypatch):
    monkeypatch.setattr(
        "resolvent.simulate.measure.features", failing(np.linalg.LinAlgError("no eigenvalues"))
    )
    check_line(resolvent("compare", *SIZE), 1, "no eigenvalues")


@pytest.mark.parametrize("f", [("exp", "--align", "60"), ("1e120*t",)], ids=["infinite", "large"])
def test_scores_that_overflow(resolvent, f):
    outcome = resolvent("simulate", "--f", *f, *SIZE)
    check_line(outcome, 1, "too large")
    assert outcome.out == ""


def test_a_ratio_that_the_solver_cannot_reach(resolvent):
    outcome = resolvent("predict", "--ratio", "1e-300")
    check_line(outcome, 1, "did not converge", "ratio 1e-300")
    assert outcome.out == ""


def interrupt_after(monkeypatch, count):
    """Ctrl-C when draw `count` is about to be queued."""
    stream = draws.stream

    def interrupted(seed, index):
        if index == count:
            raise KeyboardInterrupt
        return stream(seed, index)

    monkeypatch.setattr(draws, "stream", interrupted)
    monkeypatch.setattr("resolvent.simulate.measure.workers_for", lambda *_: 2)
    monkeypatch.setattr("resolvent.compare.own_tokens.workers_for", lambda *_: 2)


OWN = ("compare", "--tokens", "good.npz", "--draws", "8")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command", [("simulate", *SIZE), ("compare", *SIZE), OWN], ids=["sim", "compare", "own"]
)
def test_an_interrupt_keeps_what_is_done(resolvent, monkeypatch, command):
    whole = resolvent(*command, "--json").json
    interrupt_after(monkeypatch, 6)
    outcome = resolvent(*command, "--json")
    found = outcome.json
    kept = found["setting"]["draws"]
    check_line(outcome, 130, f"interrupted after {kept} of 8 draws")
    assert 2 <= kept < 8
    assert set(found) == set(whole)
    assert {**found["setting"], "draws": 8} == whole["setting"]
    text = resolvent(*command)
    assert text.status == 130
    assert "attention" in text.out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command", [("simulate", *SIZE), ("compare", *SIZE), OWN], ids=["sim", "compare", "own"]
)
def test_an_interrupt_before_two_draws_prints_nothing(resolvent, monkeypatch, command):
    interrupt_after(monkeypatch, 1)
    outcome = resolvent(*command, "--json")
    check_line(outcome, 130, "interrupted after 0 of 8 draws")
    assert outcome.out == ""


def test_an_interrupted_picture_leaves_the_comparison(resolvent, monkeypatch, tmp_path):
    path = tmp_path / "a.png"
    monkeypatch.setattr("resolvent.plot.plot_comparison", failing(draws.Interrupted(np.zeros((3, 2, 2)), 8)))
    outcome = resolvent("compare", *SIZE, "--json", "--plot", path)
    check_line(outcome, 130, "a.png was not written")
    assert outcome.json["setting"]["draws"] == 8
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("compare", *SIZE, "--plot"), ("nonlinearity", "--plot", "tanh")])
def test_a_full_disk_leaves_the_result_and_no_file(resolvent, monkeypatch, tmp_path, command):
    error = OSError(28, "No space left on device")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", failing(error))
    outcome = resolvent(*command, tmp_path / "a.png")
    check_line(outcome, 1, "No space left on device")
    assert "tanh" in outcome.out or "attention" in outcome.out
    assert list(tmp_path.iterdir()) == []


SIGNAL = """
import signal, sys
from resolvent.cli.app import run
from resolvent.simulate import draws
signal.signal(signal.SIGINT, signal.default_int_handler)
stream = draws.stream
def told(seed, index):
    if index == 40:
        print("many are done", file=sys.stderr, flush=True)
    return stream(seed, index)
draws.stream = told
sys.exit(run(sys.argv[1:]))
"""


def test_draws_are_queued_as_they_are_needed(monkeypatch):
    """However many are asked for, no more wait than there are workers and one."""
    stream, started, finished, waiting = draws.stream, [], [], []

    def told(seed, index):
        started.append(index)
        waiting.append(len(started) - len(finished))
        return stream(seed, index)

    def task(rng, _):
        finished.append(None)
        return rng.random(2)

    monkeypatch.setattr(draws, "stream", told)
    values = draws.run_draws(task, 50, 4, 2, False)
    assert max(waiting) <= 3
    np.testing.assert_array_equal(values, [stream(4, index).random(2) for index in range(50)])


def test_ctrl_c_in_a_process():
    command = [sys.executable, "-c", SIGNAL, "simulate", "--n", "16", "--draws", "1000000", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "many are done\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = json.loads(out)["setting"]["draws"]
    assert kept >= 30
    assert err == f"resolvent: interrupted after {kept} of 1000000 draws\n"


def test_a_closed_pipe_is_quiet():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, "predict"], stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_standard_output_on_a_full_disk():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "predict"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"No space left on device" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes a stream")
def test_without_standard_output():
    done = subprocess.run(
        ["sh", "-c", '"$0" -m resolvent predict >&-', sys.executable], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_lacks_characters():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "nonlinearity", "tanh", "--plot"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout
