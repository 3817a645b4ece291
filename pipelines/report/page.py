"""The whole page, from the data of all accounts to one HTML document. Not here: its parts (`sections`), reading (`data`)."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from pipelines.report import words
from pipelines.report.data import AccountData, ReportData
from pipelines.report.html import Child, Html, tag
from pipelines.report.parts import empty, figures
from pipelines.report.sections.campaigns import campaigns
from pipelines.report.sections.contacts import engagement, growth
from pipelines.report.sections.coupons import coupons
from pipelines.report.sections.freshness import freshness, warning
from pipelines.report.sections.overview import key_figures, what_changed
from pipelines.report.sections.reputation import reputation
from pipelines.report.sections.social import social
from pipelines.report.style import SHEET
from warehouse.loads.coverage import FRESH_FOR

_SECTIONS = (what_changed, campaigns, growth, engagement, reputation, social, coupons, freshness)
_PERSONAL = {
    "keep": "It holds personal data: pass it on with care.",
    "hash": "Personal data is left out.",
    "drop": "Personal data is left out.",
}


def render(report: ReportData) -> str:
    """A document of its own: no script, no font, picture or style from elsewhere."""
    accounts = report.accounts
    title = f"{accounts[0].title}: marketing report" if len(accounts) == 1 else "Marketing report"
    content: Child = [
        _jumps(report),
        [_account(account) for account in accounts] or empty("Nothing has been read yet. Run marketing-sync sync first."),
        _foot(report),
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(SHEET)),
    )
    body = tag("body", tag("main", content, look="sheet"), look="page")
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _jumps(report: ReportData) -> Child:
    """Over several accounts, a way to each."""
    if len(report.accounts) < 2:
        return None
    links = [tag("li", tag("a", account.title, href=f"#{account.name}", look="link"), look="jump") for account in report.accounts]
    return tag("nav", tag("ul", *links, look="jumps"), aria_label="Accounts")


def _account(account: AccountData) -> Html:
    head = tag(
        "header",
        tag("h1", account.title, look="title", id=account.name),
        tag("p", f"Marketing report for {words.day(account.today)} · {_as_of(account)}", look="lead", style="margin-top:6px"),
        warning(account),
    )
    return tag(
        "article",
        head,
        figures(*key_figures(account)),
        *(part(account) for part in _SECTIONS),
        look="account",
        aria_labelledby=account.name,
    )


def _as_of(account: AccountData) -> str:
    if account.as_of is None:
        return "no data yet"
    local, until = (moment.astimezone(ZoneInfo(account.zone)) for moment in (account.as_of, account.as_of + FRESH_FOR))
    shown = f"data as of {words.short_day(local)}, {local:%H:%M} {account.zone}"
    return f"{shown}, out of date from {words.short_day(until)}, {until:%H:%M} on"


def _foot(report: ReportData) -> Html:
    written = report.published.published_at.astimezone(dt.UTC)
    said = f"Made from the copy published on {words.day(written)}, {written:%H:%M} UTC. {_PERSONAL[report.published.personal_data]}"
    return tag("footer", said, look="foot")
