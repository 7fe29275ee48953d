"""The addresses that the explorer answers: the page and its files, the panels, the long work.

Every refusal is one line of JSON, {"error": ...}: 4xx for what was asked, 500 for a fault of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from mimetypes import guess_type
from typing import Any

import anyio
import anyio.to_process
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from resolvent.explorer.guard import LARGEST_BODY, Guard
from resolvent.explorer.jobs import Busy, Job, Jobs, one_line
from resolvent.explorer.panels import curve, diagram, nonlinearity_card, spectrum
from resolvent.explorer.view import CHOICES, DEFAULTS, NUMBERS, SIZES, View
from resolvent.explorer.work import measured_points, own_tokens
from resolvent.nonlinearity import known_names

Panel = Callable[[View], dict[str, Any]]

PANELS: dict[str, Panel] = {"curve": curve, "phase": diagram, "card": nonlinearity_card}
SECONDS = 20.0  # that a panel may take
AT_ONCE = 4  # panels computed at a time
PAGES = ("index.html", "style.css")
SCRIPTS = ("main", "state", "controls", "api", "charts", "panels", "measure", "tokens", "export")
VENDOR = ("vendor/plotly.min.js", "vendor/katex.min.js")
STATIC = (*PAGES, *(f"{name}.js" for name in SCRIPTS), *VENDOR)


def explorer(hosts: frozenset[str], jobs: Jobs | None = None) -> ASGIApp:
    """The application, which answers under the given hosts (names with ports) alone."""
    jobs = Jobs() if jobs is None else jobs
    limiter = anyio.CapacityLimiter(AT_ONCE)
    routes = [
        Route("/", partial(_file, "index.html")),
        *(Route(f"/static/{name}", partial(_file, name)) for name in STATIC),
        Route("/api/schema", _schema),
        *(
            Route(f"/api/{name}", partial(_panel, partial(_thread, panel, limiter)))
            for name, panel in PANELS.items()
        ),
        Route("/api/spectrum", partial(_panel, partial(_process, spectrum, anyio.CapacityLimiter(1)))),
        Route("/api/measure", partial(_measure, jobs), methods=["POST"]),
        Route("/api/tokens", partial(_tokens, jobs), methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {HTTPException: _refused, **dict.fromkeys(WRONG, _wrong), Exception: _fault}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, hosts)


WRONG = (ValueError, TypeError, ImportError, ArithmeticError, Busy)


async def _file(name: str, _: Request) -> Response:
    content = (files("resolvent.explorer") / "static" / name).read_bytes()
    return Response(content, media_type=guess_type(name)[0], headers={"Cache-Control": "no-cache"})


async def _schema(_: Request) -> Response:
    """What the page needs to know to build its controls."""
    return JSONResponse(
        {
            "numbers": {name: number._asdict() for name, number in NUMBERS.items()},
            "choices": CHOICES,
            "sizes": SIZES,
            "defaults": DEFAULTS,
            "functions": (*known_names(), "softmax"),
            "largest": LARGEST_BODY,
        }
    )


async def _panel(compute: Callable[[View], Awaitable[dict[str, Any]]], ask: Request) -> Response:
    view = View.of(ask.query_params.multi_items())
    try:
        with anyio.fail_after(SECONDS):
            found = await compute(view)
    except TimeoutError:
        raise HTTPException(503, f"this takes longer than {SECONDS:g} seconds") from None
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


async def _thread(panel: Panel, limiter: anyio.CapacityLimiter, view: View) -> dict[str, Any]:
    return await anyio.to_thread.run_sync(panel, view, limiter=limiter, abandon_on_cancel=True)


async def _process(panel: Panel, limiter: anyio.CapacityLimiter, view: View) -> dict[str, Any]:
    """A panel that takes a second: elsewhere, so that the curves stay quick meanwhile."""
    return await anyio.to_process.run_sync(panel, view, limiter=limiter, cancellable=True)


async def _measure(jobs: Jobs, ask: Request) -> Job:
    view = View.of(ask.query_params.multi_items())
    view.check_size(NUMBERS["ratio"].high if view["over"] == "ratio" else view["ratio"])
    await anyio.to_thread.run_sync(getattr, View(view.fields), "setting")  # a wrong one is refused at once
    return jobs.start(measured_points, view)


async def _tokens(jobs: Jobs, ask: Request) -> Job:
    """The file is the body, its name the field `file` beside those of the view."""
    pairs = ask.query_params.multi_items()
    view = View.of((name, value) for name, value in pairs if name != "file")
    names = ask.query_params.getlist("file")
    if len(names) != 1 or not 0 < len(names[0]) <= 200:
        raise ValueError("a file needs one name of at most 200 characters")
    content = bytearray()
    async for part in ask.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise HTTPException(413, f"a file has at most {LARGEST_BODY // 2**20} MiB")
    return jobs.start(own_tokens, view, names[0], bytes(content))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


async def _wrong(_: Request, error: Exception) -> Response:
    status = 429 if isinstance(error, Busy) else 422 if isinstance(error, ArithmeticError) else 400
    return JSONResponse({"error": one_line(error)}, status)


async def _fault(_: Request, error: Exception) -> Response:
    print(f"resolvent explore: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
    return JSONResponse({"error": "this failed, for no fault of yours"}, 500)
