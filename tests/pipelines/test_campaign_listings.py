"""Campaigns in every form that the service may list them in (observations 39 and 40), over real HTTP,
night after night."""

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.sandbox.app import App, Rule
from marketing_api.sandbox.rules import NOT_VALID, CheckedCall, Refusal
from marketing_api.sandbox.seed import NEVER, WORDS
from marketing_api.sandbox.subscribers import Campaign
from pipelines.reading import open_reader
from tests.dialects.server import serve
from tests.fixtures import STANDING
from tests.pipelines.sandboxes import KEY, Dated, Sandbox, put_in
from tests.pipelines.tables import query
from tests.warehouse.selected import selected
from warehouse.models import build_models
from warehouse.rebuild import rebuild_warehouse

#: Whole nights read groups, and `tests/marketing_api/records/test_shapes.py` has all forms.
FORMS = ("observed", *(pytest.param(form, marks=pytest.mark.slow) for form in ("groups", "numbered", "list")))
LISTING, DETAIL = "emailmarketing/campaigns", "emailmarketing/getcampaign"


@dataclass
class Service:
    """A sandbox whose clock is that of who asks, too; `before` sees each call first, and may change the
    account or refuse it."""

    sandbox: Sandbox
    home: Path
    before: Callable[[CheckedCall], object] = lambda _: None
    calls: list[CheckedCall] = field(default_factory=list)
    learnt: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def respond(self, call: CheckedCall, rule: Rule) -> Any:
        self.calls.append(call)
        self.before(call)
        return rule(call)

    def read(self, *assets: str) -> list[str]:
        """One sync of the campaigns and these; returns its problems."""
        self.calls.clear()
        settings = Settings(self.home, (Connection("main", self.sandbox.url, Secret(KEY)),))
        with open_reader(
            settings, [SOURCE_ASSETS[name] for name in ("campaigns", "campaign_stats", *assets)]
        ) as reader:
            reader.begin_reading()
            reader.finish_reading()
            reader.note_run("again", "nightly_sync")
            self.learnt = [line for result in reader.results.values() for line in result.learnt]
            self.notices = [line for line in reader.list_notices() if "clock shows" not in line]
            return [line for lines in reader.list_missing_reasons().values() for line in lines]

    def requests(self) -> Counter[str]:
        return Counter(call.operation.name for call in self.calls)

    @property
    def campaigns(self) -> list[Campaign]:
        call = self.calls[-1]
        return list(call.world.find_campaigns(call.now).values())

    def change(self, campaign: Campaign, **members: Any) -> None:
        call = self.calls[-1]
        for name, value in members.items():
            setattr(campaign, name, value)
        call.world.schedule(campaign, call.now)

    def in_group(self, group: str) -> list[Campaign]:
        return [one for one in self.campaigns if one.group(self.calls[-1].now) == group]

    def known(self, *columns: str) -> dict[int, tuple[Any, ...]]:
        names = ", ".join(columns)
        found = query(
            self.home, f"select campaign_id, {names} from source.campaigns where _deleted_at is null"
        )
        assert len({key for key, *_ in found}) == len(found)
        return {key: tuple(values) for key, *values in found}


@pytest.fixture
def service(home: Path, empty_tables: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(App, "respond", Dated.dated)
    shutil.copy(empty_tables, prepare_home(home))
    with serve(STANDING) as url:
        made = Service(Sandbox(url), home)
        put_in(monkeypatch, made.respond)
        yield made


def statuses(service: Service) -> dict[int, tuple[str, str]]:
    now = service.calls[-1].now
    return {
        one.campaign_id: (one.group(now).lower(), "automated" if one.is_automated else "standard")
        for one in service.campaigns
    }


def delivery(service: Service, campaign: Campaign) -> tuple[Any, ...]:
    call = service.calls[-1]
    counts = campaign.count_mails(call.now)
    sent_at = (
        dt.datetime.fromtimestamp(campaign.sent_at // 60 * 60, dt.UTC)
        if campaign.group(call.now) == "Sent"
        else None
    )
    return campaign.name, sent_at, counts["sent"] - counts["bounced"], counts["bounced"]


def counted(service: Service) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
    """What the newest statistics are of each campaign by the account itself, and how many clicked on
    which."""
    call = service.calls[-1]
    counts = {one.campaign_id: one.count_mails(call.now) for one in service.campaigns}
    clickers = {
        one.campaign_id: sum(mail.clicked_at <= call.now for mail in one.mails) for one in service.campaigns
    }
    told = {key: (each["opened"], each["bounced"], each["unsubscribed"]) for key, each in counts.items()}
    return told, {key: count for key, count in clickers.items() if count}


def loaded(service: Service) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
    newest = "qualify row_number() over (partition by campaign_id order by observed_on desc) = 1"
    columns = "campaign_id, opened_count, bounced_count, unsubscribed_count"
    stats = query(service.home, f"select {columns} from source.campaign_stats {newest}")
    clickers = (
        "select campaign_id, count(distinct email) from source.campaign_clickers where "
        "_deleted_at is null "
        "group by all"
    )
    return {key: tuple(values) for key, *values in stats}, dict(query(service.home, clickers))


@pytest.mark.parametrize("form", FORMS)
def test_two_nights_are_the_account_whatever_the_form(service: Service, form: str) -> None:
    service.sandbox.control("switches", **{"campaign-groups": form})
    for night in (1, 2):
        assert (service.read(), service.learnt, service.notices) == ([], [], [])
        assert {entry["outcome"] for entry in service.sandbox.asked()} == {"ok"}
        assert service.requests()[LISTING] <= 10
        assert night == 2 or service.requests()[DETAIL] == len(service.campaigns)
        assert service.known("status", "type") == statuses(service)
        told = {one.campaign_id: delivery(service, one) for one in service.campaigns}
        nothing = dict.fromkeys(told, (None,) * 4)
        assert service.known("name", "sent_at", "delivered_count", "failed_count") == (
            told if form == "observed" else nothing
        )
        assert loaded(service) == counted(service)
        service.sandbox.control("advance", days=1)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["groups", "observed"])
def test_a_campaign_that_is_sent_between_two_listings_is_there_once(service: Service, form: str) -> None:
    """One before each of three listings."""
    service.sandbox.control("switches", **{"campaign-groups": form})
    assert service.read() == []
    filters, count = ("automation", "scheduled", "sent"), len(service.campaigns)
    for draft in service.in_group("Draft"):
        service.change(draft, scheduled_at=service.calls[-1].now - 120)
    moving = dict(zip(filters, service.in_group("Scheduled")[:3], strict=True))

    def send(call: CheckedCall) -> None:
        if call["filter"] in moving:
            service.change(moving[call["filter"]], sent_at=call.now - 60, scheduled_at=call.now - 120)

    service.before = send
    assert service.read() == []
    assert len(service.known("status")) == count
    assert {service.known("status")[one.campaign_id] for one in moving.values()} == {("sent",)}
    loaded = service.known("status", "type", "sent_at")
    rebuild_warehouse(service.home)
    assert service.known("status", "type", "sent_at") == loaded


def test_a_campaign_that_goes_back_between_two_listings_is_there_once(service: Service) -> None:
    service.sandbox.control("switches", **{"campaign-groups": "observed"})
    assert service.read() == []
    moving, count = service.in_group("Scheduled")[0], len(service.campaigns)
    draft = {"scheduled_at": NEVER, "sent_at": NEVER}
    service.before = lambda call: service.change(moving, **draft) if call["filter"] == "scheduled" else None
    assert service.read() == []
    assert len(service.known("status")) == count
    assert moving.campaign_id in service.known("status")
    service.before = lambda _: None
    assert service.read() == []
    assert service.known("status")[moving.campaign_id] == ("draft",)


def test_a_filter_that_is_refused_costs_what_it_alone_tells(service: Service) -> None:
    service.sandbox.control("switches", **{"campaign-groups": "list"})

    def refuse(call: CheckedCall) -> None:
        if call["filter"] == "draft":
            raise Refusal(NOT_VALID, "not known here")

    service.before = refuse
    assert service.read() == []
    known = statuses(service)
    assert service.known("status") == {
        key: (None if status == "draft" else status,) for key, (status, _) in known.items()
    }


def test_a_second_sync_asks_the_listing_again_behind_details_that_fail(service: Service) -> None:
    def refuse(call: CheckedCall) -> None:
        if call.operation.name == DETAIL and call.id() % 7 < 3:
            raise Refusal(NOT_VALID, "not now")

    service.before = refuse
    for _ in range(2):
        assert any("refused" in line for line in service.read())
        assert service.notices == []
        assert service.requests()[LISTING] == 10
    service.before = lambda _: None
    assert service.read() == []
    assert None not in {message for (message,) in service.known("message").values()}


@pytest.fixture
def newsletter(monkeypatch: pytest.MonkeyPatch) -> None:
    """All campaigns have one subject; each is created before the one before it is sent."""
    monkeypatch.setitem(WORDS, "campaigns", [["Digest", "News."]])


@pytest.mark.usefixtures("newsletter")
@pytest.mark.slow
def test_a_newsletter_that_always_has_one_subject_is_matched_by_its_sending(service: Service) -> None:
    service.sandbox.control("switches", **{"campaign-groups": "observed"})
    assert service.read("business", "lists", "contacts", "timelines") == []
    assert not build_models(
        service.home / "warehouse.duckdb", select=selected("+campaign_performance", "stg_contacts")
    ).failure_summary
    ((every, matched),) = query(
        service.home,
        "select count(*), count(campaign_id) from marts.contact_campaign where kind = 'standard'",
    )
    assert matched >= 0.99 * every > 100
    told = "select campaign_id, sent_at from source.campaigns where status = 'sent' order by all"
    assert query(service.home, told.replace("source.campaigns", "marts.campaign_performance")) == query(
        service.home, told
    )
    wrong = "abs(date_diff('minute', message.sent_at, campaign.sent_at)) > 1"
    pairs = "marts.contact_campaign message join source.campaigns campaign using (account, campaign_id)"
    assert query(service.home, f"select count(*) from {pairs} where kind = 'standard' and {wrong}") == [(0,)]
