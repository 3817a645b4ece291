"""Audience syncs (reverse ETL, `activations.toml`): each entry declares a desired state.

1. Each entry's query finds its people.
2. Everybody in the result becomes a row. A tag that no entry of the account wants any more becomes
   a row that removes it.
3. The plan compares the rows with the warehouse and the outbox, and the push sends the difference.
4. With the push, the outbox stores the claims: what the entry wants, or still has to remove.

Belongs here: the file, the people of each entry, and what changes since its last push. Not here:
how a push works (`push_service`), the step of a night (`push_jobs`)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from home.account_files import declared_accounts, declared_tables
from home.options import VERIFY
from home.output import PushResult
from home.settings import SANDBOX_ACCOUNT, Settings, SettingsError, account_of
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
from write_back.tag_claims import SOURCE, sort_unwanted, split_subject

FILE = "activations.toml"


@dataclass(frozen=True, slots=True)
class AudienceSync:
    """One segment: everybody in the result of `query` gets `tag`, or is put on `list` (an id or a
    name).

    `untag_when_gone`: a tag that no entry wants any more for a person is removed. Other columns of
    the query than `email` are the status and custom fields of the list; with `fill_only`, fields
    are sent only where they are empty. `account` None: the only one."""

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
    """The entries of `folder`/activations.toml by name, in its order; none without the file. Raises
    SettingsError."""
    path = folder / FILE
    if not path.exists():
        return {}
    syncs = declared_tables(path, "activations", AudienceSync, needed=("query",))
    for sync in syncs.values():
        _check_sync(sync)
    return syncs


def check_nightly(settings: Settings) -> int:
    """How many entries every night pushes. Raises SettingsError when the file is wrong, or missing
    although `MARKETING_ACTIVATIONS` is on."""
    path = settings.folder / FILE
    if settings.activations and not path.exists():
        raise SettingsError(
            f"MARKETING_ACTIVATIONS is on, but there is no {FILE} in {settings.folder.resolve()}: "
            "put it there, or remove the setting"
        )
    syncs = read_audience_syncs(settings.folder)
    return sum(sync.enabled for sync in syncs.values())


def choose_syncs(syncs: Mapping[str, AudienceSync], names: Sequence[str]) -> list[AudienceSync]:
    """The named entries, whether enabled or not; without names, all enabled ones. Raises
    SettingsError."""
    unknown = [name for name in names if name not in syncs]
    if unknown:
        there = f"there are {', '.join(syncs)}" if syncs else f"there is no {FILE} here"
        listed = ", ".join(unknown)
        raise SettingsError(f"no activation is named {listed}; {there}")
    if not names:
        return [sync for sync in syncs.values() if sync.enabled]
    return [syncs[name] for name in dict.fromkeys(names)]


def _check_sync(sync: AudienceSync) -> None:
    where = f"{FILE}, [activations.{sync.name}]"
    if sync.verify not in VERIFY:
        raise SettingsError(f"{where}: verify is one of {', '.join(VERIFY)}")
    if bool(sync.tag) == bool(sync.list):
        raise SettingsError(f"{where}: exactly one of tag and list is needed")
    if sync.untag_when_gone and not sync.tag:
        raise SettingsError(f"{where}: untag_when_gone needs tag")
    if sync.fill_only and not sync.list:
        raise SettingsError(f"{where}: fill_only needs list")


# ---- the entries, and the people that their queries find


@dataclass(frozen=True)
class Audience:
    """An entry with everybody in its result, each once. `who`: their addresses in normal form;
    `cells`: the columns of the push; `faults`: place → why it cannot be sent; `claims`: what it
    wanted when it was pushed last. An entry that `is_gone` from the file has no people. `error`:
    why nothing is pushed for it; its claims stay. `desired`: what all entries of its account
    want."""

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


@dataclass(frozen=True)
class AudienceOptions:
    """The values of `home.options.ACTIVATIONS`, without those that confirm the push."""

    names: Sequence[str] = ()
    accept_shrink: bool = False
    if_plan: Sequence[str] = ()
    resync: bool = False
    reject_limit: float = 0.05

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{option.name: values[option.name] for option in fields(cls)})


_NO_OPTIONS = AudienceOptions()


def read_audiences(settings: Settings, options: AudienceOptions = _NO_OPTIONS) -> list[Audience]:
    """The chosen entries with the results of their queries. Without names, also the entries that
    are gone from the file, but none of another shard. The error of one entry is in its `error`.
    Raises SettingsError, OutboxError."""
    syncs = read_audience_syncs(settings.folder)
    here = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    chosen = choose_syncs(syncs, options.names)
    with open_outbox(settings.home) as outbox:
        resting = {name: _load_claims(settings, outbox, sync) for name, sync in syncs.items()}
        gone: list[Audience] = []
        if syncs and not options.names:
            gone = _list_gone(outbox, resting, here)
            declared = declared_accounts(settings.folder / "accounts.toml")
            elsewhere = {account.name for account in declared}.difference(here)
            chosen = [sync for sync in chosen if sync.account not in elsewhere]
    audiences = [
        _read_audience(settings, resting.pop(sync.name), options.accept_shrink) for sync in chosen
    ]
    audiences += gone
    everybody = [*audiences, *resting.values()]
    return [
        replace(audience, desired=_find_claimed_subjects(audience.account, everybody))
        for audience in audiences
    ]


def _list_gone(
    outbox: Outbox, declared: Mapping[str, Audience], accounts: Collection[str]
) -> list[Audience]:
    """The entries of these accounts that have claims and are no longer in the file."""
    gone = []
    for account, name in outbox.list_claimers():
        is_declared = name in declared and declared[name].account in (account, "")
        if account in accounts and not is_declared:
            gone.append(_make_gone_audience(outbox, account, name))
    return gone


def _load_claims(settings: Settings, outbox: Outbox, sync: AudienceSync) -> Audience:
    """The entry with its claims. Its account is empty if it is unclear which one is meant."""
    try:
        account = account_of(settings, sync.account)
    except SettingsError as error:
        text = str(error).replace("--account (in the launchpad: account)", "account = …")
        unclear = InputError(f"{FILE}, [activations.{sync.name}]: {text}")
        return Audience(sync, "", error=unclear)
    claims = outbox.find_claims(account, sync.name)
    return Audience(sync, account, claims=claims)


def _read_audience(settings: Settings, audience: Audience, accept_shrink: bool) -> Audience:
    """The entry with everybody in its result, or with its error."""
    if audience.error is not None:
        return audience
    try:
        known = load_known(settings, audience.account)
        if audience.sync.list:
            known.lists.find_lists(audience.sync.list)
        people = read_query(settings, audience.sync.query, audience.account, known.zone.key)
        found = _group_people(audience, people)
        if not accept_shrink:
            _check_shrink(settings, found)
    except BadValue as error:
        return replace(audience, error=InputError(str(error)))
    except Exception as error:
        return replace(audience, error=error)
    return found


def _make_gone_audience(outbox: Outbox, account: str, name: str) -> Audience:
    claims = outbox.find_claims(account, name)
    takes_away = any(claim.takes_away for claim in claims.values())
    sync = AudienceSync(name, "", untag_when_gone=takes_away)
    return Audience(sync, account, claims=claims, is_gone=True)


def _group_people(audience: Audience, people: Rows) -> Audience:
    """The entry with each person of the result once. A person whose rows disagree is rejected."""
    sync = audience.sync
    names = _find_columns(sync, people)
    email, *others = names
    keys = [normal_form(text_of(cell) or "") for cell in people.cells[email]]
    places: dict[str, int] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, place)
    unread = _find_unread(people, keys, names)
    disagreeing = _find_disagreeing(people, keys, places, others)
    faults_by_person = unread | disagreeing
    faults: dict[int, str] = {}
    for place, key in enumerate(places):
        if key in faults_by_person:
            faults[place] = faults_by_person[key]
    first_rows = people.take_rows(places.values()).cells
    if sync.tag:
        additions = [(name, sync.tag, ADD) for name in first_rows[email]]
        cells = _make_tag_columns(additions)
    else:
        cells = {name: first_rows[name] for name in names}
        cells["list_id"] = [sync.list] * len(places)
    return replace(
        audience,
        who=list(places),
        cells=cells,
        faults=faults,
        tags=_read_sync_tags(sync),
    )


def _find_unread(people: Rows, keys: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Person → why a row could not be read."""
    reasons = dict(people.faults)
    for name in names:
        reasons |= people.cell_faults.get(name, {})
    return {
        key: reasons[number]
        for key, number in zip(keys, people.numbers, strict=True)
        if number in reasons
    }


def _find_disagreeing(
    people: Rows, keys: Sequence[str], places: Mapping[str, int], names: Iterable[str]
) -> dict[str, str]:
    """Person → which column differs from the person's first row."""
    found: dict[str, str] = {}
    for name in names:
        column = people.cells[name]
        what = f"rows of this person disagree about {show_name(name)}"
        for key, cell in zip(keys, column, strict=True):
            first_cell = column[places[key]]
            if first_cell != cell:
                found[key] = f"{what}: change the query to return one value"
    return found


def _read_sync_tags(sync: AudienceSync) -> Sequence[str]:
    if not sync.tag:
        return ()
    found = values.read_tags(sync.tag)
    if len(found) > 1:
        names = ", ".join(map(show_name, found))
        raise InputError(
            f"its tag has a separator in it and would be {len(found)} tags, {names}: write an "
            "entry for each"
        )
    return found


#: Columns of a list's query that are not sent, as folded names: the entry names the list, and the
#: address the person.
_NOT_SENT = ("list", "listid", "contactid")


def _find_columns(sync: AudienceSync, people: Rows) -> list[str]:
    """The column of addresses; for a list, then the columns that are sent."""
    emails = [column for column in people.columns if fold_name(column) == "email"]
    found = emails[:1]
    if not found:
        raise InputError("its query has no column email")
    if not sync.list:
        return found
    others = [name for name in people.columns if name not in found]
    sent = [name for name in others if fold_name(name) not in _NOT_SENT]
    return found + sent


def _make_tag_columns(changes: Iterable[tuple[Cell, str | None, str]]) -> dict[str, list[Cell]]:
    """Columns of a tag push: the person by address or contact id, the tag, and the action."""
    columns: dict[str, list[Cell]] = {"email": [], "contact_id": [], "tag": [], "action": []}
    for person, tag, action in changes:
        text = text_of(person) or ""
        is_id = text.isdecimal()
        row = (None, person, tag, action) if is_id else (person, None, tag, action)
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
    return columns


# ---- what all entries want


def _find_claimed_subjects(account: str, audiences: Iterable[Audience]) -> Collection[str]:
    """Subjects (`who|tag`) that entries of the account want, in lower case: the service may treat
    tags that differ only in case as one."""
    found: set[str] = set()
    for audience in audiences:
        if audience.account == account and not audience.is_gone:
            subjects = audience.subjects if audience.tags else audience.claimed
            found.update(map(str.casefold, subjects))
    return found


def _check_shrink(settings: Settings, found: Audience) -> None:
    """Raises InputError when nobody is left, or too many people would lose their tag at once. A tag
    that is renamed is not a loss of people."""
    if not found.sync.untag_when_gone:
        return
    now = set(found.who)
    before = {subject.partition("|")[0] for subject in found.claimed}
    lost = len(before - now)
    limit = settings.shrink_limit
    is_many = lost > FEW or not now
    if is_many and lost > limit * len(before):
        raise InputError(
            f"its result has {len(now):,} people, but {lost:,} of the last {len(before):,} are "
            f"missing, more than {100 * limit:g} %: nothing was pushed. Check the query and the "
            f"data; if the result is right, run `marketing-sync push activations {found.sync.name} "
            "--accept-shrink --apply` (in the launchpad: accept_shrink)"
        )


# ---- the difference, and its push


@dataclass(frozen=True)
class Difference:
    """What an entry changes. `claims`: the claims that change; None: the claim ends.
    `removed`: how many tags are removed because no entry wants them any more."""

    audience: Audience
    planned: Planned
    claims: Mapping[str, Claim | None] = field(repr=False)
    removed: int


def find_difference(
    settings: Settings, audience: Audience, options: AudienceOptions = _NO_OPTIONS
) -> Difference:
    """What differs from the desired state. Sends no request. Raises the entry's `error`,
    InputError, WarehouseError, OutboxError."""
    if audience.error is not None:
        raise audience.error
    sync = audience.sync
    removed, left = _find_unwanted(settings, audience)
    if not sync.untag_when_gone:
        removed, left = [], []
    now = dict.fromkeys(left, Claim(takes_away=True, is_wanted=False))
    now |= dict.fromkeys(audience.subjects, Claim(sync.untag_when_gone, is_wanted=True))
    order_options = Options(
        send_all=options.resync,
        is_standing=True,
        fill_only=sync.fill_only,
        if_plan=options.if_plan,
    )
    kind = CONTACTS if sync.list else TAGS
    order = Order(
        kind,
        audience.account,
        options=order_options,
        reject_limit=options.reject_limit,
        verify=sync.verify,
    )
    rows = _make_rows(audience, removed)
    planned = plan_push(settings, order, rows)
    changed_claims = _find_changed_claims(audience.claims, now)
    return Difference(audience, planned, changed_claims, len(removed))


def _find_unwanted(settings: Settings, audience: Audience) -> tuple[list[str], list[str]]:
    """What the entry claims and does not want any more (`sort_unwanted`)."""
    desired = audience.subjects
    gone: dict[str, Claim] = {}
    kept: list[str] = []
    for subject, claim in audience.claims.items():
        if subject in desired:
            continue
        if audience.is_wanted(subject):
            kept.append(subject)
        else:
            gone[subject] = claim
    if not gone:
        return [], kept
    known = load_known(settings, audience.account)
    with open_outbox(settings.home) as outbox:
        removable, left = sort_unwanted(known, outbox, gone, audience.is_wanted)
    return removable, [*kept, *left]


def _find_changed_claims(
    before: Mapping[str, Claim], now: Mapping[str, Claim]
) -> dict[str, Claim | None]:
    """The claims that differ; None: the claim ends."""
    changed: dict[str, Claim | None] = {}
    for subject in {**now, **before}:
        claim = now.get(subject)
        if claim != before.get(subject):
            changed[subject] = claim
    return changed


def _make_rows(audience: Audience, removed: Sequence[str]) -> Rows:
    """A row for everybody, and for each tag that is removed."""
    cells = audience.cells
    if not audience.sync.list:
        pairs = map(split_subject, removed)
        removals = _make_tag_columns((who, tag, REMOVE) for who, tag in pairs)
        cells = {name: [*cells.get(name, ()), *column] for name, column in removals.items()}
    count = len(audience.who) + len(removed)
    return Rows(
        cells,
        list(range(2, 2 + count)),
        Source(f"{SOURCE}{audience.sync.name}"),
        {place + 2: reason for place, reason in audience.faults.items()},
    )


def push_difference(
    settings: Settings, found: Difference, watch: Watch = nullcontext
) -> list[PushResult]:
    """Push the difference, and store the entry's new claims with it. Raises InputError when too
    many rows are invalid."""
    account = found.audience.account
    name = found.audience.sync.name
    with open_outbox(settings.home) as outbox:
        plan = found.planned.plan
        has_work = plan.items or plan.bad or outbox.has_left(account)
        if not has_work:
            outbox.claim_subjects(account, name, found.claims)
            return []
        ran = Ran("push_activations", account)
        ran.push_id = enqueue_push(
            settings, found.planned, run=ran.run, claims=(name, found.claims)
        )
        return finish_push(settings, outbox, ran, watch)
