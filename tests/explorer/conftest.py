"""The explorer without a browser (`client`), on a port (`server`), and in headless Chromium (`browser`)."""

from __future__ import annotations

import io
import json
import shutil
import socket
import threading
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra `explore` is not installed")

import uvicorn
from starlette.testclient import TestClient

from resolvent.explorer.guard import ASKING
from resolvent.explorer.jobs import Jobs
from resolvent.explorer.routes import explorer

HOST = "127.0.0.1:8765"


def client_of(jobs=None, **headers):
    app = explorer(frozenset([HOST]), jobs)
    return TestClient(
        app, base_url=f"http://{HOST}", headers={ASKING: "1"} | headers, raise_server_exceptions=False
    )


@pytest.fixture
def client():
    return client_of()


@pytest.fixture
def client_with():
    """A client of an explorer with other limits or headers."""
    return client_of


def read_events(text):
    """[(name, value)] of server-sent events."""
    blocks = [block.split("\n") for block in text.split("\n\n") if block]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


@pytest.fixture
def events():
    return read_events


class Running(NamedTuple):
    url: str
    jobs: Jobs


@pytest.fixture(scope="session")
def server():
    """An explorer on a free port."""
    jobs = Jobs()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            explorer(frozenset([host]), jobs), log_level="critical", lifespan="off", ws="none"
        )
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        yield Running(f"http://{host}/", jobs)
        running.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium; skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=program, args=["--no-sandbox"])


@pytest.fixture
def tokens_csv():
    """40 labelled tokens in 6 dimensions, as a csv file."""
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(40) % 2, 1, -1)
    tokens = rng.standard_normal((40, 6)) + np.outer(labels, np.full(6, 0.8))
    text = io.StringIO()
    np.savetxt(
        text, np.column_stack([tokens, labels]), delimiter=",", header="a,b,c,d,e,f,label", comments=""
    )
    return text.getvalue().encode()
