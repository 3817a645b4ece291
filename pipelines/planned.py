"""What was planned and what came of it, in words: at the end of a sync, and in `status`. Not here: planning (`assets.planning`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

from assets.reader import Reader
from warehouse.coverage import GRACE

#: The last plan of each account, by question.
LAST_PLANS = """
    with runs as (select account, question, arg_max(run_id, planned_at) as run_id from sync.plans group by all),
    lines as (from sync.plans join runs using (account, question, run_id))
    select account, question, max(planned_at) as planned_at, sum(planned_count)::bigint as planned, sum(asked_count)::bigint as asked,
        sum(changed_count)::bigint as changed, string_agg(reason || ' ' || planned_count, ', ' order by planned_count desc) as why
    from lines group by account, question order by account, question
"""


def planned_by(reader: Reader) -> Iterator[str]:
    """One line per account and question: how many were asked and why, and that the others were not due."""
    for (asset, account), result in reader.results.items():
        if result.line is not None:
            yield f"account {account}, {asset}: {result.line.words}"


def last_plan(row: Mapping[str, Any]) -> str:
    """One row of `LAST_PLANS`."""
    return (
        f"account {row['account']}, {row['question']}: the last plan had {row['planned']:,} ({row['why']}); "
        f"{row['asked']:,} came, {row['changed']:,} of them with something new"
    )


def due(moment: dt.datetime | None, now: dt.datetime) -> str:
    """When a table is to be read again."""
    if moment is None:
        return ""
    if moment + GRACE < now:
        return "late"
    hours = max((moment - now).total_seconds() / 3600, 0)
    return f"in {hours:.0f} hours" if hours < 48 else f"in {hours / 24:.0f} days"
