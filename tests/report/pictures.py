"""Pictures of the report, to look at: a page and its mail for each state of an account, as wide as a desktop
and as a phone, light, dark and printed.

    .venv/bin/python -m tests.report.pictures FOLDER [STATE…]

writes `FOLDER/STATE.html`, `STATE-mail.html` and their pictures. It needs Chromium. Without states it makes all of
`STATES`; `hundredth` takes five minutes. Accounts are kept in `FOLDER/homes`: remove it to sync them again."""

import datetime as dt
import os
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from marketing_api import clock
from marketing_api.sandbox.app import App
from report.queries import AccountData, ReportData, mark_namesakes, read_report
from report.render import load_environment, render_report
from tests.attack.nights import sync
from tests.dialects.server import Options, serve
from tests.independent import generate
from tests.independent import server as independent
from tests.pipelines.browser import Browser, browser
from tests.pipelines.sandboxes import Dated, Sandbox
from warehouse.models import ModelSettings, build_models
from warehouse.publish import publish_copy, published_path

WIDTHS = {"desktop": 1400, "phone": 390}


class ClockBehind:
    """The module `time`, `days` before it was made: like a sandbox's clock it stands still."""

    def __init__(self, days: int) -> None:
        self.days, self.now = days, time.time()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return self.now - self.days * 86_400


def publish(home: Path) -> None:
    build_models(home / "warehouse.duckdb", ModelSettings())
    publish_copy(home)


def read_nights(home: Path, nights: int, contacts: int, **options: Any) -> None:
    """Sync a sandbox each night up to now, and publish."""
    machine = ClockBehind(nights - 1)
    with patch.object(clock, "time", machine), patch.object(App, "respond", Dated.dated):
        chosen = Options(contacts=contacts, rate_limit=0, now=int(machine.time()), **options)
        with serve(chosen) as url:
            for left in reversed(range(nights)):
                machine.days = left
                sync(home, url)
                Sandbox(url).control("advance", days=1 if left else 0)
        publish(home)


def read_nothing(home: Path) -> None:
    """Sync an account without contacts, campaigns and reviews."""
    with independent.serve(generate.account(103, generate.Sizes.nothing(), zone=None), limit=500) as service:
        sync(home, service.url, service.account.key)
    publish(home)


HOMES: dict[str, Callable[[Path], None]] = {
    "first": lambda home: read_nights(home, 1, 150),
    "second": lambda home: read_nights(home, 2, 150),
    "hundredth": lambda home: read_nights(home, 100, 60),
    "empty": read_nothing,
    "one-contact": lambda home: read_nights(home, 2, 1),
}


def with_rows(account: AccountData, name: str = "", **rows: list[dict[str, Any]]) -> AccountData:
    return replace(account, name=name or account.name, rows=account.rows | rows)


def many_lists(account: AccountData) -> AccountData:
    """As `lists.sql` cuts thirty lists."""
    size = {"size": 1_234, "active_size": 1_100, "joined_count": 12, "left_count": 3, "moved_count": -2}
    names = [f"Guests of {place}" for place in ("the harbor", "the old town", "Donaudampfschifffahrt") * 4]
    return with_rows(account, lists=[{"name": name} | size for name in [*names, "18 other lists"]])


def long_names(account: AccountData) -> AccountData:
    """Names and subjects as long as people write them, and some that are too long."""
    words = "Grand opening of our second restaurant at the harbor, with live music and a free dessert for everybody "
    names = [words, "Donaudampfschifffahrtsgesellschaft" * 3, "<b>Sale</b> & more " * 9, "משלוח חינם " * 12]
    renamed = {
        key: [
            {
                column: names[place % 4]
                if isinstance(value, str) and column in ("subject", "name", "message", "link", "inquiry")
                else value
                for column, value in row.items()
            }
            for place, row in enumerate(account.rows[key])
        ]
        for key in (
            "campaigns",
            "lists",
            "posts",
            "reviews",
            "lifecycle_messages",
            "lifecycle_regained",
            "waiting",
        )
    }
    business = [{"business_name": words, "timezone": "UTC"}]
    return with_rows(account, business=business, **renamed)


def refused(account: AccountData) -> AccountData:
    """A refused listing, and data that could not be read."""
    broken = {"coverage_rate": 0.3, "rejected_count": 12, "reason": "HTTP 500 from the service"}
    freshness = [
        row | broken if row["subject"] == "contact timelines" else row for row in account.rows["freshness"]
    ]
    names = (
        {"table_name": "contacts", "list_name": "Newsletter"},
        {"table_name": "goals", "list_name": None},
    )
    return with_rows(account, refused=list(names), freshness=freshness)


#: State → its home, and its accounts, made of the home's account.
STATES: dict[str, tuple[str, Callable[[AccountData], list[AccountData]]]] = {
    **{home: (home, lambda account: [account]) for home in HOMES},
    "long-names": ("second", lambda account: [long_names(account)]),
    "lists": ("second", lambda account: [many_lists(account)]),
    "namesakes": ("second", lambda account: [account, with_rows(account, "south")]),
    "overview": (
        "second",
        lambda account: (
            [
                with_rows(account, name, business=[{"business_name": f"Bistro {name}", "timezone": "UTC"}])
                for name in ("north", "south", "east")
            ]
            + [with_rows(refused(account), "west", business=[])]
        ),
    ),
    "refused": ("second", lambda account: [refused(account)]),
}


def read_state(folder: Path, state: str) -> ReportData:
    name, derive = STATES[state]
    home = folder / "homes" / name
    if not published_path(home).exists():
        HOMES[name](home)
    report = read_report(published_path(home), dt.datetime.now(dt.UTC))
    return replace(report, accounts=mark_namesakes(derive(report.accounts[0])))


def take_pictures(tab: Browser, page: Path) -> None:
    """The whole page in each width and scheme, and its print."""
    tab.open(page.as_uri())
    for name, width in WIDTHS.items():
        for scheme in ("light", "dark"):
            tab.call(
                "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
            )
            screen = {"width": width, "deviceScaleFactor": 1, "mobile": name == "phone"}
            tab.call("Emulation.setDeviceMetricsOverride", height=900, **screen)
            made = tab.call("Page.captureScreenshot", captureBeyondViewport=True)
            page.with_name(f"{page.stem}-{name}-{scheme}.png").write_bytes(b64decode(made["data"]))
            overflow = tab.run("document.documentElement.scrollWidth - innerWidth")
            if overflow > 0:
                print(f"{page.name}, {name}: {overflow} px too wide")
    page.with_suffix(".pdf").write_bytes(
        b64decode(tab.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.7)["data"])
    )


def main(target: str, *states: str) -> None:
    folder = Path(target).absolute()
    mail = load_environment().get_template("mail.html")
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        for state in states or STATES:
            report = read_state(folder, state)
            page, mailed = folder / f"{state}.html", folder / f"{state}-mail.html"
            page.write_text(render_report(report), encoding="utf-8")
            mailed.write_text(mail.render(report=report), encoding="utf-8")
            take_pictures(tab, page)
            take_pictures(tab, mailed)
            print(state, flush=True)


if __name__ == "__main__":
    os.environ.pop("MARKETING_HOME", None)
    main(*sys.argv[1:])
