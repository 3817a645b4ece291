-- The accounts in the status file of a home; one row per account.
-- Requests count back from `at`, when the run ended. Times are texts, as in JSON.
with coverage as (
    select account,
        -- A time after the end is from a clock that was ahead, so it proves nothing; it is shown if it is the
        -- only one.
        coalesce(max(as_of) filter (is_complete and as_of <= $at::timestamptz + interval 5 minute),
            max(as_of) filter (is_complete)) as read_at,
        count(*) filter (not is_complete) as incomplete_parts
    from sync.coverage group by all
),
sized as (
    select account, count(distinct contact_id) as contacts
    from source.contacts where _deleted_at is null group by all
),
rejected as (select account, count(*) as rejected_records from sync.rejected_records group by all),
requests as (
    select account, count(*) as requests_last_night,
        count(*) filter (http_status = 429) as rate_limited_last_night
    from sync.requests where requested_at > $at::timestamptz - interval 24 hour group by all
)
select account, coalesce(contacts, 0) as contacts, strftime(read_at, '%Y-%m-%dT%H:%M:%SZ') as read_at,
    coalesce(rejected_records, 0) as rejected_records, incomplete_parts,
    coalesce(requests_last_night, 0) as requests_last_night,
    coalesce(rate_limited_last_night, 0) as rate_limited_last_night
from coverage
left join sized using (account)
left join rejected using (account)
left join requests using (account)
order by account
