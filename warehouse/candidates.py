"""What the tables say about each call that could be requested next: when it was requested, what came of it, what has happened since.

One Arrow row per call, cheap for a million contacts; the SQL is in `queries/`. Not here: deciding what is requested (`assets.planning`).
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from warehouse.lookups import REFUSAL_CODE, Lookups
from warehouse.sql import query

#: Days of a contact's dated history that tell how active it is.
HISTORY_DAYS = 90


class Candidates(Lookups):
    """Queries over the tables of one account. Nothing loaded yet means empty results."""

    def timeline_candidates(self, account: str) -> pa.Table:
        """One row per contact that exists: active ones first, then the newest first.

        Columns: contact_id; segment (a number for its lists and whether it is active), is_active, registered_at,
        first_seen_at; asked_at, request_id, first_asked_at, times_asked, times_changed of its timeline (NULL: never requested); and when
        something that may have to do with it was noticed last: row_at, clicked_at, redeemed_at, pushed_at. active_days: days of
        the last `HISTORY_DAYS` on which its timeline has something of its own or of automations; messages: of campaigns, in those days.
        """
        return self.read(query("timeline_candidates"), {"account": account, "days": HISTORY_DAYS})

    def coupon_candidates(self, account: str, nothing: Collection[int] = ()) -> pa.Table:
        """One row per e-mail address of contacts that exist, case aside, in the same order.

        A refusal with an errorCode among `nothing` counts as requested. Columns: email, number (the largest id of its contacts), and those
        of `timeline_candidates` from segment on, for its coupons; clicked_at only among what was noticed.
        """
        sql = query("coupon_candidates").format(refusal_code=REFUSAL_CODE)
        return self.read(sql, {"account": account, "nothing": list(nothing)})

    def campaign_candidates(self, account: str) -> pa.Table:
        """One row per campaign that exists, the newest first.

        Columns: campaign_id, type, created_at, row_at (when its entry in the listing changed last), asked_at (of its
        statistics; NULL: never), moved_on (the last day on which its totals differed from those before).
        """
        return self.read(query("campaign_candidates"), {"account": account})

    def campaign_waves(self, account: str, days: int) -> pa.Table:
        """What the statistics of the last `days` days noticed: one row per campaign and observation at which it moved.

        Columns: campaign_id, seen_at, share (of those reached: 1 when it was first seen sent, else newly opened over not
        opened before), reached, clickers (addresses that clicked, of the whole campaign).
        """
        return self.read(query("campaign_waves"), {"account": account, "days": days})

    def campaign_reach(self, account: str) -> pa.Table:
        """How many of each segment of contacts clicked in each campaign: campaign_id, segment, clickers."""
        return self.read(query("campaign_reach"), {"account": account})

    def plan_yields(self, account: str) -> pa.Table:
        """What fetching for each reason has brought so far: question, reason, asked, changed, expected."""
        return self.read(
            "select question, reason, sum(asked_count)::bigint as asked, sum(changed_count)::bigint as changed, "
            "sum(expected_count) as expected from sync.plans where account = $account group by all order by all",
            {"account": account},
        )
