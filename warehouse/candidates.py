"""What the tables say about each call that could be requested next: when it was requested, what came of it, what has happened since.

One Arrow row per call, cheap for a million contacts. Not here: deciding what is requested (`assets.planning`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

import pyarrow as pa

from warehouse.lookups import REFUSAL_CODE
from warehouse.sql import Params

#: Days of a contact's dated history that tell how active it is.
HISTORY_DAYS = 90
#: What a timeline calls messages of campaigns (api-observed row 22): they say what the account does, not the contact.
_MESSAGES = "('email-campaign-sent', 'mail-sent', 'email-sent')"

_LIVE = "account = $account and _deleted_at is null"
_ADDRESS = "lower(trim(email))"
_NO_PUSHES = "select null::bigint as contact_id, null::varchar as email, null::timestamptz as pushed_at where false"

#: What the last totals of a campaign say about how many it reached.
_REACHED = "coalesce(opened_count, 0) + coalesce(unopened_count, 0) + coalesce(bounced_count, 0)"


class Candidates(ABC):
    """Queries over the tables of one account. Nothing loaded yet means empty results."""

    @abstractmethod
    def read(self, sql: str, params: Params = None) -> pa.Table:
        """The rows of one query as an Arrow table."""

    def timeline_candidates(self, account: str) -> pa.Table:
        """One row per contact that exists: active ones first, then the newest first.

        Columns: contact_id; segment (a number for its lists and whether it is active), is_active, registered_at,
        first_seen_at; asked_at, request_id, first_asked_at, times_asked, times_changed of its timeline (NULL: never requested); and when
        something that may have to do with it was noticed last: row_at, clicked_at, redeemed_at, pushed_at. active_days: days of
        the last `HISTORY_DAYS` on which its timeline has something of its own or of automations; messages: of campaigns, in those days.
        """
        return self.read(
            f"""
            with people as (
                select contact_id, min({_ADDRESS}) as email, coalesce(bool_or(status = 'active'), false) as is_active,
                    bit_xor(hash(list_id)) as lists, max(registered_at) as registered_at, min(_first_seen_at) as first_seen_at,
                    max(_changed_at) as row_at
                from source.contacts where {_LIVE} group by contact_id
            ),
            clicked as (
                select {_ADDRESS} as email, max(_changed_at) as clicked_at from source.campaign_clickers where {_LIVE} group by 1
            ),
            redeemed as (
                -- by the day that the service names: the row itself may have come after tonight's timeline
                select {_ADDRESS} as email, max(redeemed_on)::timestamptz + interval 1 day as redeemed_at from source.coupons
                where account = $account and is_redeemed group by 1
            ),
            happened as (
                select contact_id, occurred_at, coalesce(key in {_MESSAGES}, false) as is_message
                from source.timeline_events where account = $account
                union all select contact_id, visited_at, false from source.timeline_visits
                where account = $account and lower(utm_medium) is distinct from 'email'  -- those are clicks, which campaigns name
                union all select contact_id, triggered_at, false from source.timeline_automations where account = $account
            ),
            active as (
                select contact_id, count(distinct occurred_at::date) filter (where not is_message) as active_days,
                    count(*) filter (where is_message) as messages
                from happened where occurred_at > now() - to_days({HISTORY_DAYS}) group by 1
            ),
            pushes as ({self._pushes()}),
            pushed as (select contact_id, max(pushed_at) as pushed_at from pushes where contact_id is not null group by 1),
            pushed_to as (select email, max(pushed_at) as pushed_at from pushes where contact_id is null group by 1)
            select p.contact_id, hash(p.lists, p.is_active) as segment, p.is_active, p.registered_at, p.first_seen_at,
                c.timeline_asked_at as asked_at, c.timeline_request as request_id, c.timeline_first_asked_at as first_asked_at,
                c.timeline_times_asked as times_asked, c.timeline_times_changed as times_changed,
                a.active_days, a.messages, p.row_at, k.clicked_at, r.redeemed_at, greatest(w.pushed_at, t.pushed_at) as pushed_at
            from people p
            left join sync.contact_coverage c on c.account = $account and c.contact_id = p.contact_id
            left join active a on a.contact_id = p.contact_id
            left join clicked k on k.email = p.email
            left join redeemed r on r.email = p.email
            left join pushed w on w.contact_id = p.contact_id
            left join pushed_to t on t.email = p.email
            order by p.is_active desc, p.registered_at desc nulls last, p.contact_id desc
            """,
            {"account": account},
        )

    def coupon_candidates(self, account: str, nothing: Collection[int] = ()) -> pa.Table:
        """One row per e-mail address of contacts that exist, case aside, in the same order.

        A refusal with an errorCode among `nothing` counts as requested. Columns: email, number (the largest id of its contacts), and those
        of `timeline_candidates` from segment on, for its coupons; clicked_at only among what was noticed.
        """
        return self.read(
            f"""
            with people as (
                select {_ADDRESS} as email, max(contact_id) as number, coalesce(bool_or(status = 'active'), false) as is_active,
                    bit_xor(hash(list_id)) as lists, max(registered_at) as registered_at, min(_first_seen_at) as first_seen_at
                from source.contacts where {_LIVE} and trim(email) <> '' group by 1
            ),
            answered as (
                select {_ADDRESS} as email, arg_max_null(coupon_asked_at, coalesce(coupon_request, 0)) as asked_at,
                    max(coupon_request) as request_id, min(coupon_first_asked_at) as first_asked_at,
                    max(coupon_times_asked) as times_asked, max(coupon_times_changed) as times_changed
                from sync.contact_coverage where account = $account and coupon_asked_at is not null group by 1
            ),
            refused as (
                select lower(trim(params ->> 'email')) as email, arg_max(requested_at, request_id) as asked_at,
                    max(request_id) as request_id, min(requested_at) as first_asked_at, count(*) as times_asked, 0 as times_changed
                from sync.requests where account = $account and operation = 'emailmarketing/getcoupon' and outcome = 'refused'
                    and list_contains($nothing::bigint[], {REFUSAL_CODE}) group by 1
            ),
            asked as (
                select email, arg_max_null(asked_at, coalesce(request_id, 0)) as asked_at, max(request_id) as request_id,
                    min(first_asked_at) as first_asked_at,
                    sum(times_asked)::bigint as times_asked, sum(times_changed)::bigint as times_changed
                from (from answered union all by name from refused) group by email
            ),
            clicked as (
                select {_ADDRESS} as email, max(_changed_at) as clicked_at from source.campaign_clickers where {_LIVE} group by 1
            )
            select p.email, p.number, hash(p.lists, p.is_active) as segment, p.is_active, p.registered_at, p.first_seen_at,
                a.asked_at, a.request_id, a.first_asked_at, a.times_asked, a.times_changed, k.clicked_at
            from people p left join asked a using (email) left join clicked k using (email)
            order by p.is_active desc, p.registered_at desc nulls last, p.number desc
            """,
            {"account": account, "nothing": list(nothing)},
        )

    def campaign_candidates(self, account: str) -> pa.Table:
        """One row per campaign that exists, the newest first.

        Columns: campaign_id, type, created_at, row_at (when its entry in the listing changed last), asked_at (of its
        statistics; NULL: never), moved_on (the last day on which its totals differed from those before).
        """
        return self.read(
            f"""
            with moves as (
                select campaign_id, observed_on, {_REACHED} as reached, opened_count, bounced_count, unsubscribed_count,
                    lag((reached, opened_count, bounced_count, unsubscribed_count)) over own as before
                from source.campaign_stats where account = $account
                window own as (partition by campaign_id order by observed_on)
            ),
            moved as (
                select campaign_id, max(observed_on) as moved_on from moves
                where before is not null and before is distinct from (reached, opened_count, bounced_count, unsubscribed_count) group by 1
            ),
            asked as (
                select campaign_id, max(_changed_at) as asked_at from source.campaign_stats where account = $account group by 1
            )
            select c.campaign_id, c.type, c.created_at, c._changed_at as row_at, a.asked_at, m.moved_on
            from source.campaigns c left join asked a using (campaign_id) left join moved m using (campaign_id)
            where c.account = $account and c._deleted_at is null
            order by c.campaign_id desc
            """,
            {"account": account},
        )

    def campaign_waves(self, account: str, days: int) -> pa.Table:
        """What the statistics of the last `days` days noticed: one row per campaign and observation at which it moved.

        Columns: campaign_id, seen_at, share (of those reached: 1 when it was first seen sent, else newly opened over not
        opened before), reached, clickers (addresses that clicked, of the whole campaign).
        """
        return self.read(
            f"""
            with stats as (
                select campaign_id, observed_on, _changed_at as seen_at, {_REACHED} as reached,
                    coalesce(opened_count, 0) as opened, coalesce(unopened_count, 0) as unopened
                from source.campaign_stats where account = $account
            ),
            steps as (
                select *, lag(reached) over own as reached_before, lag(opened) over own as opened_before,
                    lag(unopened) over own as unopened_before
                from stats window own as (partition by campaign_id order by observed_on)
            ),
            clickers as (
                select campaign_id, count(distinct {_ADDRESS}) as clickers from source.campaign_clickers where {_LIVE} group by 1
            )
            select s.campaign_id, s.seen_at,
                case when coalesce(reached_before, 0) = 0 then 1.0
                    else least(1.0, greatest(opened - opened_before, reached - reached_before, 0) / greatest(unopened_before, 1))
                end as share,
                s.reached, coalesce(k.clickers, 0) as clickers
            from steps s left join clickers k using (campaign_id)
            where s.reached > 0 and share > 0 and s.seen_at > now() - to_days(cast($days as integer))
                and s.seen_at < now() + interval 12 hour
            order by s.seen_at, s.campaign_id
            """,
            {"account": account, "days": days},
        )

    def campaign_reach(self, account: str) -> pa.Table:
        """How many of each segment of contacts clicked in each campaign: campaign_id, segment, clickers."""
        return self.read(
            f"""
            with people as (
                select min({_ADDRESS}) as email, coalesce(bool_or(status = 'active'), false) as is_active,
                    bit_xor(hash(list_id)) as lists
                from source.contacts where {_LIVE} group by contact_id
            ),
            segments as (select distinct email, hash(lists, is_active) as segment from people),
            clickers as (select distinct campaign_id, {_ADDRESS} as email from source.campaign_clickers where {_LIVE})
            select campaign_id, segment, count(*) as clickers from clickers join segments using (email) group by all order by all
            """,
            {"account": account},
        )

    def plan_yields(self, account: str) -> pa.Table:
        """What fetching for each reason has brought so far: question, reason, asked, changed, expected."""
        return self.read(
            "select question, reason, sum(asked_count)::bigint as asked, sum(changed_count)::bigint as changed, "
            "sum(expected_count) as expected "
            "from sync.plans where account = $account group by all order by all",
            {"account": account},
        )

    def _pushes(self) -> str:
        """Our own writes, those included whose outcome is not known; nothing while nobody has written anything."""
        found = self.read("select count(*) from duckdb_tables() where schema_name = 'sync' and table_name = 'writebacks'")
        if not found.column(0)[0].as_py():
            return _NO_PUSHES
        return (
            f"select contact_id, {_ADDRESS} as email, greatest(sent_at, done_at) as pushed_at "
            "from sync.writebacks where account = $account and coalesce(done_at, sent_at) is not null "
            "and coalesce(state, '') not in ('rejected', 'skipped')"
        )
