"""Which asset is begun when, and what becomes of errors: without a run, with assets of the test's own."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from assets import reader as reading
from assets.fetch import Batches, Fetcher, FetchSettings
from assets.reader import Reader
from assets.sources import SourceAsset
from marketing_api.errors import NotAvailable, OtherBusiness, Refused, Stopped, Unreachable
from marketing_api.operations import social
from tests.assets.conftest import OpenAccount
from tests.assets.service import NOW, Account
from tests.marketing_api.samples import LINKS
from warehouse import tables


def asset(name: str, *after: SourceAsset, fails: Sequence[Exception] = (), waits: Any = None) -> SourceAsset:
    """One that makes one request; its first tries fail with these errors."""
    errors = list(fails)

    def function(fetch: Fetcher) -> Batches:
        if waits is not None:
            waits.wait()
        if errors:
            raise errors.pop(0)
        yield fetch.fetch_one(social.STATS, channels="all")

    return SourceAsset(name, (tables.SOCIAL_LINKS,), function, after)


def make_reader(account: Account, *assets: SourceAsset) -> Reader:
    settings = FetchSettings(NOW.date(), lookback_days=7)
    account.session.prepare_reuse([asset.name for asset in assets], account.checkpoints)
    return Reader(
        [account.session], assets, account.warehouse, account.checkpoints, settings, now=lambda: NOW
    )


def read(account: Account, *assets: SourceAsset) -> Reader:
    reader = make_reader(account, *assets)
    reader.begin_reading()
    reader.finish_reading()
    return reader


@pytest.fixture
def account(open_account: OpenAccount, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(reading, "RETRY_AFTER_S", 0.0)
    return open_account(lambda call: LINKS)


def outcome(account: Account, reader: Reader) -> tuple[Any, ...]:
    """What the run's row says."""
    reader.note_run("run", "nightly_sync")
    with account.warehouse.open_for_reading() as connection:
        return connection.execute("select outcome, message from sync.runs").fetchall()[0]


def test_an_asset_begins_when_those_it_comes_after_have_finished(account: Account) -> None:
    gate = threading.Event()
    first = asset("first", waits=gate)
    second = asset("second", first)
    reader = make_reader(account, second, first)
    reader.begin_reading()
    assert set(reader.results) == {("first", "main")}
    gate.set()
    assert [loaded.name for loaded in reader.as_loaded()] == ["first", "second"]
    assert reader.list_missing_reasons() == {}


def test_an_asset_without_known_requests_is_still_being_read(account: Account) -> None:
    gate = threading.Event()
    reader = make_reader(account, asset("planning", waits=gate))
    reader.begin_reading()
    assert reader.progress() == ("reading", 0, 0, "planning")
    gate.set()
    reader.finish_reading()
    assert reader.progress() == ("loading", 1, 1, "")


def test_a_failed_asset_stops_no_other_and_makes_the_run_partial(account: Account) -> None:
    reader = read(account, asset("bad", fails=[Refused("no such thing")]), asset("good"))
    assert reader.list_missing_reasons() == {("bad", "main"): ["no such thing"]}
    assert outcome(account, reader) == ("partial", "bad, account main: no such thing")


def test_what_comes_after_a_failed_asset_is_read_all_the_same(account: Account) -> None:
    bad = asset("bad", fails=[Refused("no")])
    reader = read(account, bad, asset("next", bad))
    assert reader.results["next", "main"].error is None
    assert account.requested == ["socialmedia/stats channels=all"]


@pytest.mark.parametrize(
    ("fails", "is_missing"),
    [
        ([Unreachable("reset", was_sent=True)], False),
        ([Unreachable("reset", was_sent=True)] * 2, True),
        ([Refused("no")], True),
    ],
    ids=["transient once", "transient twice", "refused once"],
)
def test_a_transient_error_gets_one_more_try(
    account: Account, fails: list[Exception], is_missing: bool
) -> None:
    reader = read(account, asset("asset", fails=fails))
    assert bool(reader.list_missing_reasons()) is is_missing


def test_every_asset_failing_fails_the_run(account: Account) -> None:
    reader = read(account, asset("one", fails=[Refused("no")]), asset("two", fails=[Refused("no")]))
    assert outcome(account, reader) == ("failed", "one, two, account main: no")


def test_a_mistake_in_one_asset_is_an_error_without_the_values_it_choked_on(account: Account) -> None:
    reader = read(account, asset("bad", fails=[KeyError("ada@example.com")]), asset("good"))
    (lines,) = reader.list_missing_reasons().values()
    assert lines[0].startswith("something unexpected happened: KeyError")
    assert "ada@" not in lines[0]


def test_another_business_stops_every_later_asset_of_the_account(account: Account) -> None:
    first = asset("first", fails=[OtherBusiness("another business")])
    reader = read(account, first, asset("next", first))
    assert account.requested == []
    assert all(result.error is not None for result in reader.results.values())


def test_an_operation_that_the_account_lacks_fails_no_night(account: Account) -> None:
    reader = read(account, asset("asset", fails=[NotAvailable("not in this package")]))
    (result,) = reader.results.values()
    assert result.missing_reasons == ["not in this package"]
    assert not result.is_failure


def test_a_stopped_run_raises_and_is_cut_short(account: Account) -> None:
    gate = threading.Event()
    first = asset("first", waits=gate)
    reader = make_reader(account, first, asset("second", first))
    reader.begin_reading()
    reader.stop_fetching()
    gate.set()
    with pytest.raises(Stopped):
        reader.finish_reading()
    reader.stop()
    kind, message = outcome(account, reader)
    assert kind in ("partial", "failed")
    assert "it ended before everything was read" in message


def test_what_the_resumed_run_has_read_is_not_read_again(account: Account) -> None:
    first = asset("first")
    reader = make_reader(account, first, asset("second", first))
    reader.begin_reading(read_before=["first"])
    reader.finish_reading()
    assert account.requested == ["socialmedia/stats channels=all"]


def test_what_most_wait_for_goes_first(account: Account) -> None:
    gate = threading.Event()
    plain = asset("plain", waits=gate)
    needed = asset("needed", waits=gate)
    reader = make_reader(account, plain, needed, asset("next", needed), asset("last", needed))
    reader.begin_reading()
    assert [name for name, _ in reader.results] == ["needed", "plain"]
    gate.set()
    reader.finish_reading()
