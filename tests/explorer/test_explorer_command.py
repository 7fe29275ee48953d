"""`resolvent explore` as it is started and stopped."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import httpx2
import pytest

from resolvent.cli.app import run
from resolvent.explorer import serve


def test_it_serves_until_ctrl_c():
    command = [sys.executable, "-m", "resolvent", "explore", "--no-open", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        url = json.loads(process.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        assert "<title>resolvent" in httpx2.get(url).text
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_in_use_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["explore", "--no-open", "--port", str(port)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        err == f"resolvent: --port must be free, got {port} (Address already in use); 0 takes any that is\n"
    )


WRONG = [("-1", "at least 0, got -1"), ("70000", "at most 65535, got 70000"), ("x", "an integer, got 'x'")]


@pytest.mark.parametrize(("port", "words"), WRONG)
def test_a_wrong_port_is_one_line(port, words, capsys):
    assert run(["explore", "--no-open", "--port", port]) == 2
    assert capsys.readouterr().err == f"resolvent: --port must be {words}\n"


def test_the_browser_is_opened(monkeypatch):
    opened, told = [], []
    monkeypatch.setattr("webbrowser.open", opened.append)

    class Server:
        def __init__(self, config):
            assert config.host == "127.0.0.1"

        def run(self, sockets):
            assert sockets[0].getsockname()[0] == "127.0.0.1"

    monkeypatch.setattr("uvicorn.Server", Server)
    serve(0, browser=False, tell=told.append)
    assert not opened
    serve(0, tell=told.append)
    assert opened == told[1:]


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(["explore", "--no-open"]) == 2
    assert "pip install 'resolvent[explore]'" in capsys.readouterr().err
