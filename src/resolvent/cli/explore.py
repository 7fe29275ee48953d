"""`resolvent explore`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Group, Parameter

from resolvent.cli.flags import Json, number
from resolvent.cli.output import as_line
from resolvent.explorer import serve

SERVER = Group("Server", sort_key=0)


def explore(
    *,
    port: Annotated[
        int | None, number(SERVER, "Port on this machine; 0 takes any that is free.", 8765)
    ] = None,
    open: Annotated[
        bool, Parameter(group=SERVER, negative="--no-open", help="Open the page in the browser.")
    ] = True,
    json: Json = False,
) -> None:
    """The web page on which the theory moves; Ctrl-C stops it."""

    def tell(address: str) -> None:
        print(as_line({"url": address}) if json else f"{address}  (Ctrl-C stops it)", flush=True)

    serve(**({} if port is None else {"port": port}), browser=open, tell=tell)
