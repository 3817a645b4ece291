"""How far a push is, in figures. Not here: wording (`report`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.write_back.item import State
from pipelines.write_back.outbox.store import Store

#: A row that is part of several items is as far as the one least far.
_LEAST_FAR = (State.SENDING, State.UNKNOWN, State.PLANNED, State.REJECTED, State.APPLIED, State.VERIFIED, State.SKIPPED)


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a push is: input rows by state, requests by state, rows that our own checks rejected, requests read back otherwise."""

    rows: Mapping[State, int]
    requests: Mapping[State, int]
    rejected_by_check: int
    drifted: int

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be sent or found out."""
        return not any(self.requests.get(state) for state in (State.PLANNED, State.SENDING, State.UNKNOWN))


def counts_of(store: Store, push_id: int) -> Counts:
    rank = " ".join(f"when '{state}' then {number}" for number, state in enumerate(_LEAST_FAR))
    rows = store.rows(
        f"select worst, count(*) from (select min(case state {rank} end) as worst from item, json_each(item.rows)"  # noqa: S608
        " where push_id = ? group by value) group by worst",
        (push_id,),
    )
    requests = store.rows("select state, count(*) from item where push_id = ? and operation is not null group by state", (push_id,))
    drifted = store.rows(
        "select count(*) filter (where drift <> '{}'), count(*) filter (where rejected_by = 'check') from item where push_id = ?",
        (push_id,),
    )[0]
    return Counts(
        {_LEAST_FAR[worst]: count for worst, count in rows}, {State(state): count for state, count in requests}, drifted[1], drifted[0]
    )
