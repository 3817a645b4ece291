-- The accounts with their time zone and the current day of their data; one row per account.
-- "Today" is the day of the newest response, not of the build: models are a function of the data. An account
-- that could not be read for a week does not turn dormant because of that.
with read_accounts as (
    -- the newest by its request: if a clock was ahead once, an older response has a later date
    select account, arg_max(as_of, (coalesce(last_request, 0), as_of)) as as_of
    from {{ source('sync', 'coverage') }}
    group by account
),

businesses as (
    select account, timezone from {{ current('stg_business') }}
),

settings as (
    -- accounts.toml may override what the account reports
    select account, json_extract_string(zones, '$."' || account || '"') as timezone
    from (select {{ text_of(var('time_zones')) }}::json as zones), read_accounts
),

readings as (
    -- an account that is no longer in accounts.toml keeps its days
    select account, arg_max(timezone, as_of) as timezone from {{ source('sync', 'readings') }} group by account
),

zoned as (
    select
        account,
        as_of,
        coalesce(
            settings.timezone,
            readings.timezone,
            (select max(zones.name) from pg_timezone_names() as zones where zones.name = businesses.timezone),
            {{ text_of(var('default_time_zone')) }}
        ) as timezone
    from read_accounts
    left join businesses using (account)
    left join settings using (account)
    left join readings using (account)
)

-- not the moment itself: everything computed from it would change every night
select
    account,
    timezone,
    {{ local_date('as_of', 'timezone') }} as today
from zoned
