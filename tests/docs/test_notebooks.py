"""The notebooks run from top to bottom, and say what their text says they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a notebook in an empty folder; its variables."""
    monkeypatch.chdir(tmp_path)
    return lambda name: runpy.run_path(str(NOTEBOOKS / f"{name}.py"))


def test_every_notebook_is_tested_and_has_cells():
    assert {path.stem for path in NOTEBOOKS.glob("*.py")} == {"which_ridge", "your_tokens"}
    for path in NOTEBOOKS.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# %% [markdown]\n# # ")
        assert text.count("\n# %%\n") > 3


def test_which_ridge(run):
    found = run("which_ridge")
    best = {name: limits.attention.test.min() for name, limits in found["predicted"].items()}
    assert best["aligned"] < best["off"] < found["linear"].min()
    assert np.all(found["gap"] < 4.0)
    assert len(found["axes"].get_lines()) >= 3


def test_your_tokens(run):
    results = run("your_tokens")["results"]
    assert results[1.0].winner["test"] == "attention"
    assert len(results[1.0].test) == 6
