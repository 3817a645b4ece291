"""Answers that name another contact: mixed up, or known to the service by another id. Over real sockets."""

from marketing_api.exchange import Outcome
from marketing_api.operations import contacts
from tests.marketing_api.conftest import MakeBench
from tests.marketing_api.scripted_server import Reply, ok


def named(contact_id: int) -> Reply:
    """A timeline that says whose it is."""
    return ok({"id": contact_id, "timeline": {"data": [], "count": 0, "total": 0}})


def test_a_mix_up_is_asked_again(bench: MakeBench) -> None:
    at = bench(named(8), named(9), named(7))
    at.client.fetch(contacts.TIMELINE.bind(id=7))
    assert [exchange.outcome for exchange in at.recorded] == [Outcome.BROKEN, Outcome.BROKEN, Outcome.OK]


def test_a_service_that_knows_the_contact_by_another_id_is_believed_the_second_time(bench: MakeBench) -> None:
    at = bench(named(1007))
    at.client.fetch(contacts.TIMELINE.bind(id=7))
    assert [exchange.outcome for exchange in at.recorded] == [Outcome.BROKEN, Outcome.OK]


def test_a_service_that_mixes_up_is_never_believed_at_once(bench: MakeBench) -> None:
    at = bench(
        named(8),
        named(7),
        named(9),
        named(1),
        named(1),
        named(2),
        named(2),
        named(3),
        named(3),
        named(4),
        named(4),
    )
    for contact_id in (7, 11, 12, 13, 14):
        at.client.fetch(contacts.TIMELINE.bind(id=contact_id))
    assert len(at.asked) == 11
