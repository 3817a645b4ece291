"""When what could not be had fails the night."""

import pytest

from assets.result import AccountResult
from marketing_api.client import Failure
from marketing_api.errors import AuthenticationFailed, BudgetSpent, NotAvailable, Refused, Unreachable
from marketing_api.operations import contacts
from marketing_api.records.contacts import GETCOUPON
from warehouse.loads.load import LoadReport, TableReport

QUESTION = contacts.TIMELINE.bind(id=1)


def result(*errors: Exception, planned: int = 1000) -> AccountResult:
    return AccountResult("main", failures=[Failure(QUESTION, error) for error in errors], planned=planned)


def test_nothing_missing_is_no_problem() -> None:
    assert result().missing_reasons == []
    assert not result().is_failure


def test_a_few_refused_items_are_normal() -> None:
    assert result(*[Refused("no such contact")] * 10).missing_reasons == []


def test_many_refused_items_are_a_failure() -> None:
    many = result(*[Refused("no such contact")] * 11)
    assert many.missing_reasons == ["no such contact (11 requests)"]
    assert many.is_failure


def test_one_unreachable_item_is_a_failure_worth_a_retry() -> None:
    one = result(Unreachable("no answer", was_sent=True))
    assert one.is_failure
    assert one.is_worth_a_retry


@pytest.mark.parametrize("error", [NotAvailable("not available"), BudgetSpent("spent")])
def test_what_the_account_lacks_or_a_person_limited_is_a_problem_but_no_failure(error: Exception) -> None:
    lacking = AccountResult("main", error=error)
    assert lacking.missing_reasons == [str(error)]
    assert not lacking.is_failure


def test_a_refused_key_is_a_failure_that_no_retry_mends() -> None:
    refused = AccountResult("main", error=AuthenticationFailed("wrong key"))
    assert refused.is_failure
    assert not refused.is_worth_a_retry


def test_refusals_that_mean_nothing_there_are_no_problem_and_are_reported_once() -> None:
    refused = [
        Failure(GETCOUPON.bind(email=f"p{number}@example.com"), Refused("refused", code=1003))
        for number in range(50)
    ]
    found = AccountResult("main", failures=refused, planned=60, fetched=60)
    assert found.is_failure
    found.learn_refusals({1003})
    assert not found.is_failure
    assert found.missing_reasons == []
    (line,) = found.learnt
    assert "refuses 50 of 60 addresses with errorCode 1003" in line
    found.learn_refusals({1003})
    assert found.learnt == [line]


def test_entries_that_could_not_be_read_are_a_problem_on_every_night_values_are_told() -> None:
    reports = [
        LoadReport("1", {"contacts": TableReport("contacts", rejected=17, flawed=2)}),
        LoadReport("2", {"lists": TableReport("lists")}),
    ]
    found = AccountResult(
        "main", reports=[*reports, LoadReport("3", {"contacts": TableReport("contacts", rejected=1)})]
    )
    assert found.missing_reasons == ["contacts: 18 entries could not be read: see sync.rejected_records"]
    assert found.notices == [
        "2 rows of contacts were loaded without a value that could not be read: see sync.rejected_records"
    ]
    assert not found.is_failure
    assert found.is_through
