from marketing_api.operations import ALL, contacts
from marketing_api.transport import prepare_request

BASE = "https://service.example/1"


def test_parameters_of_a_read_go_into_the_query() -> None:
    request = prepare_request(contacts.GETCONTACTS.bind(listid=5, limit=1000), BASE)
    assert (request.method, request.url) == (
        "GET",
        f"{BASE}/emailmarketing/getcontacts.json?listid=5&limit=1000",
    )
    assert request.body is None


def test_parameters_of_a_write_go_into_the_form() -> None:
    request = prepare_request(contacts.EDITCONTACT.bind(id=1, fields={"12": "London"}), BASE)
    assert (request.method, request.url) == ("POST", f"{BASE}/emailmarketing/editcontact.json")
    assert request.body == b"id=1&fields%5B12%5D=London"


def test_the_one_delete_by_get_sends_a_query() -> None:
    request = prepare_request(ALL["reputation/deletefeedback"].bind(id=7), BASE)
    assert (request.method, request.url) == ("GET", f"{BASE}/reputation/deletefeedback.json?id=7")


def test_repr_of_a_request_shows_no_values() -> None:
    call = contacts.GETCOUPON.bind(email="ann@example.com")
    assert "ann" not in repr(prepare_request(call, BASE)) + repr(call)
    assert "email" in repr(call)
