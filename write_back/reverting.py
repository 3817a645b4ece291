"""Reverting a push: the rows of a new push that restores what the earlier one changed. It is
planned and sent like any other.

Belongs here: what the earlier push changed, whether it is unchanged since, and what can't be
restored. Not here: planning the rows (`kinds`), the look-up of the contact just before a request
(`kinds.contact_requests`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from msgspec import structs

from home.formatting import count_of
from marketing_api.address import normal_form
from marketing_api.records.contacts import ADDTAG, STATUSES
from write_back.account_state import Known, ListReader
from write_back.input.rows import Cell, InputError, Rows, show_name
from write_back.item import DONE, Item, Past, Plan, RevertedValues, Source
from write_back.kinds import ACTIVITIES, CONTACTS
from write_back.kinds.tags import ADD, REMOVE, find_latest
from write_back.outbox.outbox import Entry, Outbox, Push
from write_back.tag_claims import SOURCE, split_subject

_MOST_LISTED = 20
_CHANGED = "changed after the push, so not reverted: "


@dataclass
class Revert:
    """The rows that revert a push. `sent`: subject (`address|list id`) → what the push sent there;
    a contact that shows anything else by now is left. `kept`: what was changed after the push;
    `notes`: what can't be restored → how often; `audience_sync`: the one that made the push."""

    columns: dict[str, list[Cell]]
    sent: dict[str, RevertedValues] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    audience_sync: str | None = None

    def add_row(self, cells: Mapping[str, Cell]) -> None:
        count = self._count_rows()
        for title in cells.keys() - self.columns.keys():
            self.columns[title] = [None] * count
        for title, column in self.columns.items():
            column.append(cells.get(title))

    def _count_rows(self) -> int:
        first_column = next(iter(self.columns.values()))
        return len(first_column)

    def make_rows(self, push_id: int) -> Rows:
        row_count = self._count_rows()
        numbers = list(range(1, 1 + row_count))
        source = Source(f"revert of push {push_id}")
        return Rows(self.columns, numbers, source)

    def guard_plan(self, plan: Plan) -> Plan:
        """The plan whose requests are sent only while the contact is as the push left it."""
        items = list(map(self._guard_item, plan.items))
        notes = [f"{count:,} {text}" for text, count in self.notes.items()]
        listed = self.kept[:_MOST_LISTED]
        notes += [f"{_CHANGED}{text}" for text in listed]
        more = len(self.kept) - _MOST_LISTED
        if more > 0:
            notes.append(f"{_CHANGED}{more:,} more")
        if self.audience_sync is not None:
            notes.append(
                f"the audience sync {self.audience_sync} sends the same again with its next run: "
                "change or disable its entry in activations.toml first"
            )
        warnings = (*plan.warnings, *notes)
        return replace(plan, items=items, warnings=warnings)

    def _guard_item(self, item: Item) -> Item:
        subject = next(iter(item.effects))
        reverted = self.sent.get(subject)
        if reverted is None:
            return item
        look_up_count = item.expected.look_up_count + 1
        expected = structs.replace(item.expected, look_up_count=look_up_count, reverted=reverted)
        return replace(item, expected=expected)


def find_revert(known: Known, outbox: Outbox, push: Push, *, with_tags: bool) -> Revert:
    """The revert of the push. Raises InputError for a push that can't be reverted, or that has open
    requests: each push first sends what earlier ones left open."""
    for earlier in outbox.open_by_push(push.account):
        if earlier.push_id == push.push_id:
            left = count_of(earlier.open_count, "request is", "requests are")
            raise InputError(
                f"{left} still open in push {push.push_id}: drop what is not sent with "
                f"`marketing-sync push cancel {push.push_id}`, look up unknown outcomes with "
                "`marketing-sync push retry`, then revert it"
            )
    done = outbox.list_entries(push.push_id, DONE)
    entries = [entry for entry in done if entry.operation]
    if push.kind == ACTIVITIES:
        raise InputError(
            f"push {push.push_id} can't be reverted: the API can't remove the "
            f"{len(entries):,} activities that it wrote"
        )
    if push.kind == CONTACTS:
        revert = _revert_contacts(known, outbox, entries)
    else:
        revert = _revert_tags(outbox, entries, with_tags=with_tags)
    if push.source.startswith(SOURCE):
        revert.audience_sync = push.source.removeprefix(SOURCE)
    return revert


# ---- contacts


def _revert_contacts(known: Known, outbox: Outbox, entries: Iterable[Entry]) -> Revert:
    revert = Revert({"email": [], "list_id": [], "status": []})
    parts: list[tuple[Entry, int]] = []
    for entry in entries:
        parts += [(entry, list_id) for list_id in entry.expected.lists]
    addresses = [_key_of(entry) for entry, _ in parts]
    members = known.by_address(addresses, with_fields=True)
    list_ids = {list_id for _, list_id in parts}
    shown_keys = known.shown_fields(list_ids)
    subjects = (_subject_of(entry, list_id) for entry, list_id in parts)
    pasts = outbox.find_last(known.account, subjects, CONTACTS, read_at=known.oldest_reading)
    for entry, list_id in parts:
        everywhere = members.get(_key_of(entry), [])
        here = [member for member in everywhere if member.list_id == list_id]
        labels = known.lists.fields.get(list_id, {})
        shown = shown_keys.get(list_id, set())
        reader = ListReader(labels, shown)
        subject = _subject_of(entry, list_id)
        past = pasts.get(subject)
        as_of = known.as_of.get(list_id)
        now = reader.find_present(here, past, as_of)
        status = None if now.status is None else STATUSES.get(now.status)
        current = {**now.fields, "status": status}
        _revert_contact(revert, entry, list_id, labels, current)
    return revert


def _revert_contact(
    revert: Revert,
    entry: Entry,
    list_id: int,
    labels: Mapping[str, str],
    current: Mapping[str, str | None],
) -> None:
    before = entry.expected.before.get(list_id)
    if before is None:
        revert.notes["contacts whose values before the push are unknown: not reverted"] += 1
        return
    if not before.exists:
        text = (
            "contacts that the push added to a list stay there, with the mails of its automations"
        )
        revert.notes[text] += 1
        return
    sent = _find_sent_values(entry, list_id)
    cells: dict[str, Cell] = {}
    for name, value in sent.items():
        old = before.values.get(name)
        now = current.get(name)
        pushed = value.strip()
        is_changed = now not in (None, pushed)
        if old is None:
            revert.notes[
                "values that were different before the push, but unknown: not reverted"
            ] += 1
        elif old == pushed:
            continue
        elif old == now:
            revert.notes["values that are already as before the push"] += 1
        elif is_changed:
            title = show_name(labels.get(name, name))
            revert.kept.append(f"{title} of {entry.email} on list {list_id}")
        else:
            cells[name] = old
    if cells:
        revert.add_row({"email": entry.email, "list_id": str(list_id), **cells})
        still = {name: sent[name] for name in cells}
        status = still.pop("status", None)
        still_labels = {name: labels[name] for name in still if name in labels}
        subject = _subject_of(entry, list_id)
        revert.sent[subject] = RevertedValues(status, still, still_labels)


def _find_sent_values(entry: Entry, list_id: int) -> dict[str, str]:
    """Field id (or `status`) → what was sent to the contact on the list."""
    expected = entry.expected
    sent = dict(expected.fields)
    is_kept = list_id in expected.kept_statuses
    is_left = list_id in expected.left_lists
    if expected.status and not is_kept and not is_left:
        sent["status"] = expected.status
    return sent


def _key_of(entry: Entry) -> str:
    return normal_form(entry.email or "")


def _subject_of(entry: Entry, list_id: int) -> str:
    return f"{_key_of(entry)}|{list_id}"


# ---- tags


def _revert_tags(outbox: Outbox, entries: list[Entry], *, with_tags: bool) -> Revert:
    """A tag that an earlier push gave stays."""
    revert = Revert({"email": [], "contact_id": [], "tag": [], "action": []})
    item_ids = [entry.item_id for entry in entries]
    first_id = min(item_ids, default=0)
    for entry in entries:
        noted = outbox.find_subjects([entry.item_id])
        subjects = noted[entry.item_id]
        last = outbox.find_last(entry.account, subjects, entry.kind)
        earlier = outbox.find_last(entry.account, subjects, entry.kind, done_before=first_id)
        pairs = [split_subject(subject) for subject in subjects]
        names = dict.fromkeys(name for name, _ in pairs)
        tags = dict.fromkeys(tag for _, tag in pairs)
        for tag in tags:
            last_change = find_latest(last, names, tag)
            before = find_latest(earlier, names, tag)
            _revert_tag(revert, entry, tag, last_change, before, with_tags)
    return revert


def _revert_tag(
    revert: Revert, entry: Entry, tag: str, last: Past | None, before: Past | None, with_tags: bool
) -> None:
    is_added = entry.operation == ADDTAG.name
    is_changed = last is not None and last.is_in_force and last.item_id != entry.item_id
    was_given = before is not None and before.content == ADD
    shown_tag = show_name(tag)
    if is_changed:
        contact = entry.email or entry.contact_id
        revert.kept.append(f"tag {shown_tag} of {contact}")
    elif is_added and was_given:
        revert.notes["tags that an earlier push had already given: not reverted"] += 1
    elif with_tags:
        action = REMOVE if is_added else ADD
        cells: dict[str, Cell] = {"tag": tag, "action": action}
        if entry.contact_id is None:
            cells["email"] = entry.email
        else:
            cells["contact_id"] = str(entry.contact_id)
        revert.add_row(cells)
    else:
        verb = "given" if is_added else "taken away"
        text = f"contacts were {verb} the tag {shown_tag}: --tags reverts that"
        revert.notes[text] += 1
