"""The requests that the Dagster UI accepts: those of its own pages and of programs on this machine,
but not those of other web pages.

A browser lets every page send requests to 127.0.0.1, and Dagster's web server executes all of them,
even a launch in the address of an `<img>`. This isn't a login: any program on this machine may do
what the UI may, without a browser's headers."""

from collections.abc import Mapping
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The headers that decide. Each may occur once: of two, the guard might use one and the server
#: behind it the other.
_CHECKED_HEADERS = (
    "host",
    "origin",
    "content-type",
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
)
#: Headers of every response. They keep pages of other origins from framing it (which steals clicks
#: through a transparent page) and from reading it.
_RESPONSE_HEADERS = {
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
#: Headers of the report: its own styles and images, no scripts.
_REPORT_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
    ),
    "Cache-Control": "no-cache",
}
_REFUSED = 403
_POLICY_VIOLATION = 1008
_NOT_FOUND = 404


def find_objection(scope: Scope, port: int) -> str | None:
    """Why a request (an ASGI scope of `http` or `websocket`) to this port is refused, and what to
    do; None when it is accepted."""
    lines = [
        (name.decode("latin-1").lower(), value.decode("latin-1").strip())
        for name, value in scope["headers"]
    ]
    headers = {name: value for name, value in lines if name in _CHECKED_HEADERS}
    if len(headers) < sum(name in _CHECKED_HEADERS for name, _ in lines):
        return "a header that may occur once occurs twice; send it once"
    host = headers.get("host", "").lower()
    if host not in _allowed_hosts(port):
        return (
            f"it does not name this server as its host; open http://127.0.0.1:{port} (a tunnel "
            "needs this port at both of its ends)"
        )
    return _foreign_page(scope, headers, host) or _unsafe_form(scope, headers)


def _allowed_hosts(port: int) -> set[str]:
    """Any other name may belong to a page whose address was changed to this machine's (DNS
    rebinding)."""
    names = {"127.0.0.1", "localhost", "[::1]"}
    with_port = {f"{name}:{port}" for name in names}
    return with_port | names if port == 80 else with_port  # browsers leave out port 80


def _foreign_page(scope: Scope, headers: Mapping[str, str], host: str) -> str | None:
    """Why the request is of another page; None when it isn't. Browsers always send where a request
    comes from: all send Origin, and since 2023 all send Sec-Fetch-Site."""
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site")
    is_browser = any(name.startswith("sec-fetch-") for name in headers)
    is_own = origin is None or origin.lower() == f"http://{host}"
    if scope["type"] == "websocket":
        is_own = is_own and not (is_browser and origin is None)
    if is_own and (site in (None, "same-origin", "none") or _is_page_load(scope, headers)):
        return None
    return (
        "it comes from a page of another address; if you meant to open it, press Enter in the "
        "address bar"
    )


def _is_page_load(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether the user follows a link to the UI. A query string isn't allowed, since it could fill
    in a form of the UI."""
    is_page = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == (
        "navigate",
        "document",
    )
    return is_page and scope.get("method") == "GET" and not scope.get("query_string")


def _unsafe_form(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Why the request is refused by its method and content type; None when it isn't. Only a POST of
    JSON may change something: no form can send it, and a page of another origin needs a preflight
    request."""
    if scope["type"] == "websocket":
        return None
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        if scope["path"].rstrip("/") == "/graphql" and scope.get("query_string"):
            return "queries are not accepted in an address; POST them as application/json"
        return None
    if scope["method"] != "POST":
        return "only GET, HEAD, OPTIONS and POST are accepted"
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json":
        return None
    return "only JSON is accepted; POST it with the header content-type: application/json"


class Guard:
    """The ASGI application `app` behind `find_objection`."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = None
        if scope["type"] in ("http", "websocket"):
            reason = find_objection(scope, self._port)
        if scope["type"] == "http":
            response = PlainTextResponse(f"Refused: {reason}.\n", _REFUSED) if reason else self._app
            await response(scope, receive, _with_headers(send))
        elif reason:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason})
        else:
            await self._app(scope, receive, send)


def report_page(path: Path) -> Response:
    """The report, sandboxed and without scripts, so that nothing in it can send requests to the
    UI."""
    if path.is_file():
        return FileResponse(path, headers=_REPORT_HEADERS)
    return PlainTextResponse(
        "There is no report yet: the first sync writes it.\n", _NOT_FOUND, headers=_REPORT_HEADERS
    )


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(_RESPONSE_HEADERS)
            # in addition to the page's own policy: browsers apply the stricter one
            headers.append("Content-Security-Policy", "frame-ancestors 'none'")
        await send(message)

    return send_with_headers
