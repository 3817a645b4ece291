-- What the lake knows of every account. Growth and requests count back from the moment of publishing, ages
-- from now; runs are of the whole shard, since one run reads all its accounts. One row per account.
create or replace view fleet.accounts as
with coverage as (
    select shard, account, max(as_of) as data_as_of, count(*) filter (not is_complete) as incomplete_parts
    from sync.coverage group by all
),
contacts as (
    select shard, account, contact_id, min(registered_at) as registered_at
    from source.contacts where _deleted_at is null group by all
),
sized as (
    select shard, account, count(*) as contacts,
        count(*) filter (registered_at > published_at - interval 7 day) as contacts_7_days,
        count(*) filter (registered_at > published_at - interval 30 day) as contacts_30_days
    from contacts join fleet.shards using (shard) group by all
),
events as (select shard, account, count(*) as events from source.timeline_events group by all),
campaigns as (select shard, account, count(*) as campaigns from source.campaigns where _deleted_at is null
    group by all),
rejected as (select shard, account, count(*) as rejected_records from sync.rejected_records group by all),
requests as (
    select shard, account,
        count(*) filter (requested_at > published_at - interval 24 hour) as requests_last_night,
        count(*) as requests_30_days
    from sync.requests join fleet.shards using (shard) where requested_at > published_at - interval 30 day
        group by all
),
runs as (
    select shard, count(*) filter (outcome = 'failed') as failed_runs_7_days
    from sync.runs join fleet.shards using (shard) where started_at > published_at - interval 7 day
        group by all
)
select account, shard, coalesce(contacts, 0) as contacts, coalesce(contacts_7_days, 0) as contacts_7_days,
    coalesce(contacts_30_days, 0) as contacts_30_days, coalesce(events, 0) as events,
    coalesce(campaigns, 0) as campaigns,
    coverage.data_as_of, published_at,
    round(date_diff('minute', coverage.data_as_of, now()) / 60, 1) as age_hours,
    coalesce(failed_runs_7_days, 0) as failed_runs_7_days, coalesce(rejected_records, 0) as rejected_records,
    incomplete_parts,
    coalesce(requests_last_night, 0) as requests_last_night, coalesce(requests_30_days, 0) as requests_30_days
from coverage
join fleet.shards using (shard)
left join sized using (shard, account)
left join events using (shard, account)
left join campaigns using (shard, account)
left join rejected using (shard, account)
left join requests using (shard, account)
left join runs using (shard)
order by account, shard
