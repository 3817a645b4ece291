-- The accounts with their time zone and the day that their data is of; one row per account.
-- "Today" is the day of the newest answer, not of the build: models are a function of the data, and an
-- account that could not be read for a week does not turn dormant by that.
with read_accounts as (
    -- the newest by its request: a clock that was ahead once dates an older answer later
    select account, arg_max(as_of, (coalesce(last_request, 0), as_of)) as as_of
    from {{ source('sync', 'coverage') }}
    group by account
),

businesses as (
    select account, timezone from {{ current('stg_business') }}
),

settings as (
    -- accounts.toml may override what an account says about itself
    select account, json_extract_string(zones, '$."' || account || '"') as timezone
    from (select {{ text_of(var('time_zones')) }}::json as zones), read_accounts
),

zoned as (
    select
        account,
        as_of,
        coalesce(
            settings.timezone,
            (select max(zones.name) from pg_timezone_names() as zones where zones.name = businesses.timezone),
            {{ text_of(var('default_time_zone')) }}
        ) as timezone
    from read_accounts
    left join businesses using (account)
    left join settings using (account)
)

-- not the moment itself: what is made from this would change with every night
select
    account,
    timezone,
    {{ local_date('as_of', 'timezone') }} as today
from zoned
