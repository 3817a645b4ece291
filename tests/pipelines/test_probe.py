"""`doctor --probe`: every deviation of a service from what is expected is found, and nothing else, without a
value of a response."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marketing_api.exchange import Connection
from marketing_api.expected import reads, types
from marketing_api.operations import ALL
from marketing_api.records.reputation import SentimentTotals
from marketing_api.redaction import Secret
from marketing_api.sandbox.options import DEFAULT_KEY, Options
from marketing_api.sandbox.server import serve
from marketing_api.sandbox.switches import AS_OBSERVED, SWITCHES
from pipelines.commands.probe import MOST_REQUESTS, Probe
from tests.fixtures import Command
from tests.independent.account import Account
from tests.independent.generate import Sizes, account
from tests.independent.server import Service
from tests.independent.server import serve as serve_independent

#: Without a limit, a sandbox says that it has a very high one, which is a deviation.
_UNLIMITED = {
    ("every operation", "rate-limit, the body: limit"),
    ("every operation", "rate-limit, the headers: limit"),
}
_NUMBERS = {
    "page-cap": "7",
    "timeline-cut": "3",
    "series-cut": "5",
    "goal-decimals": "4",
    "sync-delay": "1",
    "activity-delay": "1",
}
#: Switches that contradict the specification where it leaves nothing open.
_CONTRADICTIONS = {
    "page-ignored": {("emailmarketing/campaigns", "page"), ("socialmedia/calendar", "page")},
    "limit-ignored": {("socialmedia/calendar", "limit")},
}


def probed(url: str, key: str) -> Probe:
    probe = Probe(Connection("main", url, Secret(key)))
    probe.run()
    assert probe.requests <= MOST_REQUESTS
    return probe


def places(probe: Probe) -> set[tuple[str, str]]:
    return {(each.operation, each.place) for each in probe.deviations} - _UNLIMITED


def dialects() -> list[tuple[str, dict[str, str]]]:
    single = [
        (name, value)
        for name, switch in SWITCHES.items()
        for value in switch.choices[1:] or [_NUMBERS.get(name, "1")]
    ]
    return [
        ("specified", {}),
        ("as observed", dict(AS_OBSERVED)),
        *((f"{name} {value}", {name: value}) for name, value in single),
    ]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("name", "switches"), dialects(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_no_dialect_of_the_sandbox_deviates(name: str, switches: dict[str, str]) -> None:
    with serve(Options(contacts=60, rate_limit=0, switches=switches)) as url:
        found = places(probed(url, DEFAULT_KEY))
    assert found == _CONTRADICTIONS.get(name.split()[0], set())


Change = Callable[[Any], Any]


def at(path: str, change: Change) -> Change:
    """Changes what stands at the path in `response.data`; `*` is every member or entry."""

    def changed(value: Any, steps: list[str]) -> Any:
        if not steps:
            return change(value)
        step, *rest = steps
        if isinstance(value, list):
            return [changed(each, rest) for each in value]
        if isinstance(value, dict):
            return {
                name: changed(each, rest) if step in ("*", name) else each for name, each in value.items()
            }
        return value

    return lambda document: (
        document
        | {
            "response": document["response"]
            | {"data": changed(document["response"]["data"], path.split("."))}
        }
    )


def put(value: Any) -> Change:
    return lambda _: value


def without(name: str) -> Change:
    return lambda entry: (
        {key: value for key, value in entry.items() if key != name} if isinstance(entry, dict) else entry
    )


def beside(**more: Any) -> Change:
    return lambda entry: entry | more if isinstance(entry, dict) else entry


def on_top(**more: Any) -> Change:
    return lambda document: document | more


#: By operation (None: all): what is planted, and the place where it has to be found.
PLANTED: list[tuple[str, Change, str]] = [
    ("app/me", at("business.businessName", put(["a"])), "business.businessName"),
    ("app/me", at("business", without("package")), "business.package"),
    ("app/me", at("business", beside(plan="x")), "business.plan"),
    ("app/me", at("business", beside(timezone="Mars/Olympus")), "business.timezone"),
    ("emailmarketing/getlists", at("lists.items.*.doubleOptin", put("perhaps")), "lists.items[].doubleOptin"),
    ("emailmarketing/getlists", at("lists", without("count")), "lists.count"),
    ("emailmarketing/getlist", at("list.fields", put("none")), "list.fields"),
    (
        "emailmarketing/getcontacts",
        at("contacts.items.*.registration_date", put("20260102T030405Z")),
        "contacts.items[].registration_date",
    ),
    ("emailmarketing/getaudiences", at("audiences.items.*.id", put("a-12x")), "audiences.items[].id"),
    ("emailmarketing/getcontacts", at("contacts.items.*.status", put(True)), "contacts.items[].status"),
    ("emailmarketing/getcontact", at("contact", without("email")), "contact.email"),
    (
        "emailmarketing/getcontacttimelinebyemailaddress",
        at("timeline.data.*.timestamp", put(1_000_000_000)),
        "datetime",
    ),
    (
        "emailmarketing/getcontacttimelinebyemailaddress",
        at("timeline.data.*.key", put({"name": "x"})),
        "data.timeline.data[].key",
    ),
    ("emailmarketing/getcontacttimeline", at("timeline", without("total")), "data.timeline.total"),
    (
        "emailmarketing/getcontacttimelinebyemailaddress",
        at("timeline.data.*.details", put("none")),
        "data.timeline.data[].details",
    ),
    ("emailmarketing/getcontactbyemail", at("contact", put("somebody")), "response"),
    ("emailmarketing/getaudiences", at("audiences.count", put(999)), "count"),
    (
        "emailmarketing/campaigns",
        at("campaigns.items.*.data.*.creation_date", put("2 Jan 2026")),
        "campaigns.items{}.data[].creation_date",
    ),
    (
        "emailmarketing/campaigns",
        at("campaigns.items.*.data.*", beside(opens=3)),
        "campaigns.items{}.data[].opens",
    ),
    ("emailmarketing/stats", at("campaign.stats.open", put("eleven")), "campaign.stats.open"),
    ("emailmarketing/stats", at("campaign.stats", without("bounced")), "campaign.stats.bounced"),
    ("emailmarketing/stats", at("campaign.clicks", put({"total": 3})), "campaign.clicks"),
    ("reputation/direct", at("reviews.items.*.date", put("02.01.2026")), "reviews.items[].date"),
    ("reputation/direct", at("reviews.items.*.time", put("3 o'clock")), "reviews.items[].time"),
    ("reputation/online", at("reviews.items.*.AvgRating", put("five")), "reviews.items{}.AvgRating"),
    ("reputation/sentiment", at("sentiment.items", put([1])), "sentiment.items"),
    ("reputation/stats", at("stats.Reviews.*.good", put("many")), "stats.Reviews[].good"),
    ("socialmedia/channels", at("channels.*.count", put("some")), "channels{}.count"),
    ("socialmedia/stats", at("stats.items.*.clicks.*", put("some")), "stats.items[].clicks{}"),
    ("user/groups", at("groups.items.*.name", put(3.5)), "groups.items[].name"),
    ("goal/lists", at("goals.items.*.goal_value.value", put("1.000,00")), "goals.items[].goal_value.value"),
    ("webhook/lists", at("webhooks.items.*.url.link", put([])), ""),
    ("user/managers", on_top(signature="x"), "signature"),
    (
        "user/managers",
        lambda document: {"response": document["response"] | {"notice": "x"}},
        "response.notice",
    ),
    (
        "user/managers",
        at("users.items.*", beside(**{"ann@example.com": 1})),
        "users.items[].(a name that is not shown)",
    ),
    (
        "goal/show",
        lambda document: {"response": {"header": {"status": "error"}, "data": {"errorCode": 1003}}},
        "response",
    ),
    (
        "user/groups",
        lambda document: {"response": document["response"] | {"data": {"group": []}}},
        "response",
    ),
]
_SIZES = Sizes(contacts=60)


class Planted(Service):
    """An independent server of which some responses are changed."""

    changes: dict[str, list[Change]]

    def answer(self, operation: str, params: dict[str, Any]) -> tuple[int, dict[str, str], bytes, str]:
        status, headers, body, fault = super().answer(operation, params)
        for change in self.changes.get(operation, []):
            body = json.dumps(change(json.loads(body))).encode()
        return status, headers, body, fault


@pytest.fixture(scope="module")
def made() -> Account:
    return account(5, _SIZES)


def planted(made: Account, changes: dict[str, list[Change]]) -> Probe:
    with serve_independent(made) as service:
        service.__class__, service.changes = Planted, changes  # type: ignore[attr-defined]
        return probed(service.url, made.key)


def test_the_independent_server_does_not_deviate(made: Account) -> None:
    assert places(planted(made, {})) == set()


@pytest.mark.parametrize(
    ("operation", "change", "place"), PLANTED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_planted_deviation_is_found_and_nothing_else(
    made: Account, operation: str, change: Change, place: str
) -> None:
    found = planted(made, {operation: [change]})
    assert places(found) == ({(operation, place)} if place else set())


def test_the_report_has_no_value_of_a_response(made: Account) -> None:
    """No word of more than three letters that stands in a response and is not a name of a member."""
    bodies: list[bytes] = []

    def keep(document: Any) -> Any:
        bodies.append(json.dumps(document["response"]["data"]).encode())
        return document

    report = planted(made, {name: [keep] for name in reads()}).report()
    values = {value for body in bodies for value in re.findall(r': "([^"]{4,})"', body.decode())}
    words = set(re.findall(r"[\w@.+-]{4,}", report))
    assert not {value for value in values if "@" in value and value in report}
    assert made.key not in report
    assert not {value for value in values & words if not value.isalpha()} - {f"{dt.date.today()}"}


def test_every_name_on_the_wire_is_expected() -> None:
    """Where a column is read from a member of another name, that name is declared."""
    declared = {member.name.lower() for members in types().values() for member in members}
    for operation in ALL.values():
        for record in operation.records:
            for name, info in record.model_fields.items():
                if (alias := info.validation_alias) is not None and record is not SentimentTotals:
                    wire = {name, *(str(choice).lower() for choice in alias.choices)}  # type: ignore[union-attr]
                    assert wire & declared, f"{record.__name__}.{name}: none of {wire}"


def test_nothing_is_requested_unless_somebody_agrees(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "n")
    ran = command("doctor", "--probe")
    assert ran.code == 1
    assert "nothing was requested" in ran.err
    assert not list(home.glob("logs/probe-*"))
