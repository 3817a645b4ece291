"""Planning a contact push: reads the rows, compares each with the known contacts list by list, and
decides what is sent.

Not here: the request for a decision (`contact_items`), the look-up just before it is sent
(`contact_requests`)."""

from collections.abc import Iterator, Mapping

from marketing_api.address import normal_form
from marketing_api.records.contacts import STATUSES
from write_back.account_state import Content, ListReader, Member, Present
from write_back.consent import ACTIVE, LEFT, REFUSING, Decision, decide_status, is_raised
from write_back.input import values
from write_back.input.rows import show_name, text_of
from write_back.input.values import BadValue
from write_back.item import DONE, Item, Past
from write_back.kinds.contact_items import ContactRow, ListComparison, make_item
from write_back.planning import (
    QUEUED,
    REACHES_PEOPLE,
    SENT_BEFORE,
    UNCHANGED,
    Planning,
    find_contradictions,
)

RESUBSCRIBED = (
    "a contact that is unsubscribed, bounced or unconfirmed is made active (or unconfirmed)"
)
ADDED_AGAIN = (
    "was removed from the list before: adding it again starts the list's automations again"
)
REMOVED = "was removed from the list before: an audience sync adds nobody again without --resync"
_CODES = {word: code for code, word in STATUSES.items()}


class ContactsPlanning(Planning):
    """Compares rows with the known contacts and with earlier pushes, and makes items of the
    differences."""

    def __post_init__(self) -> None:
        super().__post_init__()
        empty = "" if self.options.clear_empty else None
        #: Title of a custom field's column → its texts; None: the cell says nothing.
        self._columns = {
            title: [empty if cell is None else text_of(cell) for cell in column]
            for title, column in self.picked.fields.items()
        }
        self._field_ids: dict[int, dict[str, str]] = {}
        self._readers: dict[int, ListReader] = {}
        self._is_compared = False  # whether the warehouse shows a row as unchanged

    def plan_rows(self) -> None:
        read = list(self.read_rows(self._read_row))
        if self.options.keep != "last":
            read = list(self._without_contradictions(read))
        tried = [self.try_row(row.number, self._without_repeated_lists, row) for row in read]
        rows = [row for row in tried if row is not None]
        if not rows:
            return
        self._look_up(rows)
        for row in rows:
            self.try_row(row.number, self._plan_row, row)
        if self._is_compared:
            self.add_warning(
                f"unchanged: as of {self.known.read_on()}, when the contacts were last read"
            )

    # ---- reading rows

    def _read_row(self, index: int, number: int) -> ContactRow:
        """Raises BadValue when a value cannot be sent."""
        cells = self.picked.cells
        email = values.read_address(cells["email"][index])
        list_ids = self.known.lists.find_lists(cells["list"][index])
        texts = self._read_fields(index)
        for list_id in list_ids:
            self._check_fields(list_id, texts)
        status = self._read_text("status", index)
        if status is not None:
            status = values.read_status(status)
        ip = self._read_text("ip_address", index)
        if ip is not None:
            ip = values.ip_address(ip)
        return ContactRow(number, email, normal_form(email), tuple(list_ids), status, ip, texts)

    def _without_contradictions(self, rows: list[ContactRow]) -> Iterator[ContactRow]:
        """Rows without those that contradict another row about an address on a list."""
        contradictions = find_contradictions(
            rows, lambda row: {(row.key, list_id): row.content for list_id in row.lists}
        )
        for row in rows:
            if row.number not in contradictions:
                yield row
                continue
            (_, list_id), other = contradictions[row.number]
            list_name = show_name(self.known.lists.names[list_id])
            what = f"row {other} says something else about the same address and list {list_name}"
            self.reject_row(row.number, f"{what}: keep one of them")

    def _without_repeated_lists(self, row: ContactRow) -> ContactRow:
        """Without the lists for which an earlier row says the same. Raises BadValue when none is
        left."""
        left = self.not_said(row.number, [(row.key, list_id) for list_id in row.lists])
        return row._replace(lists=tuple(list_id for _, list_id in left))

    def _read_text(self, name: str, index: int) -> str | None:
        column = self.picked.cells.get(name)
        if column is None:
            return None
        return text_of(column[index])

    def _read_fields(self, index: int) -> dict[str, str]:
        """Title of the column → text, without cells that say nothing."""
        texts: dict[str, str] = {}
        for title, column in self._columns.items():
            text = column[index]
            if text is not None:
                what = f"column {show_name(title)}"
                texts[title] = values.field_value(text, what)
        return texts

    def _check_fields(self, list_id: int, texts: Mapping[str, str]) -> None:
        """Raises BadValue when the list lacks a field that the row fills."""
        own = self._fields_of(list_id)
        for title, text in texts.items():
            if text and title not in own:
                list_name = show_name(self.known.lists.names[list_id])
                raise BadValue(f"list {list_name} has no field {show_name(title)}")

    def _fields_of(self, list_id: int) -> dict[str, str]:
        """Title of a column → the list's field that it names."""
        if list_id not in self._field_ids:
            self._field_ids[list_id] = self.known.lists.columns_of(list_id, self._columns)
        return self._field_ids[list_id]

    # ---- what is known of the contacts

    def _look_up(self, rows: list[ContactRow]) -> None:
        known = self.known
        keys = [row.key for row in rows]
        self._members = known.by_address(keys, with_fields=bool(self._columns))
        contact_ids = set[int]()
        for members in self._members.values():
            contact_ids.update(member.contact_id for member in members)
        #: The contacts on all their lists, under any address.
        self._same = known.by_id(contact_ids)
        self._gone = known.find_gone(keys)
        lists = set[int]()
        subjects: list[str] = []
        for row in rows:
            lists.update(row.lists)
            subjects += map(row.subject_on, row.lists)
        self._past = self.outbox.find_last(
            known.account, dict.fromkeys(subjects), self.kind, read_at=known.oldest_reading
        )
        shown_keys = known.shown_fields(lists) if self._columns else {}
        for list_id in lists:
            labels = known.lists.fields.get(list_id, {})
            keys_of_list = shown_keys.get(list_id, set())
            self._readers[list_id] = ListReader(labels, keys_of_list)
        never_read = lists - known.as_of.keys()
        for list_id in sorted(never_read):
            list_name = show_name(known.lists.names[list_id])
            self.add_warning(
                f"the contacts of list {list_name} were never read: all its rows count as new"
            )

    # ---- comparing a row with the contacts on a list

    def _compare_list(self, row: ContactRow, list_id: int) -> ListComparison:
        everywhere = self._members.get(row.key, [])
        members = [member for member in everywhere if member.list_id == list_id]
        past = self._past.get(row.subject_on(list_id))
        reader = self._readers[list_id]
        as_of = self.known.as_of.get(list_id)
        now = reader.find_present(members, past, as_of)
        ids = self._fields_of(list_id)
        fields = {ids[title]: text for title, text in row.values.items() if title in ids}
        if self.options.fill_only and now.exists:
            fields = reader.find_empty(now, fields)
        statuses = self._find_statuses(row, list_id, now, members, past)
        elsewhere = self._find_elsewhere(row, list_id)
        decision = self._decide_status(row, now, statuses, elsewhere)
        differing = [name for name, text in fields.items() if not reader.is_so(now, name, text)]
        return ListComparison(
            list_id=list_id,
            reader=reader,
            past=past,
            now=now,
            contact_ids=[member.contact_id for member in members],
            statuses=statuses,
            elsewhere=elsewhere,
            decision=decision,
            fields=fields,
            differing=differing,
        )

    def _find_statuses(
        self,
        row: ContactRow,
        list_id: int,
        now: Present,
        members: list[Member],
        past: Past | None,
    ) -> set[str | None]:
        """`ListComparison.statuses`; empty for a contact on the list whose status is unknown."""
        if now.exists:
            if now.status is not None:
                return {STATUSES.get(now.status)}
            different = {member.status for member in members}
            if len(different) > 1:
                return different
            return set()
        gone = self._gone.get(row.key, ())
        found = {member.status for member in gone if member.list_id == list_id}
        if past is not None and past.state in DONE:
            sent = Content.from_text(past.content).status
            found.add(STATUSES.get(sent or 0))
        return found & REFUSING

    def _find_elsewhere(self, row: ContactRow, list_id: int) -> dict[int, str]:
        """`ListComparison.elsewhere`, as far as it is known. Of several contacts on one list, the
        status counts that keeps most mails away. If the person is on no list, the statuses count
        with which the person was taken off."""
        everywhere: list[Member] = []
        for member in self._members.get(row.key, []):
            everywhere += self._same.get(member.contact_id, [member])
        if not everywhere:
            gone = self._gone.get(row.key, ())
            everywhere = [member for member in gone if member.status in REFUSING]
        status_by_list: dict[int, str] = {}
        for member in everywhere:
            if member.list_id == list_id or not member.status:
                continue
            other = status_by_list.get(member.list_id)
            if other is None or is_raised(member.status, other):
                status_by_list[member.list_id] = member.status
        return status_by_list

    def _decide_status(
        self,
        row: ContactRow,
        now: Present,
        statuses: set[str | None],
        elsewhere: Mapping[int, str],
    ) -> Decision:
        requested = row.status
        if now.exists and not statuses:  # the contact is looked up before sending
            return Decision(requested)
        if not now.exists:
            requested = requested or ACTIVE
        return decide_status(
            statuses, requested, elsewhere=elsewhere.values(), may_raise=self._may_raise(row)
        )

    def _may_raise(self, row: ContactRow) -> bool:
        return self.options.resubscribe and row.status is not None

    # ---- what is sent

    def _plan_row(self, row: ContactRow) -> None:
        is_known = row.key in self._members
        groups: dict[str, list[ListComparison]] = {}
        for list_id in row.lists:
            comparison = self._compare_list(row, list_id)
            content = self._plan_content(row, comparison)
            if content is not None:
                self._note_change(row, comparison)
                groups.setdefault(content, []).append(comparison)
        may_raise = self._may_raise(row)
        items: list[Item] = []
        for content, group in groups.items():
            status = self._plan_status(row, group[0])
            item = make_item(self.kind, row, content, status, group, may_raise=may_raise)
            items.append(item)
        # make_item raises BadValue if an item is invalid; then none of the row is planned
        for item, group in zip(items, groups.values(), strict=True):
            is_new = not all(comparison.now.exists for comparison in group)
            is_unknown = is_new and not is_known
            self.send_item(item, is_new=is_new, is_unknown_address=is_unknown)

    def _plan_content(self, row: ContactRow, comparison: ListComparison) -> str | None:
        """The content that is sent. None when there is nothing to send (the row is left), or when
        the service refused the same before (the row is rejected)."""
        reason = self._why_idle(row, comparison)
        if reason:
            self._is_compared |= reason == UNCHANGED
            self.leave_row(row.number, reason, row.email)
            return None
        status = self._plan_status(row, comparison)
        code = _CODES.get(status or "")
        content = Content(code, comparison.fields, row.ip).text
        past = comparison.past
        if past is None or past.content != content:
            return content
        # an audience sync does not repeat values that the service did not keep
        is_standing = self.options.is_standing
        as_of = None if is_standing else self.known.as_of.get(comparison.list_id)
        # values that were not kept count as refused until the contacts are read again
        if not past.is_refused or (past.is_drifted and not past.is_newer(as_of)):
            return content
        self.reject_as_before(row.number, past)
        return None

    def _why_idle(self, row: ContactRow, comparison: ListComparison) -> str | None:
        """Why there is nothing to send."""
        now = comparison.now
        if not comparison.is_same:
            return None if now.exists else self._why_not_added(row, comparison)
        if comparison.decision.is_left:
            return LEFT
        if now.is_queued:
            return QUEUED
        has_content = comparison.fields or row.ip or row.status
        if self.options.send_all and has_content:
            return None
        if now.is_ours:
            return SENT_BEFORE
        return UNCHANGED

    def _why_not_added(self, row: ContactRow, comparison: ListComparison) -> str | None:
        if comparison.decision.is_left:
            return LEFT
        may_add_again = self.options.send_all or not self.options.is_standing
        if may_add_again or not self._was_on_list(row, comparison.list_id):
            return None
        return REMOVED  # staff did it

    def _plan_status(self, row: ContactRow, comparison: ListComparison) -> str | None:
        """The status to be sent, if any."""
        decision = comparison.decision
        if self.options.send_all and not decision.is_left:
            return decision.status or row.status
        return decision.status

    # ---- what a person should see

    def _note_change(self, row: ContactRow, comparison: ListComparison) -> None:
        """The change for the sample, and what a person should know before sending it."""
        now = comparison.now
        decision = comparison.decision
        known_statuses = [*comparison.statuses, *comparison.elsewhere.values()]
        if decision.is_left:
            self.count_warning(LEFT)
        elif any(is_raised(known, decision.status) for known in known_statuses):
            self.count_warning(RESUBSCRIBED)
        if not now.exists:
            self._note_new(row, comparison.list_id)
            return
        if decision.status is not None:
            before = None if now.status is None else STATUSES.get(now.status)
            self.note_change(row.number, row.email, "status", before, decision.status)
        fields_of_list = self._fields_of(comparison.list_id)
        titles = {field_id: title for title, field_id in fields_of_list.items()}
        labels = self.known.lists.fields.get(comparison.list_id, {})
        for field_id in comparison.differing:
            title = titles[field_id]
            column = labels.get(title, title)  # a column may be named by the field's id
            before = now.fields.get(field_id)
            after = comparison.fields[field_id]
            self.note_change(row.number, row.email, column, before, after)

    def _note_new(self, row: ContactRow, list_id: int) -> None:
        self.add_warning(REACHES_PEOPLE)
        if self._was_on_list(row, list_id):
            self.count_warning(ADDED_AGAIN)
        words = [self.known.lists.names[list_id]]
        words += [f"{title}: {text}" for title, text in row.values.items() if text]
        after = "; ".join(words)
        self.note_change(row.number, row.email, "list", None, after)

    def _was_on_list(self, row: ContactRow, list_id: int) -> bool:
        """Whether the person is not on the list any more."""
        gone = self._gone.get(row.key, ())
        return any(member.list_id == list_id for member in gone)
