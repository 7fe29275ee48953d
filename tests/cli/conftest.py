"""Commands run inside the test process; `tokens_file` and `folder` give them something to read."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest

from resolvent.cli.app import run


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout, read strictly: no NaN, no Infinity, nothing around it."""
        assert self.status in (0, 130), self.err
        return json.loads(self.out, parse_constant=lambda token: pytest.fail(f"{token} is not JSON"))


@pytest.fixture
def resolvent(capsys):
    """Run `resolvent ARGUMENTS`."""

    def command(*arguments: str) -> Outcome:
        capsys.readouterr()
        status = run([str(a) for a in arguments])
        return Outcome(status, *capsys.readouterr())

    return command


def two_classes(p: int = 8, n: int = 60, snr: float = 4.0, seed: int = 0):
    """Tokens p x n and labels: Gaussian noise about +mu and -mu."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) % 2, 1, -1)
    return rng.standard_normal((p, n)) + np.outer(np.full(p, np.sqrt(snr / p)), labels), labels


@pytest.fixture
def folder(token_files, monkeypatch):
    """The folder to work in, shared by all tests: none writes into it."""
    monkeypatch.chdir(token_files)
    return token_files


@pytest.fixture(scope="session")
def token_files(tmp_path_factory):
    """A file for each way in which tokens can be given or be wrong."""
    path = tmp_path_factory.mktemp("tokens")
    tokens, labels = two_classes()
    holes = tokens.copy()
    holes[2, 3] = np.nan
    files = {
        "good": (tokens, labels),
        "one_class": (tokens, np.ones(60)),
        "three_classes": (tokens, np.arange(60) % 3),
        "holes": (holes, labels),
        "line": (tokens[:1], labels),
        "three_tokens": (tokens[:, :3], labels[:3]),
        "four_tokens": (tokens[:, :4], labels[:4]),
        "lonely": (tokens, np.where(np.arange(60) == 7, 1, -1)),
        "mismatch": (tokens[:, :50], labels),
        "flat": (np.ones((8, 60)), labels),
    }
    for name, (x, y) in files.items():
        np.savez(path / f"{name}.npz", tokens=x, labels=y)
    np.savez(path / "white.npz", tokens=tokens, labels=labels, background_cov=np.diag(np.arange(1.0, 9.0)))
    np.savez(path / "no_labels.npz", tokens=tokens)
    np.savez(path / "pickled.npz", tokens=np.array([{}, {}], dtype=object), labels=labels)
    np.save(path / "tokens.npy", tokens)
    np.save(path / "labels.npy", labels)
    (path / "ragged.csv").write_text("a,b,label\n1,2,0\n1,2\n")
    (path / "words.csv").write_text("a,b,label\n1,x,0\n1,2,1\n")
    (path / "junk.npz").write_text("this is no archive")
    (path / "empty.csv").write_text("")
    (path / "notes.txt").write_text("1 2 3")
    (path / "folder.npz").mkdir()
    (path / "folder.png").mkdir()
    return path
