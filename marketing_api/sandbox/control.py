"""The control paths under `/sandbox`: the clock, faults, and what was received.

They lie outside `/1`, need no key and count towards no limit. Responses are plain JSON without an
envelope."""

import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.json import encode

from marketing_api.sandbox.app import App
from marketing_api.sandbox.responses import Request, Response
from marketing_api.sandbox.rules import Params
from marketing_api.sandbox.seed import DAY


def advance(app: App, params: Params, real: float) -> Any:
    """`days=1` (may be a fraction): let time pass; queued writes take effect."""
    days = float(params.get("days", "1"))
    if days < 0:
        raise ValueError("time does not run backwards")
    app.world.settle(real + days * DAY)
    app.world.advance(days)
    app.journal.append(advance=days)
    return {"now": app.world.now()}


def faults(app: App, params: Params, real: float) -> Any:
    """`name=probability[@operations]…`, `rate-limit=10`, `off=1` for none; shows all that are
    on."""
    for name, value in params.items():
        if name == "off":
            app.faults.chances.clear()
        elif name == "rate-limit":
            app.window.limit = int(value)
        else:
            app.faults.set(name, value)
    return {name: str(chance) for name, chance in app.faults.chances.items() if chance.probability}


def log(app: App, params: Params, real: float) -> Any:
    """Requests received (the last 50,000), oldest first: those after number `since=0`, at most
    `limit=1000`."""
    since = int(params.get("since", 0))
    limit = int(params.get("limit", 1000))
    found = [one._asdict() for one in app.log if one.number > since]
    return {"requests": app.requests, "items": found[:limit]}


PATHS = {handle.__name__: handle for handle in (advance, faults, log)}


def respond_to_control(app: App, request: Request, real: float) -> Response:
    """400 with `error` when the request makes no sense, 404 for an unknown path; `real` is its time
    in unix seconds."""
    params = dict(urllib.parse.parse_qsl(f"{request.query}&{request.body.decode()}"))
    paths: Mapping[str, Callable[..., Any]] = app.control_paths or PATHS
    handle = paths.get(request.path.removeprefix("/sandbox").strip("/"))
    if handle is None:
        return Response(
            404, encode({"error": "unknown", "paths": [f"/sandbox/{path}" for path in paths]})
        )
    try:
        return Response(200, encode(handle(app, params, real)))
    except (ValueError, KeyError) as error:
        return Response(400, encode({"error": str(error)}))
