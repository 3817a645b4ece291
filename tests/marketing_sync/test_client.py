"""What docs/python.md promises to programs of others."""

import datetime as dt
from collections.abc import Iterator

import pytest

import marketing_sync
from marketing_api.sandbox.options import DEFAULT_KEY
from marketing_sync import Client, errors
from tests.dialects.server import Options, serve


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(Options(contacts=60, rate_limit=0)) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(f"{url}/", DEFAULT_KEY) as client:
        yield client


def test_every_name_that_stays_can_be_imported() -> None:
    assert {name for name in dir(marketing_sync) if getattr(marketing_sync, name) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        _ = marketing_sync.Clint


def test_a_read_is_its_payload(client: Client) -> None:
    assert client.get("app/me")["businessName"]
    assert client.requests == 1


def test_rows_are_typed_and_of_all_pages(client: Client) -> None:
    (first, *_) = client.rows("emailmarketing/getlists")
    contacts = list(client.rows("emailmarketing/getcontacts", listid=first["list_id"], limit=7))
    ids = [contact["contact_id"] for contact in contacts]
    assert len(ids) == len(set(ids)) > 7
    assert isinstance(contacts[0]["registered_at"], dt.datetime)
    assert contacts[0]["registered_at"].utcoffset() == dt.timedelta()
    fields = list(client.rows("emailmarketing/getlist", id=first["list_id"], record="ListField"))
    assert {"list_id", "field_id", "label"} <= fields[0].keys()


def test_a_wrong_call_costs_no_request(client: Client) -> None:
    with pytest.raises(errors.InvalidCall, match="id"):
        client.get("emailmarketing/getcontact", idd=1)
    with pytest.raises(errors.InvalidCall, match="did you mean"):
        next(client.rows("emailmarketing/getcontact5"))
    with pytest.raises(errors.InvalidCall, match="ContactList, ListField"):
        next(client.rows("emailmarketing/getlists", record="Listfield"))
    assert client.requests == 0


def test_a_refused_call_says_so(client: Client) -> None:
    with pytest.raises(errors.Refused):
        client.get("emailmarketing/getcontact", id=987654321)


def test_a_write_is_sent(client: Client, url: str) -> None:
    (first, *_) = client.rows("emailmarketing/getlists")
    contact = next(client.rows("emailmarketing/getcontacts", listid=first["list_id"]))
    client.send("emailmarketing/addtag", email=contact["email"], tagname="vip")
    timeline = {"id": contact["contact_id"], "include": "utm,automated"}
    assert client.get("emailmarketing/getcontacttimeline", **timeline)


@pytest.mark.parametrize(
    ("address", "key"),
    [("https://other.example/1", None), (None, "k"), ("https://other.example/1", ""), ("", "k"), ("", "")],
)
def test_address_and_key_come_from_one_source(
    monkeypatch: pytest.MonkeyPatch, address: str | None, key: str | None
) -> None:
    monkeypatch.setenv("MARKETING_API_URL", "https://api.example.com/1")
    monkeypatch.setenv("MARKETING_API_KEY", "the-key-of-the-environment")
    with pytest.raises(errors.InvalidCall, match="address and key belong together"):
        Client(address, key)


def test_a_client_without_arguments_takes_both_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("MARKETING_API_URL", url)
    monkeypatch.setenv("MARKETING_API_KEY", DEFAULT_KEY)
    with Client() as client:
        assert client.get("app/me")
    monkeypatch.delenv("MARKETING_API_KEY")
    with pytest.raises(errors.InvalidCall, match="MARKETING_API_KEY"):
        Client()


@pytest.mark.parametrize("address", ["nope", "api.example.com/1", "https://the-key@api.example.com/1"])
def test_an_address_is_checked_before_anything_is_sent(address: str) -> None:
    with pytest.raises(errors.InvalidCall, match="not an address") as refusal:
        Client(address, "the-key")
    assert "the-key" not in str(refusal.value)


def test_a_refused_key_at_an_address_without_its_path_blames_both(url: str) -> None:
    address = url.removesuffix("/1")
    blames_both = pytest.raises(errors.AuthenticationFailed, match=f"{address} does not end in /1")
    with Client(address, DEFAULT_KEY) as client, blames_both:
        client.get("app/me")
    with Client(url, "of-nobody") as client, pytest.raises(errors.AuthenticationFailed) as refusal:
        client.get("app/me")
    assert "does not end" not in str(refusal.value)


def test_an_operation_that_another_method_calls_is_refused_with_its_name(client: Client) -> None:
    with pytest.raises(errors.InvalidCall, match="is a write: use `send`"):
        client.get("emailmarketing/addtag", email="a@example.com", tagname="vip")
    with pytest.raises(errors.InvalidCall, match="is a write: use `send`"):
        next(client.rows("emailmarketing/addtag"))
    with pytest.raises(errors.InvalidCall, match="is a read: use `get` or `rows`"):
        client.send("emailmarketing/getlists")
    with pytest.raises(errors.InvalidCall, match="has no records: use `get`"):
        next(client.rows("emailmarketing/getcontact"))
    assert client.requests == 0
