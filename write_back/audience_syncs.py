"""Audience syncs (reverse ETL, `activations.toml`): entries that say how things should be.

    entries → queries → who is to have what, over all entries of an account → rows of everybody →
    the plan, which compares them with the warehouse and the outbox → the push of the difference;
    with it the claims: what each entry wants or has yet to take away

Belongs here: the file, whose people want what, what nobody wants any more. Not here: how a push
works (`push_service`), the step of a night (`push_jobs`)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from home.account_files import SWITCH, TEXT, declared_tables
from home.options import VERIFY
from home.output import PushResult
from home.settings import Settings, SettingsError, account_of
from marketing_api.address import normal_form
from warehouse.loads.listing import FEW
from write_back.account_state import load_known
from write_back.input import values
from write_back.input.columns import fold_name
from write_back.input.query import read_query
from write_back.input.rows import Cell, InputError, Rows, show_name, text_of
from write_back.input.values import BadValue
from write_back.item import Options, Source
from write_back.kinds import CONTACTS, TAGS
from write_back.kinds.tags import ADD, REMOVE
from write_back.order import Order, Planned, Ran
from write_back.outbox.outbox import Claim, Outbox, open_outbox
from write_back.push_service import Watch, enqueue_push, finish_push, plan_push
from write_back.tag_claims import SOURCE, sort_unwanted

FILE = "activations.toml"


@dataclass(frozen=True, slots=True)
class AudienceSync:
    """One segment, kept in step with the service: who is in the result of `query` has `tag`, or is
    on `list` (an id or a name).

    `untag_when_gone`: a tag that no entry wants any more for somebody is taken away again. Columns
    of the query beside `email` are the status and custom fields of the list, with `fill_only` sent
    where they are empty. `account` None: the only one there is."""

    name: str
    query: str
    tag: str | None = None
    untag_when_gone: bool = False
    list: str | None = None
    fill_only: bool = False
    account: str | None = None
    enabled: bool = True
    verify: str = "sample"


def read_audience_syncs(folder: Path) -> dict[str, AudienceSync]:
    """Those of `folder`/activations.toml by name, in its order; none without the file. Raises
    SettingsError."""
    path = folder / FILE
    tables = (
        declared_tables(path, "activations", _TAKES, needed=("query",)) if path.exists() else {}
    )
    return {name: _audience_sync(name, table) for name, table in tables.items()}


def check_nightly(settings: Settings) -> int:
    """How many every night pushes. Raises SettingsError when the file is wrong, or missing although
    they are switched on."""
    if settings.activations and not (settings.folder / FILE).exists():
        raise SettingsError(
            f"MARKETING_ACTIVATIONS is on, and there is no {FILE} in {settings.folder.resolve()}: "
            "put it there, or remove the setting"
        )
    return sum(sync.enabled for sync in read_audience_syncs(settings.folder).values())


def choose_syncs(syncs: Mapping[str, AudienceSync], names: Sequence[str]) -> list[AudienceSync]:
    """Those named, whether enabled or not; all enabled ones when none is named. Raises
    SettingsError."""
    unknown = [name for name in names if name not in syncs]
    if unknown:
        there = f"there are {', '.join(syncs)}" if syncs else f"there is no {FILE} here"
        raise SettingsError(f"no activation is named {', '.join(unknown)}; {there}")
    return [syncs[name] for name in dict.fromkeys(names)] or [
        sync for sync in syncs.values() if sync.enabled
    ]


#: Key of a table → what it takes.
_TAKES = {
    option.name: SWITCH if option.type is bool else TEXT
    for option in fields(AudienceSync)
    if option.name != "name"
}


def _audience_sync(name: str, table: Mapping[str, Any]) -> AudienceSync:
    where = f"{FILE}, [activations.{name}]"
    if table.get("verify", "all") not in VERIFY:
        raise SettingsError(f"{where}: verify is one of {', '.join(VERIFY)}")
    if bool(table.get("tag")) == bool(table.get("list")):
        raise SettingsError(f"{where}: exactly one of tag and list is needed")
    if table.get("untag_when_gone") and not table.get("tag"):
        raise SettingsError(f"{where}: untag_when_gone needs tag")
    if table.get("fill_only") and not table.get("list"):
        raise SettingsError(f"{where}: fill_only needs list")
    return AudienceSync(name, **table)


# ---- the entries, and whom their queries find


@dataclass(frozen=True)
class Audience:
    """An entry with everybody in its result, each once. `who`: their addresses in normal form;
    `cells`: the columns of the push; `faults`: place → why it cannot be sent; `claims`: what it
    wanted when it was pushed last. An entry that `is_gone` from the file has nobody. `error`: why
    nothing is pushed of it; what it claimed stays. `desired`: what entries of its account want."""

    sync: AudienceSync
    account: str
    who: Sequence[str] = field(default=(), repr=False)
    cells: Mapping[str, list[Cell]] = field(default_factory=dict, repr=False)
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    tags: Sequence[str] = ()
    claims: dict[str, Claim] = field(default_factory=dict, repr=False)
    is_gone: bool = False
    error: Exception | None = None
    desired: Collection[str] = field(default=(), repr=False)

    @property
    def subjects(self) -> dict[str, None]:
        return {f"{who}|{tag}": None for who in self.who for tag in self.tags}

    @property
    def claimed(self) -> list[str]:
        """What it wanted when it was pushed last, and may still want."""
        return [subject for subject, claim in self.claims.items() if claim.is_wanted]

    def is_wanted(self, subject: str) -> bool:
        return subject.casefold() in self.desired


def read_audiences(
    settings: Settings, names: Sequence[str] = (), *, accept_shrink: bool = False
) -> list[Audience]:
    """Every entry whose query is to be run, and, unless some are named, those that are gone from
    the file. What is wrong with one stands in it. Raises SettingsError, OutboxError."""
    syncs = read_audience_syncs(settings.folder)
    with open_outbox(settings.home) as outbox:
        resting = {name: _as_pushed(settings, outbox, sync) for name, sync in syncs.items()}
        here = {(audience.account, name) for name, audience in resting.items()}
        gone = [
            _gone_audience(outbox, account, name)
            for account, name in outbox.list_claimers()
            if not here & {(account, name), ("", name)}
        ]
    read = [
        _read_audience(settings, resting.pop(sync.name), accept_shrink)
        for sync in choose_syncs(syncs, names)
    ]
    audiences = read if names or not syncs else [*read, *gone]
    everybody = [*audiences, *resting.values()]
    return [
        replace(audience, desired=_find_claimed_subjects(audience.account, everybody))
        for audience in audiences
    ]


def _as_pushed(settings: Settings, outbox: Outbox, sync: AudienceSync) -> Audience:
    """What it claims. No account: it is not clear which one is meant."""
    try:
        account = _find_account(settings, sync)
    except InputError as error:
        return Audience(sync, "", error=error)
    return Audience(sync, account, claims=outbox.find_claims(account, sync.name))


def _read_audience(settings: Settings, audience: Audience, accept_shrink: bool) -> Audience:
    """With everybody in its result. Whatever is wrong with it is its own."""
    if audience.error is not None:
        return audience
    try:
        known = load_known(settings, audience.account)
        if audience.sync.list:
            known.lists.find_lists(audience.sync.list)
        found = _group_people(audience, read_query(settings, audience.sync.query, known.zone.key))
        if not accept_shrink:
            _check_shrink(settings, found)
    except BadValue as error:
        return replace(audience, error=InputError(str(error)))
    except Exception as error:
        return replace(audience, error=error)
    return found


def _gone_audience(outbox: Outbox, account: str, name: str) -> Audience:
    claims = outbox.find_claims(account, name)
    takes_away = any(claim.takes_away for claim in claims.values())
    sync = AudienceSync(name, "", untag_when_gone=takes_away)
    return Audience(sync, account, claims=claims, is_gone=True)


def _find_account(settings: Settings, sync: AudienceSync) -> str:
    try:
        return account_of(settings, sync.account)
    except SettingsError as error:
        text = str(error).replace("with --account", "with account = …")
        raise InputError(f"{FILE}, [activations.{sync.name}]: {text}") from None


def _group_people(audience: Audience, people: Rows) -> Audience:
    """With each person of the result once. Whoever has rows that disagree is rejected."""
    sync = audience.sync
    (title, *more) = _find_columns(audience.sync, people)
    keys = [normal_form(text_of(cell) or "") for cell in people.cells[title]]
    places: dict[str, int] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, place)
    faults = _find_unread(people, keys, (title, *more)) | _find_disagreeing(
        people, keys, places, more
    )
    left = people.take_rows(places.values()).cells
    return replace(
        audience,
        who=list(places),
        cells=_of_tags((name, sync.tag, ADD) for name in left[title])
        if sync.tag
        else {name: left[name] for name in (title, *more)} | {"list_id": [sync.list] * len(places)},
        faults={place: faults[key] for place, key in enumerate(places) if key in faults},
        tags=_tags_of(sync),
    )


def _find_unread(people: Rows, keys: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Why a person's rows could not be read."""
    faulty = [people.faults, *(people.cell_faults.get(name, {}) for name in names)]
    reasons = {number: reason for faults in faulty for number, reason in faults.items()}
    return {
        key: reasons[number]
        for key, number in zip(keys, people.numbers, strict=True)
        if number in reasons
    }


def _find_disagreeing(
    people: Rows, keys: Sequence[str], places: Mapping[str, int], names: Iterable[str]
) -> dict[str, str]:
    """Of whom a row says something else than the first one."""
    return {
        key: f"rows of this person disagree about {show_name(name)}: let the query say one value"
        for name in names
        for key, cell in zip(keys, people.cells[name], strict=True)
        if key in places and people.cells[name][places[key]] != cell
    }


def _tags_of(sync: AudienceSync) -> Sequence[str]:
    found = values.read_tags(sync.tag) if sync.tag else ()
    if len(found) > 1:
        names = ", ".join(map(show_name, found))
        raise InputError(
            f"its tag would be {len(found)} tags, {names}: write an entry for each of them"
        )
    return found


#: Columns of a list's query that are not sent, folded: the entry says which list, the address says
#: who.
_NOT_SENT = ("list", "listid", "contactid")


def _find_columns(sync: AudienceSync, people: Rows) -> list[str]:
    """The column of addresses; then what is said on a list."""
    found = [column for column in people.columns if fold_name(column) == "email"][:1]
    if not found:
        raise InputError("its query has no column email")
    if sync.list:
        found += [
            name
            for name in people.columns
            if name not in found and fold_name(name) not in _NOT_SENT
        ]
    return found


def _of_tags(wanted: Iterable[tuple[Cell, str | None, str]]) -> dict[str, list[Cell]]:
    """Columns that say who, by address or contact id, which tag, and what of it."""
    columns: dict[str, list[Cell]] = {"email": [], "contact_id": [], "tag": [], "action": []}
    for name, tag, action in wanted:
        is_id = (text_of(name) or "").isdecimal()
        row = (None, name, tag, action) if is_id else (name, None, tag, action)
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
    return columns


# ---- what is wanted, over all entries, and what is not any more


def _find_claimed_subjects(account: str, audiences: Iterable[Audience]) -> Collection[str]:
    """Subjects (`who|tag`) that entries of the account want, in lower case: what differs in nothing
    else may be one tag at the service."""
    own_audiences = [
        audience for audience in audiences if audience.account == account and not audience.is_gone
    ]
    subjects = chain(
        *(audience.subjects if audience.tags else audience.claimed for audience in own_audiences)
    )
    return set(map(str.casefold, subjects))


def _check_shrink(settings: Settings, found: Audience) -> None:
    """InputError when nobody is left, or too many would lose their tag at once. A tag that is
    renamed is no loss of people."""
    if not found.sync.untag_when_gone:
        return
    now = set(found.who)
    before = {subject.partition("|")[0] for subject in found.claimed}
    lost = len(before - now)
    limit = settings.shrink_limit
    if lost > limit * len(before) and (lost > FEW or not now):
        raise InputError(
            f"its result has {len(now):,} people, and lacks {lost:,} of the {len(before):,} of the "
            f"last one, more than {100 * limit:g} %: nothing was pushed. Look at the query and the "
            f"data; if it is right, run `marketing-sync push activations {found.sync.name} "
            "--accept-shrink --apply` (in the launchpad: accept_shrink)"
        )


# ---- the difference, and its push


@dataclass(frozen=True)
class Difference:
    """What an entry wants to be changed. `claims`: those that change (None: no more). `removed`:
    how many tags nobody wants any more."""

    audience: Audience
    planned: Planned
    claims: Mapping[str, Claim | None] = field(repr=False)
    removed: int


def find_difference(
    settings: Settings,
    audience: Audience,
    *,
    resync: bool = False,
    reject_limit: float = 0.05,
    if_plan: Sequence[str] = (),
) -> Difference:
    """What is not yet as the entry says. No request. Raises its `error`, InputError,
    WarehouseError, OutboxError."""
    if audience.error is not None:
        raise audience.error
    sync = audience.sync
    removable, left = _find_unwanted(settings, audience)
    removed = removable if sync.untag_when_gone else []
    now = dict.fromkeys(
        left if sync.untag_when_gone else [], Claim(takes_away=True, is_wanted=False)
    )
    now |= dict.fromkeys(audience.subjects, Claim(sync.untag_when_gone, is_wanted=True))
    order = Order(
        CONTACTS if sync.list else TAGS,
        audience.account,
        options=Options(
            send_all=resync, is_standing=True, fill_only=sync.fill_only, if_plan=if_plan
        ),
        reject_limit=reject_limit,
        verify=sync.verify,
    )
    planned = plan_push(settings, order, _make_rows(audience, removed))
    return Difference(audience, planned, _find_changed_claims(audience.claims, now), len(removed))


def _find_unwanted(settings: Settings, audience: Audience) -> tuple[list[str], list[str]]:
    """What it claims and does not want any more, as `sort_unwanted` has it."""
    wants = audience.subjects
    gone = {subject: claim for subject, claim in audience.claims.items() if subject not in wants}
    kept = list(filter(audience.is_wanted, gone))
    for subject in kept:
        del gone[subject]
    if not gone:
        return [], kept
    known = load_known(settings, audience.account)
    with open_outbox(settings.home) as outbox:
        removable, left = sort_unwanted(known, outbox, gone, audience.is_wanted)
    return removable, [*kept, *left]


def _find_changed_claims(
    before: Mapping[str, Claim], now: Mapping[str, Claim]
) -> dict[str, Claim | None]:
    """The claims that differ; None: no more."""
    return {one: now.get(one) for one in {**now, **before} if now.get(one) != before.get(one)}


def _make_rows(audience: Audience, removed: Sequence[str]) -> Rows:
    """Of everybody, and of tags that are taken away."""
    cells = audience.cells
    if not audience.sync.list:
        parts = (subject.partition("|") for subject in removed)
        away = _of_tags((who, tag, REMOVE) for who, _, tag in parts)
        cells = {name: [*cells.get(name, ()), *column] for name, column in away.items()}
    return Rows(
        cells,
        list(range(2, 2 + len(audience.who) + len(removed))),
        Source(f"{SOURCE}{audience.sync.name}", ""),
        {place + 2: reason for place, reason in audience.faults.items()},
    )


def push_difference(
    settings: Settings, found: Difference, watch: Watch = nullcontext
) -> list[PushResult]:
    """Push it; with it goes what the entry claims from now on. InputError when too many rows are
    bad."""
    account = found.audience.account
    name = found.audience.sync.name
    with open_outbox(settings.home) as outbox:
        plan = found.planned.plan
        if not (plan.items or plan.bad or outbox.has_left(account)):
            outbox.claim_subjects(account, name, found.claims)
            return []
        ran = Ran("push_activations", account)
        ran.push_id = enqueue_push(
            settings, found.planned, run=ran.run, claims=(name, found.claims)
        )
        return finish_push(settings, outbox, ran, watch)
