"""Who may ask, and for how much: the rules that every request meets before anything reads it.

A page elsewhere can make a browser send requests here. So the Host must be this machine's (a name that was
rebound to 127.0.0.1 is another host), Origin and Sec-Fetch-Site must be absent or ours, and what computes
wants a header that a foreign page can only send after asking permission, which nobody gives. The answer's
headers let the page load from here alone, and run no inline script.
"""

from __future__ import annotations

import json

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ASKING = "x-resolvent"  # the header that requests under /api carry
LONGEST_QUERY = 4096
LARGEST_BODY = 32 * 2**20
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # plotly places its marks with style attributes
        "img-src 'self' data: blob:",  # and draws its PNG from a blob
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """The app behind the rules. `hosts` are the names, port included, under which this server is itself."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the headers added to the answer."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, with_headers)
        else:
            await refuse(with_headers, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and words for a request that is not let in."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return 421, "this server answers to its own address alone"
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return 403, "requests from other pages are refused"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not _opens_page(headers):
            return 403, "requests from other pages are refused"
        if scope["path"].startswith("/api/") and ASKING not in headers:
            return 403, f"requests to the API carry the header {ASKING}"
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, f"a query has at most {LONGEST_QUERY} characters"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY:
            return 413, f"a file has at most {LARGEST_BODY // 2**20} MiB"
        return None


def _opens_page(headers: Headers) -> bool:
    """Whether a link elsewhere leads here: it shows the page and computes nothing."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


async def refuse(send: Send, status: int, words: str) -> None:
    """One line of JSON."""
    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
