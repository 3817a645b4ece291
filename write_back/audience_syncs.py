"""Audience syncs (reverse ETL, `activations.toml`): queries, and what the service is told of who entered or
left their results.

Somebody is a member once the service has taken it, so that a push that failed, was killed or was rejected is
tried again by the next run. Belongs here: the file, who came and went, their rows. Not here: how a push works
(`push_service`), the step of a night (`push_jobs`)."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

from home.account_files import SWITCH, TEXT, declared_tables
from home.options import VERIFY
from home.output import PushResult
from home.settings import Settings, SettingsError, account_of
from marketing_api.address import normal_form
from warehouse.forgetting import is_pseudonym
from write_back.input.columns import fold
from write_back.input.query import read_query
from write_back.input.rows import Cell, InputError, Rows, text_of
from write_back.item import EffectKind, Source
from write_back.kinds import kinds_that
from write_back.order import Order, Planned, Ran
from write_back.outbox.outbox import open_outbox
from write_back.planning import QUEUED
from write_back.push_service import Watch, enqueue, finish_push, plan_push

FILE = "activations.toml"


@dataclass(frozen=True, slots=True)
class AudienceSync:
    """One segment, kept in step with the service: who is in the result of `query` gets `tag`, or is put into
    `list` (an id or a name).

    `untag_when_gone`: who is no longer in it loses the tag. Columns of the query beside `email` or
    `contact_id` are the status and custom fields of the list. `account` None: the only one there is."""

    name: str
    query: str
    tag: str | None = None
    untag_when_gone: bool = False
    list: str | None = None
    account: str | None = None
    enabled: bool = True
    verify: str = "sample"


def read_audience_syncs(folder: Path) -> dict[str, AudienceSync]:
    """Those of `folder`/activations.toml by name, in its order; none without the file. Raises
    SettingsError."""
    path = folder / FILE
    tables = declared_tables(path, "activations", _TAKES, needed=("query",)) if path.exists() else {}
    return {name: _audience_sync(name, table) for name, table in tables.items()}


def chosen(syncs: Mapping[str, AudienceSync], names: Sequence[str]) -> list[AudienceSync]:
    """Those named, whether enabled or not; all enabled ones when none is named. Raises SettingsError."""
    if unknown := [name for name in names if name not in syncs]:
        there = f"there are {', '.join(syncs)}" if syncs else f"there is no {FILE} here"
        raise SettingsError(f"no activation is named {', '.join(unknown)}; {there}")
    return [syncs[name] for name in dict.fromkeys(names)] or [each for each in syncs.values() if each.enabled]


#: Key of a table → what it takes.
_TAKES = {
    each.name: SWITCH if each.type is bool else TEXT for each in fields(AudienceSync) if each.name != "name"
}


def _audience_sync(name: str, table: Mapping[str, Any]) -> AudienceSync:
    where = f"{FILE}, [activations.{name}]"
    if table.get("verify", "all") not in VERIFY:
        raise SettingsError(f"{where}: verify is one of {', '.join(VERIFY)}")
    if bool(table.get("tag")) == bool(table.get("list")):
        raise SettingsError(f"{where}: exactly one of tag and list is needed")
    if table.get("untag_when_gone") and not table.get("tag"):
        raise SettingsError(f"{where}: untag_when_gone needs tag")
    return AudienceSync(name, **table)


# ---- who entered and left

#: Skipped, and yet not as it is to be.
_NOT_DONE = (QUEUED, "cancelled")


@dataclass(frozen=True)
class Turnover:
    """One audience sync now: the people of its result, and those who came and went. `planned` is the push
    that says so, of no rows where nothing is to be said and an earlier push has left something; None when
    that is not so either."""

    sync: AudienceSync
    account: str
    size: int
    entered: Sequence[str] = field(repr=False)
    left: Sequence[str] = field(repr=False)
    rows: Mapping[str, int] = field(repr=False)  # of the push, about whom something is to be said
    planned: Planned | None = None


def turnover(settings: Settings, sync: AudienceSync, *, accept_shrink: bool = False) -> Turnover:
    """Who entered and left, and the plan to say so. No request. Raises InputError, WarehouseError,
    OutboxError."""
    account = _account(settings, sync)
    people = read_query(settings, sync.query)
    who = _who_column(sync, people)
    now = _members_now(sync, people.cells[who], who)
    with open_outbox(settings.home) as outbox:
        before, is_left = outbox.members(account, sync.name), outbox.has_left(account)
    if not accept_shrink:
        _check_shrink(sync, len(now), len(before), settings.shrink_limit)
    entered = [key for key in now if key not in before]
    left = [key for key in before if key not in now]
    untagged = left if sync.untag_when_gone else []
    places = [now[key] for key in entered]
    columns = _tags(sync, people.cells[who], places, untagged) if sync.tag else _listed(sync, people, places)
    numbers = dict(zip([*entered, *untagged], count(2), strict=False))
    found = Turnover(sync, account, len(now), entered, left, numbers)
    if not numbers and not is_left:
        return found
    rows = Rows(columns, list(numbers.values()), Source(f"activation {sync.name}", ""))
    (kind, *_) = kinds_that(EffectKind.TAGS if sync.tag else EffectKind.JOINS)
    return replace(found, planned=plan_push(settings, Order(kind, account, verify=sync.verify), rows))


def _account(settings: Settings, sync: AudienceSync) -> str:
    try:
        return account_of(settings, sync.account)
    except SettingsError as problem:
        text = str(problem).replace("with --account", "with account = …")
        raise InputError(f"{FILE}, [activations.{sync.name}]: {text}") from None


def _who_column(sync: AudienceSync, people: Rows) -> str:
    """The column that says who it is: an address, or for tags a contact id."""
    there = {fold(column): column for column in reversed(people.columns)}
    names = {"email": "email", "contactid": "contact_id"} if sync.tag else {"email": "email"}
    if found := [there[name] for name in names if name in there]:
        return found[0]
    raise InputError(f"activation {sync.name}: its query has no column {' or '.join(names.values())}")


def _members_now(sync: AudienceSync, cells: Sequence[Cell], who: str) -> dict[str, int]:
    """Who is in the result → the first row about them; not those who asked to be forgotten."""
    found: dict[str, int] = {}
    for place, cell in enumerate(cells):
        if not (key := normal_form(text_of(cell) or "")):
            raise InputError(
                f"activation {sync.name}: {who} is empty in a row of the result; leave such rows out of the "
                "query"
            )
        if not is_pseudonym(key, is_id=True):
            found.setdefault(key, place)
    return found


def _check_shrink(sync: AudienceSync, now: int, before: int, limit: float | None) -> None:
    """InputError when too many have left at once."""
    if limit is not None and before and (not now or now < before * (1 - limit)):
        raise InputError(
            f"activation {sync.name}: its result has {now:,} people, the last one had {before:,}; nothing "
            "was pushed. Look at the query and the data; if it is right, run "
            f"`marketing-sync push activations {sync.name} --accept-shrink --apply` (in the launchpad: "
            "accept_shrink)"
        )


def _tags(
    sync: AudienceSync, cells: Sequence[Cell], places: Sequence[int], untagged: Sequence[str]
) -> dict[str, list[Cell]]:
    """Each who entered, as the query says it, and each who left, as it was known: addresses and ids, where
    the query has changed."""
    names: list[Cell] = [*(cells[place] for place in places), *untagged]
    emails = [name if "@" in (text_of(name) or "") else None for name in names]
    columns: dict[str, list[Cell]] = {
        "email": emails,
        "contact_id": [name if email is None else None for name, email in zip(names, emails, strict=True)],
        "tag": [sync.tag] * len(names),
        "action": [*["add"] * len(places), *["remove"] * len(untagged)],
    }
    return {name: column for name, column in columns.items() if any(column) or not names}


def _listed(sync: AudienceSync, people: Rows, places: Sequence[int]) -> dict[str, list[Cell]]:
    """Each who entered, as the query says it, with the list; leaving the result changes nothing in the
    list."""
    columns: dict[str, list[Cell]] = {
        name: [cells[place] for place in places]
        for name, cells in people.cells.items()
        if fold(name) not in ("list", "listid", "contactid")
    }
    return columns | {"list_id": [sync.list] * len(places)}


def push_turnover(settings: Settings, found: Turnover, watch: Watch = nullcontext) -> list[PushResult]:
    """Push what `turnover` found, and count as members those whom the service has taken; InputError when too
    many rows are bad."""
    with open_outbox(settings.home) as outbox:
        if found.planned is None:
            outbox.note_members(found.account, found.sync.name, (), found.left)
            return []
        ran = Ran("push_activations", found.account)
        ran.push_id = push_id = enqueue(settings, found.planned, run=ran.run)
        try:
            return finish_push(settings, outbox, ran, watch)
        finally:
            # who entered is a member once it is done; who left is none once it is done or cannot be (nobody
            # there to be untagged)
            done, over = outbox.done_rows(push_id, _NOT_DONE)
            entered = [key for key in found.entered if found.rows[key] in done]
            left = [key for key in found.left if key not in found.rows or found.rows[key] in over]
            outbox.note_members(found.account, found.sync.name, entered, left)
