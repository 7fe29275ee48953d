"""Malformed and hostile requests get one line and nothing else; limits hold; headers are on every answer."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import httpx2
import pytest

from resolvent.explorer.guard import ASKING, LARGEST_BODY
from resolvent.explorer.jobs import Jobs

STATIC = Path(__file__).parents[2] / "src" / "resolvent" / "explorer" / "static"


def eventually(condition, seconds=10.0):
    """Whether the condition comes true."""
    deadline = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return true


def refused(reply, status, words):
    """One line of JSON that says so, and no traceback."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/json"
    (key, line), *more = reply.json().items()
    assert (key, more) == ("error", [])
    assert re.search(words, line)
    assert "\n" not in line
    assert "Traceback" not in reply.text


WRONG = [
    ("ridge=abc", "ridge must be a number, got 'abc'"),
    ("ridge=-1", "ridge must be zero or positive, got -1"),
    ("ratio=0", "ratio must be positive"),
    ("ratio=nan", "ratio must be finite|ratio must"),
    ("snr=1e400", "snr must"),
    ("label_noise=0.7", "label_noise must be between 0 and 0.5"),
    ("gamma=1", "there is no field 'gamma'"),
    ("snr=1&snr=2", "snr may be given once"),
    ("over=beta", "over must be one of"),
    ("over=f", "over must be one of"),
    ("f=softmax&centred=0", "centred|uncentred"),
    ("f=softmax&keep_diagonal=1", "keep_diagonal must be left out"),
    ("f=softmax&beta=0", "beta must be positive"),
    ("over=key_cos", "over must be one of ratio, .* got key_cos"),
    ("x=snr&y=snr", "x and y must vary different fields"),
    ("n=1e3", "n must be an integer from 8 to 2048"),
    ("draws=1", "draws must be an integer from 2 to 50"),
    ("seed=" + "9" * 400, "seed must be an integer"),
    ("log=yes", "log must be one of 0, 1, got 'yes'"),
    ("weights=apart&key_norm=-1", "key_norm must be zero or positive"),
    ("align=1e9", "align must keep vectors at most"),
    ("f=" + "t%2B" * 150 + "t", "f must be at most 200 characters"),
    ("f=nonsense", "nonsense"),
    ("f=", "."),
    ("f=%00", "."),
    ("f=__import__('os').system('true')", "."),
    ("f=().__class__.__bases__", "."),
    ("f=(lambda:1)()", "."),
    ("f=exp(exp(t))", "."),
    ("f=t**t**t**t", "."),
    ("f=9**9**9**9*t", "."),
]


@pytest.mark.parametrize(("query", "words"), WRONG, ids=[query[:20] for query, _ in WRONG])
def test_a_wrong_view_is_one_line(client, query, words):
    refused(client.get(f"/api/curve?{query}"), 400, words)


def test_a_spectrum_that_there_is_not_says_why(client):
    apart = client.get("/api/spectrum?weights=apart&key_cos=1&matrix=attention").json()
    assert "keys and queries must be equal" in apart["missing"]
    assert "at most 4096" in client.get("/api/spectrum?ratio=10&n=2048").json()["missing"]


HOSTS = ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "", "[::1]:8765"]


@pytest.mark.parametrize("host", HOSTS)
def test_other_hosts_are_refused(client, host):
    for path in ("/", "/api/curve", "/static/main.js"):
        refused(client.get(path, headers={"host": host}), 421, "its own address")


def test_two_hosts_are_refused(server):
    port = int(server.url.split(":")[2].strip("/"))
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil\r\n\r\n".encode())
        assert raw.recv(4096).split()[1] in (b"400", b"421")
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"\x00\xff nonsense\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8765"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    ],
    ids=str,
)
def test_other_pages_are_refused(client, headers):
    for method, path in (("GET", "/api/curve"), ("POST", "/api/measure"), ("POST", "/api/tokens?file=a.csv")):
        refused(client.request(method, path, headers=headers), 403, "other pages")
    preflight = client.options("/api/measure", headers=headers | {"access-control-request-method": "POST"})
    assert preflight.status_code in (403, 405)
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_what_computes_wants_the_header_that_no_foreign_page_can_send(client):
    del client.headers[ASKING]
    refused(client.get("/api/curve"), 403, "carry the header")
    refused(client.post("/api/measure"), 403, "carry the header")
    assert client.get("/").status_code == 200


def test_a_link_elsewhere_opens_the_page(client):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    framed = link | {"sec-fetch-dest": "iframe"}
    refused(client.get("/", headers=framed), 403, "other pages")


NOWHERE = [
    *("/static", "/static/", "/static/vendor/", "/static/../routes.py", "/static/..%2froutes.py"),
    *("/static/%2e%2e/routes.py", "/static//etc/passwd", "/static/vendor/README.md", "/static/main.js/"),
    *("/api", "/api/", "/api/none", "/docs", "/openapi.json", "/.env", "/index.html", "/%00"),
]


@pytest.mark.parametrize("path", NOWHERE)
def test_there_is_nothing_else(client, path):
    refused(client.get(path), 404, "Not Found")


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("PUT", "/api/curve"), ("GET", "/api/measure")])
def test_other_methods_are_refused(client, method, path):
    refused(client.request(method, path), 405, "Method Not Allowed")


def test_websockets_are_refused(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


def test_sizes_are_limited(client):
    refused(client.get("/api/curve?f=" + "t" * 5000), 414, "4096 characters")
    refused(client.post("/api/measure?ratio=10&n=2048"), 400, "p = ratio n must be at most 4096, got 20480")
    refused(client.post("/api/measure?over=ratio&n=2048"), 400, "at most 4096")
    announced = {"content-length": str(LARGEST_BODY + 1)}
    refused(client.post("/api/tokens?file=a.csv", headers=announced), 413, "32 MiB")
    refused(client.post("/api/tokens?file=a.csv", headers={"content-length": "-1"}), 413, "32 MiB")

    def endless():
        for _ in range(LARGEST_BODY // 2**20 + 1):
            yield bytes(2**20)

    refused(client.post("/api/tokens?file=a.csv", content=endless()), 413, "32 MiB")


def test_simulations_at_a_time_are_limited(client_with):
    refused(client_with(Jobs(most=0)).post("/api/measure"), 429, "at most 0 simulations")


def test_a_simulation_is_stopped_when_its_time_is_up(client_with, events):
    jobs = Jobs(seconds=0.3)
    stream = events(client_with(jobs).post("/api/measure?n=2048&draws=50").text)
    assert stream[-1] == ("failed", {"error": "stopped after 0.3 seconds"})
    assert not jobs.running


def test_a_simulation_ends_when_its_reader_leaves(server):
    url = f"{server.url}api/measure?n=1024&draws=50"
    with httpx2.stream("POST", url, headers={ASKING: "1"}, timeout=60) as reply:
        assert reply.status_code == 200
        (process,) = server.jobs.running
        assert eventually(lambda: process.pid is not None)
    assert eventually(lambda: not server.jobs.running)


@pytest.mark.parametrize(
    ("query", "content", "words"),
    [
        ("", b"", "a file needs one name"),
        ("file=", b"", "a file needs one name"),
        ("file=a.csv&file=b.csv", b"", "a file needs one name"),
        ("file=" + "a" * 300, b"", "a file needs one name"),
    ],
)
def test_a_file_without_one_name_is_refused(client, query, content, words):
    refused(client.post(f"/api/tokens?{query}", content=content), 400, words)


@pytest.mark.parametrize(
    ("query", "content", "words"),
    [
        ("file=a.pkl", b"cos\nsystem\n(S'true'\ntR.", "must end in one of .npz, .parquet, .csv"),
        ("file=../../etc/passwd.csv", b"a,b\n1,2\n", "one column named label"),
        ("file=a.npz", b"PK\x03\x04 broken", "a.npz: not readable"),
        ("file=a.csv", b"a,b,label\n1,2\n", "a.csv: line 2 has 2 fields"),
    ],
)
def test_a_file_that_holds_no_tokens_fails_in_one_line(client, events, query, content, words):
    stream = events(client.post(f"/api/tokens?{query}", content=content).text)
    assert [name for name, _ in stream] == ["failed"]
    assert re.search(words, stream[0][1]["error"])
    assert "\n" not in stream[0][1]["error"]


def test_a_file_is_never_written(client, events, tokens_csv, tmp_path, monkeypatch):
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    stream = events(client.post("/api/tokens?file=a.csv&draws=2", content=tokens_csv).text)
    assert stream[-1] == ("done", {})
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_ours_shows_no_traceback(client_with, monkeypatch, capsys):
    from resolvent.explorer import routes

    def broken(_):
        raise RuntimeError("secret\ndetail")

    monkeypatch.setitem(routes.PANELS, "card", broken)
    refused(client_with().get("/api/card"), 500, "no fault of yours")
    assert capsys.readouterr().err == "resolvent explore: RuntimeError: secret detail\n"


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/curve", "/api/curve?ridge=-1", "/none"])
def test_every_answer_has_the_security_headers(client, path):
    for headers in ({}, {"host": "evil.example"}):
        found = client.get(path, headers=headers).headers
        assert "script-src 'self';" in found["content-security-policy"]
        assert "default-src 'none'" in found["content-security-policy"]
        assert "frame-ancestors 'none'" in found["content-security-policy"]
        assert found["x-content-type-options"] == "nosniff"
        assert found["x-frame-options"] == "DENY"
        assert found["referrer-policy"] == "no-referrer"
        assert found["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in found


def test_a_simulation_answers_with_them_too(client, events):
    reply = client.post("/api/measure?n=8&draws=2")
    assert events(reply.text)[-1][0] == "done"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-type"] == "text/event-stream"


def test_the_page_has_no_inline_script_and_names_no_other_host():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|javascript:", page)
    for path in [STATIC / "index.html", STATIC / "style.css", *STATIC.glob("*.js")]:
        assert not re.search(r"https?://|//\w+\.\w", path.read_text(encoding="utf-8")), path.name


def test_every_static_file_is_served_and_ships_with_its_licence(client):
    from resolvent.explorer.routes import STATIC as SERVED

    own = {p.name for p in STATIC.iterdir() if p.is_file()}
    assert own | {"vendor/plotly.min.js", "vendor/katex.min.js"} == set(SERVED)
    for name in SERVED:
        assert client.get(f"/static/{name}").content == (STATIC / name).read_bytes()
    for name in ("plotly", "katex"):
        assert "Permission is hereby granted" in (STATIC / "vendor" / f"{name}.LICENSE").read_text(
            encoding="utf-8"
        )
