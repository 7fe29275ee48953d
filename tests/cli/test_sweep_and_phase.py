"""`resolvent sweep` and `resolvent phase`: what they print, write and refuse."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from resolvent import Setting, Tokens, Weights, predict, sweep
from resolvent.cli.axes import axis
from resolvent.sweep.journal import Journal

GRID = (
    "sweep",
    "--over",
    "ridge=0.01:1:3:log",
    "--over",
    "snr=0:8:5",
    "--over",
    "f=tanh,relu",
    "--align",
    "1",
)
MEASURED = ("--simulate", "--n", "32", "--draws", "3", "--seed", "5")
PLANE = ("phase", "--x", "ratio=0.2:4:5:log", "--y", "snr=1:8:4", "--align", "1")


def test_a_sweep_predicts_every_point(resolvent):
    found = resolvent(*GRID, "--json").json
    assert found["over"] == {
        "ridge": pytest.approx([0.01, 0.1, 1.0]),
        "snr": [0.0, 2.0, 4.0, 6.0, 8.0],
        "f": ["tanh", "relu"],
    }
    one = predict(Setting(Tokens(snr=4.0), Weights.aligned(1.0), "relu", ridge=1.0))
    assert found["predicted"]["attention"]["test"][2][2][1] == pytest.approx(one.attention.test, rel=1e-9)
    assert found["predicted"]["linear"]["train"][2][2][1] == pytest.approx(one.linear.train, rel=1e-9)
    assert np.all(found["solver"]["converged"])
    assert np.shape(found["solver"]["residual"]) == (3, 5, 2)
    assert found["setting"]["align"] == 1.0
    assert found["setting"]["centred"] is True
    assert "measured" not in found
    assert found["file"] is None


def test_a_sweep_measures_what_python_measures(resolvent, tmp_path):
    path = tmp_path / "s.nc"
    found = resolvent(*GRID, *MEASURED, "--workers", "1", "-o", str(path), "--json").json
    over = {"ridge": np.geomspace(0.01, 1, 3), "snr": np.linspace(0, 8, 5), "f": ["tanh", "relu"]}
    here = sweep(
        Setting(weights=Weights.aligned(1.0)), over, simulate={"n": 32, "draws": 3, "seed": 5}, path=path
    )
    for method in ("attention", "linear"):
        for error in ("train", "test"):
            place = {"method": method, "error": error}
            got = found["measured"][method][error]
            assert np.array_equal(got["mean"], here["measured"].sel(place))
            assert np.array_equal(got["se"], here["standard_error"].sel(place))
    assert np.array_equal(found["difference"]["test"]["mean"], here["difference"].sel(error="test"))
    assert found["file"] == str(path)


def test_the_text_of_a_sweep(resolvent, tmp_path):
    text = resolvent(*GRID, *MEASURED, "-o", str(tmp_path / "s.zarr"))
    assert text.status == 0
    assert text.out.splitlines()[0] == "3 ridge x 5 snr x 2 f: 30 points, 30 converged"
    assert "Measured beyond two standard errors" in text.out
    assert text.out.splitlines()[-1] == f"Saved in {tmp_path / 's.zarr'}"
    assert text.err == ""


def test_a_damaged_journal_is_one_line(resolvent, tmp_path):
    path = tmp_path / "s.nc"
    first = resolvent(*GRID, *MEASURED, "-o", str(path))
    (lines,) = (tmp_path / "s.nc.journal").glob("*.jsonl")
    lines.write_bytes(lines.read_bytes()[:-9])
    again = resolvent(*GRID, *MEASURED, "-o", str(path))
    assert again.err == f"resolvent: 1 damaged line in {path}.journal: measured again\n"
    assert again.out == first.out


def test_ctrl_c_says_how_to_go_on(resolvent, tmp_path, monkeypatch):
    from resolvent.sweep.cells import Measure

    measure = Measure.__call__

    def interrupted(self, cell):
        if cell == 4:
            raise KeyboardInterrupt
        return measure(self, cell)

    monkeypatch.setattr(Measure, "__call__", interrupted)
    stopped = resolvent(*GRID, *MEASURED, "-o", str(tmp_path / "s.nc"))
    assert stopped.status == 130
    assert stopped.out == ""
    assert "interrupted after 4 of 10 cells, kept in" in stopped.err
    assert "the same command goes on from there" in stopped.err


def test_a_phase_diagram(resolvent, tmp_path):
    outcome = resolvent(*PLANE, "--json", "--plot", str(tmp_path / "p.svg"))
    found = outcome.json
    one = predict(Setting(Tokens(4.0, 8.0), Weights.aligned(1.0)))
    assert found["attention"]["test"][3][4] == pytest.approx(one.attention.test, rel=1e-9)
    assert found["x"]["name"] == "ratio"
    assert len(found["y"]["values"]) == 4
    assert found["best_ridge"] is None
    assert 0.0 < found["wins"]["test"] < 1.0
    assert np.shape(found["boundary"]["test"][0])[1] == 2
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def test_a_phase_diagram_at_the_best_ridge(resolvent, tmp_path):
    found = resolvent(*PLANE, "--best-ridge", "--json", "--plot", str(tmp_path / "p.png")).json
    assert np.shape(found["best_ridge"]["attention"]) == (4, 5)
    assert "ridge" not in found["setting"]
    text = resolvent(*PLANE, "--best-ridge").out
    assert "tanh, each method's best ridge: ratio 0.2 to 4, snr 1 to 8, 20 of 20 points converged" in text


FORMS = "NAME=LOW:HIGH:COUNT"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sweep", ["--over", "value"]),
        ("sweep --over snr", ["--over", FORMS, "'snr'"]),
        ("sweep --over =1,2", ["--over", FORMS]),
        ("sweep --over snr=", ["--over", FORMS]),
        ("sweep --over snr=1:2", ["--over", FORMS, "snr=1:2"]),
        ("sweep --over snr=1:2:1", ["--over", "COUNT is at least 2"]),
        ("sweep --over snr=1:2:2.5", ["--over", "COUNT is at least 2"]),
        ("sweep --over snr=0:2:3:log", ["--over", "positive"]),
        ("sweep --over snr=1:2:3:lin", ["--over", FORMS]),
        ("sweep --over snr=1,x", ["--over", "'x' is no number"]),
        ("sweep --over snr=1,nan", ["--snr", "finite"]),
        ("sweep --over snr=-1,1", ["--snr", "zero or positive", "-1"]),
        ("sweep --over snr=1,1", ["snr", "distinct", "1.0 twice"]),
        ("sweep --over snr=1,2 --over snr=3,4", ["--over snr=", "once"]),
        ("sweep --over speed=1,2", ["can vary", "'speed'"]),
        ("sweep --over centred=yes", ["--over", "true and false"]),
        ("sweep --over f=tan", ["tan"]),
        ("sweep --over key-norm=1,2 --align 1", ["--key-norm", "align"]),
        ("sweep --over snr=1,2 --n 64", ["--n 64", "--simulate"]),
        ("sweep --over snr=1,2 --workers 2", ["--workers 2", "--simulate"]),
        ("sweep --over snr=1,2 --simulate --workers 0", ["--workers", "at least 1", "0"]),
        ("sweep --over snr=1,2 --simulate --n 3", ["--n", "at least 4", "3"]),
        ("sweep --over snr=1,2 --simulate --workers 2 --scheduler tcp://x:1", ["--workers", "--scheduler"]),
        ("sweep --over snr=1,2 -o x.csv", ["--output", ".nc, .zarr, .parquet", "x.csv"]),
        ("sweep --over snr=1,2 -o no/x.nc", ["--output", "existing folder", "no/x.nc"]),
        ("phase --x ratio=1:2:3", ["--y"]),
        ("phase --x ratio=1:2:3 --y ratio=1:2:3", ["different", "ratio"]),
        ("phase --x ratio=2:1:3 --y snr=1:2:3", ["--x", "increasing"]),
        ("phase --x f=tanh,relu --y snr=1:2:3", ["--x", "'f'"]),
        ("phase --x ratio=1:2 --y snr=1:2:3", ["--x", FORMS]),
        ("phase --x ratio=1:2:3 --y ridge=1:2:3 --best-ridge", ["ridge"]),
        ("phase --x ratio=1:2:3 --y snr=1:2:3 --plot x.gif", ["--plot", "x.gif"]),
    ],
)
def test_wrong_input_is_one_line(line, words, resolvent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = resolvent(*shlex.split(line))
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words), outcome.err
    assert not list(tmp_path.iterdir())


def test_another_sweep_on_the_same_file_is_refused(resolvent, tmp_path):
    path = str(tmp_path / "s.parquet")
    assert resolvent(*GRID, "-o", path).status == 0
    refused = resolvent(*GRID, "--ratio", "2", "-o", path)
    assert refused.status == 2
    assert "ratio is 0.5 there and 2.0 here" in refused.err


def test_a_sweep_that_another_is_at_work_on_is_refused_in_one_line(resolvent, tmp_path):
    path = tmp_path / "s.parquet"
    command = (*GRID, *MEASURED, "-o", str(path))
    assert resolvent(*command).status == 0
    with Journal(tmp_path / "s.parquet.journal").alone():
        refused = resolvent(*command)
    assert (refused.status, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert "s.parquet.journal is in use by another sweep" in refused.err
    assert resolvent(*command).status == 0


def test_values_of_an_axis():
    assert axis("--over", "f=max(t, 0),t^2") == ("f", ["max(t, 0)", "t^2"])
    assert axis("--over", "keep-diagonal=true,false") == ("keep_diagonal", [True, False])
    assert axis("--over", "skip=-1,0.5") == ("skip", [-1.0, 0.5])
    np.testing.assert_allclose(axis("--x", "ridge=1e-4:10:6:log")[1], [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0])
