"""Answers with a token in every place for personal data, loaded, modelled and published like real ones."""

import copy
import datetime as dt
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from marketing_api.operations import find
from tests.marketing_api.samples import SAMPLES
from tests.warehouse.answering import START, Home
from warehouse.connection import open_database
from warehouse.models import build_models
from warehouse.tables import TABLES

_NAMES = {"contactName", "fullname", "screenname", "username", "from_name", "profile"}
_MAILS = {"email", "replyto", "reply_to", "from_email", "notify_email"}
_PHONES = {"phone", "phoneNumber"}
_WORDS = {"inquiry", "notes", "snippet"}
#: Texts of ours: they hold links.
_TEXTS = {"message", "confimation_email", "success_email", "success_message", "confimation_message",
          "error_message"}  # fmt: skip
#: Texts of ours in which somebody may be addressed: everything else in them is shown.
_NAMED = {"subject", "name", "title", "form_title", "email_subject", "label", "package", "businessName",
          "couponcode", "event_link_rule", "campaign", "medium", "term", "interval"}  # fmt: skip
_SPELLINGS = ("@", "%40", "%2540", "%252540", "\\u0040", "&#64;", "&#x40;", "&commat;", "&amp;#64;", "\uff20")
_DETAILS = ("subject", "message", "name", "first-name", "phone", "sender", "to", "ip", "browser", "place", "note", "coupon", "open-date",
            "send-date", "click-date", "links-clicked", "any-other-key")  # fmt: skip


#: What every part of a token begins with, in lower case: no part has to be whole to be found.
TOKEN = re.compile(r"zq\d{4}|7731\d{6}")


@dataclass
class Planter:
    """Tokens, each with the place where it was planted."""

    places: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def token(self, place: str, form: str = "zq{:04d}") -> str:
        token = form.format(next(self._numbers))
        self.places[token] = place
        return token

    def name(self, place: str) -> str:
        token = self.token(place).capitalize()
        return f"{token}First {token}Last"

    def mail(self, place: str) -> str:
        token = self.token(place)
        return f"{token}mail@{token}dom.example"

    def spelled(self, place: str) -> str:
        """An address in another spelling each time."""
        spelling = _SPELLINGS[len(self.places) % len(_SPELLINGS)]
        return self.mail(f"{place} ({spelling})").replace("@", spelling)

    def phone(self, place: str) -> str:
        return f"+49 {self.token(place, '7731{:06d}')}"

    def words(self, place: str) -> str:
        return f"{self.name(place)} was here, call {self.phone(place)} or write to {self.mail(place)}"

    def link(self, url: str, place: str) -> str:
        """A name in the query, one encoded, a bare one, one of a user, an address in the path, a fragment."""
        scheme, _, rest = url.partition("://")
        user, query, bare, end = (
            self.token(f"{place}, {part}") for part in ("user", "query", "bare", "fragment")
        )
        return (
            f"{scheme}://{user}@{rest}/{self.mail(place + ', path').replace('@', '%40')}/a?utm_source=mail&name={query}%20x&{bare}"
            f"&mail={self.mail(place + ', query').replace('@', '%40')}#{end}"
        )


def planted(value: Any, plant: Planter, place: str, key: str = "") -> Any:
    """The sample with tokens in place of what may be personal, and a field more that nobody knows."""
    if isinstance(value, list):
        return [planted(item, plant, place, key) for item in value]
    if isinstance(value, dict):
        made = {name: planted(item, plant, f"{place}.{name}", name) for name, item in value.items()}
        is_map = key in ("details", "fields", "clicks", "stats", "utm")
        is_entry = any(isinstance(item, str) for item in value.values()) and not is_map
        if not is_entry or {"key", "items", "timeline"} & value.keys():
            return made
        made["unknown_field"] = plant.words(f"{place}.unknown_field")
        made[plant.spelled(f"{place}, name of a field")] = "x"
        if key != "SocialMedia":  # its names are those of networks
            made[plant.name(f"{place}, name of a field")] = "x"
        return made
    if key == "clickers" and isinstance(value, str):
        return f"{plant.mail(place)}({value.partition('(')[2]}"
    if isinstance(value, str) and value.startswith("https://"):
        return plant.link(value, place)
    if key in _MAILS:
        return plant.mail(place)
    if key in _NAMES:
        return plant.name(place)
    if key in _PHONES:
        return plant.phone(place)
    if key in _WORDS:
        return plant.words(place)
    if key in _NAMED and isinstance(value, str):
        return f"{value} for {plant.spelled(place)}, then"
    if key in _TEXTS and isinstance(value, str):
        one, other = (plant.link(f"https://corner.example/{page}", place) for page in "xy")
        return f'Look: {one} or <a href="{other}">here</a>'
    return value


def _timeline(plant: Planter) -> dict[str, Any]:
    """Messages of each kind: with our subject, with a name in it, as text message; details of every key."""
    data = planted(SAMPLES["emailmarketing/getcontacttimeline"][0], plant, "timeline")
    plant.places.pop(TOKEN.findall(data.pop("email"))[0])  # it is in no column
    entries = data["timeline"]["data"]
    ours = [("subject", "Spring"), ("open-date", "11/05/2014 08:00")]
    ours += [("click-date", "11/05/2014 08:10"), ("links-clicked", "2")]
    entries.append(_event("email-campaign-sent", None, ours))
    named = [("subject", plant.words("timeline, a subject")), ("send-date", "11/05/2014 08:00")]
    entries.append(_event("email-campaign-sent", None, named, None))
    snippet = plant.words("timeline, text message")
    message = ("message", plant.words("timeline, its text"))
    entries.append(_event("sms-campaign-sent", snippet, [message]))
    for key in _DETAILS:
        entries.append(_event("mail-sent", None, [(key, plant.words(f"timeline, detail {key}"))]))
        details = [{"key": key, "value": plant.words(f"automation, {key}")}]
        run = {"name": "Welcome", "type": "email", "timestamp": 1415200000, "details": details}
        data["automated"]["data"].append(run)
    data["utm"]["data"].append({"link": "https://corner.example/menu", "timestamp": 1415178600})
    return data | {"id": 1001}


_numbers = iter(range(10_000))


def _event(
    key: str, snippet: str | None, details: list[tuple[str, str]], timestamp: int | None = 1415178000
) -> dict[str, Any]:
    listed = [{"key": name, "label": name, "value": value} for name, value in details]
    at = None if timestamp is None else timestamp + next(_numbers)
    return {"key": key, "snippet": snippet, "timestamp": at, "details": listed}


#: Listings whose rows the answer about a single one replaces, which has the same fields.
_REPLACED = ("emailmarketing/getlists", "goal/lists", "goal/listbydomain", "webhook/lists")


def fill(folder: Path) -> Planter:
    """A home with all of that, and what the loading and sending note of it."""
    plant, home = Planter(), Home(folder)
    for name, (sample, params) in SAMPLES.items():
        data = _timeline(plant) if name == "emailmarketing/getcontacttimeline" else copy.deepcopy(sample)
        if name == "emailmarketing/campaigns":
            groups = data["campaigns"]["items"]
            groups["Automation"] = planted(groups["Automation"], plant, name)
        elif name not in (*_REPLACED, "emailmarketing/getcontacttimeline"):
            data = planted(data, plant, name)
        if name == "emailmarketing/getcontacts":
            rejected = {"id": "not a number", "email": plant.mail("a rejected contact")}
            data["contacts"]["items"].append(rejected | {"status": plant.name("its status")})
        asked = dict(params)
        if name == "reputation/direct":
            asked = {"filter": "date", "from_": "2013-05-01", "to": "2013-05-31"}
        operation = find(name)
        tables = [table for table in TABLES.values() if table.record in operation.records]
        scope = {"from_on": asked["from_"], "to_on": asked["to"]} if "from_" in asked else {}
        home.load([home.answer(operation, data, **asked)], *tables, scope=scope)
    home.warehouse.finish_assets([("main", table) for table in TABLES])
    home.close()
    with open_database(folder / "warehouse.duckdb") as connection:
        for table, values in _sync(plant):
            columns = ", ".join(f"${name} as {name}" for name in values)
            connection.execute(f"insert into sync.{table} by name select {columns}", values)
        connection.execute("update sync.contact_coverage set email = ?", [plant.mail("contact_coverage")])
    report = build_models(folder / "warehouse.duckdb")
    assert not report.failure_summary, report.failure_summary
    return plant


def _sync(plant: Planter) -> Iterator[tuple[str, dict[str, Any]]]:
    """What other parts write, as they do: words of the service in errors, values of pushed rows."""
    at = START + dt.timedelta(days=1)
    main = {"account": "main", "request_id": 999_999}
    params = json.dumps({"email": plant.mail("requests.params")})
    asked = {"operation": "app/me", "requested_at": at, "error": plant.words("requests.error")}
    yield "requests", main | asked | {"params": params}
    run = {"run_id": "r", "job": "nightly_sync", "started_at": at}
    yield "runs", run | {"message": plant.words("runs.message")}
    load = {"load_id": "l", "account": "main", "error": plant.words("loads.error")}
    yield "loads", load | {"scope": json.dumps({"email": plant.mail("loads.scope")})}
    raw = json.dumps({"n": plant.words("rejected_records.raw")})
    scope = f"email={plant.mail('a scope')}"
    yield "rejected_records", main | {"table_name": "contacts", "scope": scope, "raw": raw}
    yield "contact_coverage", {"account": "main", "contact_id": 77}
    yield "writebacks", {"account": "main", "outbox_begun_at": at, "push_id": 1, "item_id": 1, "kind": "contacts", "state": "rejected",
                         "email": plant.mail("writebacks.email"), "message": plant.words("writebacks.message"),
                         "params": json.dumps({"fields[1]": plant.words("writebacks.params")}),
                         "drift": json.dumps({"fields[1]": [plant.words("writebacks.drift"), ""]})}  # fmt: skip
