"""The guide `docs/marts.md`, written from the models' descriptions: `python -m warehouse.marts_page`.

What a mart answers stands in its yml: the description (which says "One row per …"), the columns, and under `config: meta: questions`
the questions with a query for each. What a figure means stands in `models/definitions.md`, where descriptions take it from.
Not here: any fact about a mart. Tests fail when the page is stale, and run every query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from warehouse.masking import is_personal
from warehouse.tables import TABLES

PAGE = Path(__file__).parents[1] / "docs" / "marts.md"
_MODELS = Path(__file__).parent / "models"
_DEFINITION = re.compile(r"{% docs (\w+) %}(.+?){% enddocs %}", re.DOTALL)
_NAMED = re.compile(r"{{ doc\('(\w+)'\) }}")
_GRAIN = re.compile(r"(?:^|(?<= ))One row per [^.]+\.\s*")

_INTRO = """\
# Marts

Written by `python -m warehouse.marts_page` from the yml files in `warehouse/models/`; change it there.

`marts` holds answers, made anew from `source` every night: {count} tables. They stand in the published file,
`published/marketing.duckdb`, which is never locked; the same texts are COMMENTs in it.

- Every table begins with `account`. With several accounts, filter by it or group by it.
- Rates (`_rate`) lie between 0 and 1. They are NULL where there is nothing to divide by, and where the service's counts contradict
  each other (more clickers than mails); the counts stand beside them.
- NULL is "not known", 0 is "none".
- `_at` is a time in UTC, `_on` a date in the account's time zone.
- `_change` is what was added to a total since it was asked before. Nights that are missing are not made up: a change stands on the day
  it was seen, and `days_covered` says over how many days it came about.
- *Personal* marks columns that are hashed or dropped in the published file when the settings say so.
- Columns that begin with `_` are for the building.

## Definitions

A name means the same in every mart. Written from `warehouse/models/definitions.md`.

| | |
|---|---|
{definitions}

## Marts
"""

_CANNOT_TELL = """\

## What this service cannot tell

- **Who opened: a person or a machine.** An opening is a picture that was loaded. Apple Mail Privacy Protection loads pictures whether or
  not anybody reads the mail, and filters of companies open mails, and follow links, to check them; people who block pictures are not seen
  until they click. So an open rate compares campaigns and weeks with each other; it does not count readers.
  `contact_campaign.is_quick_open` marks openings in the minute of the sending or the one after, the usual sign of a machine (one that opens
  later is not marked). `click_rate`, `clicked_count` and `contact_engagement.click_engagement_tier` do without openings.
- **Whether a text message, a push message or anything but an e-mail was opened.** `is_opened` is NULL then, unless the timeline says so.
  Rates leave such messages out: what stands below the line are messages of which it can be known.
- **Complaints.** Who reports a mail as spam shows nowhere, or as unsubscribed.
- **Hard and soft bounces.** There is one count of bounces; whether an address is dead or a mailbox was full is not told.
- **Variants of a test.** The versions of an A/B test are not told apart: a campaign has one subject and one set of counts.
- **Whether openings are counted once per message.** Where a stated percentage contradicts its count, `is_percent_inconsistent` is set.
- **Which campaign a message of a timeline belongs to.** Timelines name subjects: `message_matching` counts how many find one campaign.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to know, and the query that tells."""

    ask: str
    sql: str


@dataclass(frozen=True)
class Mart:
    """One model as its yml describes it. `grain` is the sentence "One row per …", `key` the columns that identify a row."""

    name: str
    schema: str
    area: str
    description: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    questions: tuple[Question, ...]
    personal: frozenset[str]

    @property
    def grain(self) -> str:
        found = _GRAIN.search(self.description)
        return found.group().strip() if found else ""

    @property
    def text(self) -> str:
        """The description without its grain."""
        return _GRAIN.sub("", self.description).strip()


@cache
def definitions() -> dict[str, str]:
    """Name → what it means, in the order of the declaration."""
    declared = (_MODELS / "definitions.md").read_text(encoding="utf-8")
    return {name: " ".join(text.split()) for name, text in _DEFINITION.findall(declared)}


def _resolved(description: str) -> str:
    """The description with the definitions that it names, as dbt writes it into the file."""
    return " ".join(_NAMED.sub(lambda found: definitions()[found[1]], description).split())


def marts(schema: str = "marts") -> list[Mart]:
    """All models of a folder, by area in the order of the source tables, then by name."""
    areas = list(dict.fromkeys(table.area for table in TABLES.values()))
    found = [_mart(model, schema, content) for content in _contents(schema) for model in content.get("models") or ()]
    return sorted(found, key=lambda mart: (areas.index(mart.area), mart.name))


def _contents(schema: str) -> Iterator[dict[str, Any]]:
    for path in sorted((_MODELS / schema).rglob("*.yml")):
        yield yaml.safe_load(path.read_text(encoding="utf-8"))


def _mart(model: dict[str, Any], schema: str, content: dict[str, Any]) -> Mart:
    meta, name = model["config"]["meta"], model["config"].get("alias", model["name"])
    columns = tuple((column["name"], _resolved(column["description"])) for column in model["columns"])
    tests = [test["key"] for test in model.get("data_tests") or () if "key" in test]
    return Mart(
        name=name,
        schema=schema,
        area=meta["area"],
        description=_resolved(model["description"]),
        columns=columns,
        key=tuple(tests[0]["arguments"]["columns"]) if tests else (),
        questions=tuple(Question(one["ask"], one["sql"].strip()) for one in meta.get("questions") or ()),
        personal=frozenset(column for column, _ in columns if is_personal(schema, name, column)),
    )


def render() -> str:
    """The whole page."""
    every, history = marts(), marts("history")
    defined = "\n".join(f"| {name} | {text} |" for name, text in definitions().items())
    lines = [_INTRO.format(count=len(every), definitions=defined), "| mart | |", "|---|---|"]
    lines += [f"| [{mart.name}](#marts{mart.name}) | {mart.grain} |" for mart in every]
    lines.append(_CANNOT_TELL.rstrip())
    area = ""
    for mart in every:
        if mart.area != area:
            area = mart.area
            lines.append(f"\n## {area}")
        lines += ["", *_section(mart)]
    lines += ["\n## history\n", "What cannot be had later, kept from the first night: versions of rows, and daily totals as daily changes."]
    for mart in history:
        lines += ["", *_section(mart)]
    return "\n".join(lines) + "\n"


def _section(mart: Mart) -> Iterator[str]:
    yield f"### {mart.schema}.{mart.name}\n"
    yield f"{mart.text}\n" if mart.text else ""
    yield f"*{mart.grain}*\n"
    yield "| column | |"
    yield "|---|---|"
    for name, description in mart.columns:
        shown = f"**{name}** (key)" if name in mart.key else name
        yield f"| {shown} | {description.replace('|', chr(92) + '|')}{' *Personal.*' if name in mart.personal else ''} |"
    for question in mart.questions:
        yield f"\n{question.ask}\n\n```sql\n{question.sql}\n```"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
