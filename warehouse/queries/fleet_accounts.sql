-- What a shard's manifest and a home's status file tell of its accounts. Growth and requests count back from
-- `at`, when it was published or its run ended; runs are of the whole shard, since one run reads all its
-- accounts. Times are texts, as in JSON. One row per account.
with published as (select $at as published_at),
coverage as (
    select account, max(as_of) as data_as_of, max(as_of) filter (is_complete) as read_at,
        count(*) filter (not is_complete) as incomplete_parts
    from sync.coverage group by all
),
contacts as (
    select account, contact_id, min(registered_at) as registered_at
    from source.contacts where _deleted_at is null group by all
),
sized as (
    select account, count(*) as contacts,
        count(*) filter (registered_at > published_at - interval 7 day) as contacts_7_days,
        count(*) filter (registered_at > published_at - interval 30 day) as contacts_30_days
    from contacts, published group by all
),
events as (select account, count(*) as events from source.timeline_events group by all),
campaigns as (select account, count(*) as campaigns from source.campaigns where _deleted_at is null group by all),
rejected as (select account, count(*) as rejected_records from sync.rejected_records group by all),
requests as (
    select account,
        count(*) filter (requested_at > published_at - interval 24 hour) as requests_last_night,
        count(*) filter (requested_at > published_at - interval 24 hour and http_status = 429) as rate_limited_last_night,
        count(*) as requests_30_days
    from sync.requests, published where requested_at > published_at - interval 30 day group by all
),
runs as (
    select count(*) filter (outcome = 'failed') as failed_runs_7_days
    from sync.runs, published where started_at > published_at - interval 7 day
)
select account, coalesce(contacts, 0) as contacts, coalesce(contacts_7_days, 0) as contacts_7_days,
    coalesce(contacts_30_days, 0) as contacts_30_days, coalesce(events, 0) as events,
    coalesce(campaigns, 0) as campaigns, strftime(data_as_of, '%Y-%m-%dT%H:%M:%SZ') as data_as_of,
    strftime(read_at, '%Y-%m-%dT%H:%M:%SZ') as read_at, failed_runs_7_days,
    coalesce(rejected_records, 0) as rejected_records, incomplete_parts,
    coalesce(requests_last_night, 0) as requests_last_night,
    coalesce(rate_limited_last_night, 0) as rate_limited_last_night, coalesce(requests_30_days, 0) as requests_30_days
from coverage
cross join runs
left join sized using (account)
left join events using (account)
left join campaigns using (account)
left join rejected using (account)
left join requests using (account)
order by account
