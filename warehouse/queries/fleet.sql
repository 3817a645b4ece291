-- What the manifests of the lake know: no file of a shard is opened. Ages are as of now.
create schema if not exists fleet;
create or replace table fleet.manifests as select unnest(from_json({manifests}, '[{
    "shard": "VARCHAR",
    "published": {
        "published_at": "TIMESTAMPTZ", "data_as_of": "TIMESTAMPTZ", "personal_data": "VARCHAR",
        "group_min": "BIGINT", "table_count": "BIGINT", "row_count": "BIGINT"
    },
    "accounts": [{
        "account": "VARCHAR", "contacts": "BIGINT", "contacts_7_days": "BIGINT", "contacts_30_days": "BIGINT",
        "events": "BIGINT", "campaigns": "BIGINT", "data_as_of": "TIMESTAMPTZ", "failed_runs_7_days": "BIGINT",
        "rejected_records": "BIGINT", "incomplete_parts": "BIGINT", "requests_last_night": "BIGINT",
        "requests_30_days": "BIGINT"
    }]
}]'), max_depth := 2);
create or replace view fleet.shards as select shard, published.* from fleet.manifests;
create or replace view fleet.accounts as
select account, shard, contacts, contacts_7_days, contacts_30_days, events, campaigns, data_as_of,
    published.published_at as published_at, round(date_diff('minute', data_as_of, now()) / 60, 1) as age_hours,
    failed_runs_7_days, rejected_records, incomplete_parts, requests_last_night, requests_30_days
from (select shard, published, unnest(accounts, max_depth := 2) from fleet.manifests)
order by account, shard;
-- A constant for DuckDB, so that `where shard in fleet.shards_of('NAME')` leaves out files before they are opened.
create or replace macro fleet.shards_of(name) as list_transform(list_filter(
    from_json({manifests}, '[{"shard": "VARCHAR", "accounts": [{"account": "VARCHAR"}]}]'),
    lambda each: list_contains(list_transform(each.accounts, lambda known: known.account), name)
), lambda each: each.shard)
