"""Open a port on the loopback interface, serve the explorer there, and show it in the browser."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable

from resolvent.setting.ranges import integer

HOST = "127.0.0.1"


def serve(port: int = 8765, *, browser: bool = True, tell: Callable[[str], None] = print) -> None:
    """Serve the explorer on 127.0.0.1 until Ctrl-C; port 0 takes any that is free.

    `tell` is given the address; with `browser` it is opened. Raises
    ValueError for a port out of range or in use, and ImportError without the extra `explore`.
    """
    try:
        import uvicorn

        from resolvent.explorer.routes import explorer
    except ImportError:
        extra = "pip install 'resolvent[explore]'"
        raise ImportError(f"the explorer needs starlette and uvicorn: {extra}") from None
    with _listening(integer("port", port, 0)) as listener:
        number = listener.getsockname()[1]
        port_shown = "" if number == 80 else f":{number}"  # browsers leave out 80
        app = explorer(frozenset(name + port_shown for name in (HOST, "localhost")))
        address = f"http://{HOST}:{number}/"

        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=1,
            limit_concurrency=64,
        )
        tell(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            uvicorn.Server(config).run([listener])
        except KeyboardInterrupt:  # how one stops it
            return


def _listening(port: int) -> socket.socket:
    if port > 65535:
        raise ValueError(f"port must be at most 65535, got {port}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise ValueError(f"port must be free, got {port} ({error.strerror}); 0 takes any that is") from None
    return listener
