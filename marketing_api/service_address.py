"""The address of a service in its one normal form, which settings, homes and the rate limit
compare.

    normalize_address("HTTPS://API.example.com:443/1/")  # "https://api.example.com/1"

Two addresses lead to the same service only if scheme, host, port and path are equal: a business id
means nothing at another one. Not here: e-mail addresses (`address`)."""

import re
import urllib.parse

#: Where the operations of the service are.
PATH = "/1"
_FORM = re.compile(r"https?://[^\s?#@\\]+", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NEEDED = "not an address; it looks like https://HOST/1, without a key or password in it"


def normalize_address(text: str) -> str:
    """Scheme and host in lower case, without a default port and without slashes at the end.

    Raises ValueError, which doesn't quote the text: it may be the key in the wrong place."""
    try:
        parts = urllib.parse.urlsplit(text)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise ValueError(_NEEDED) from None
    if not host or not _FORM.fullmatch(text):
        raise ValueError(_NEEDED)
    if ":" in host:
        host = f"[{host}]"
    if port not in (None, _DEFAULT_PORTS[parts.scheme]):
        host = f"{host}:{port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def advise_on_refused_key(address: str) -> str:
    """What else may be wrong: the service answers a wrong key and a wrong path alike."""
    if address.endswith(PATH):
        return ""
    return f"; or the address is wrong: {address} does not end in {PATH}, as the service's does"
