"""marketing-sync by its own name: what other programs may import (docs/python.md).

    from marketing_sync import Client, errors, operations

Belongs here: names that stay, from 1.0.0 on. Not here: what they do; the packages beside this one
are free to change. Imported when they are used, since `marketing-sync` itself begins here."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marketing_api import __version__

if TYPE_CHECKING:
    from marketing_api import errors, operations
    from marketing_sync.client import Client

__all__ = ["Client", "__version__", "errors", "operations"]

_PLACES = {
    "Client": "marketing_sync.client",
    "errors": "marketing_api.errors",
    "operations": "marketing_api.operations",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_PLACES[name])
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return __all__
