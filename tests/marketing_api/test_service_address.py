"""An address has one form, so that it can be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.service_address import normalize_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://api.example.com/1", "https://api.example.com/1"),
        ("HTTPS://API.Example.COM:443/1/", "https://api.example.com/1"),
        ("http://api.example.com:80/1//", "http://api.example.com/1"),
        ("http://api.example.com:/1", "http://api.example.com/1"),
        ("http://api.example.com:0443/1", "http://api.example.com:443/1"),
        ("https://api.example.com:80/1", "https://api.example.com:80/1"),
        ("https://api.example.com/Harbor/1", "https://api.example.com/Harbor/1"),
        ("https://api.example.com/", "https://api.example.com"),
        ("http://[::1]:8080/1", "http://[::1]:8080/1"),
        ("http://[::1]:80/1", "http://[::1]/1"),
    ],
)
def test_spellings_of_one_address_have_one_form(text: str, address: str) -> None:
    assert normalize_address(text) == address
    assert normalize_address(address) == address


_HOSTS = ["api.example.com", "api.example.org", "127.0.0.1", "[::1]"]
_PARTS = st.tuples(
    st.sampled_from(["http", "https"]),
    st.sampled_from(_HOSTS),
    st.sampled_from([80, 443, 8080]),
    st.sampled_from(["/1", "/north/1", "/North/1"]),
)


@given(_PARTS, _PARTS)
def test_addresses_are_equal_only_with_equal_scheme_host_port_and_path(
    one: tuple[str, str, int, str], other: tuple[str, str, int, str]
) -> None:
    forms = [
        normalize_address(f"{scheme}://{host}:{port}{path}") for scheme, host, port, path in (one, other)
    ]
    assert (forms[0] == forms[1]) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "nope",
        "",
        "a-secret-key",
        "ftp://api.example.com/1",
        "https:///1",
        "https://:443/1",
        "https://api.example.com:99999/1",
        "https://api.example.com:port/1",
        "https://key@api.example.com/1",
        "https://user:key@api.example.com/1",
        "https://api.example.com/1?key=a-secret-key",
        "https://api.example.com/1#part",
        "https://api.example.com/1 ",
        "https://api.example.com\\@other.example.com/1",
        "https://[::1/1",
    ],
)
def test_what_is_no_address_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="not an address") as refusal:
        normalize_address(text)
    assert not text or text not in str(refusal.value)
