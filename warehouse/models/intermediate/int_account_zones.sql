-- The time zone that the days of each account are counted in; one row per account and span.
-- An account that changes its time zone keeps its past days: what was observed in the evening of one day
-- doesn't move to the morning of the next one.
with readings as (
    select account, as_of, timezone,
        lag(timezone) over (partition by account order by as_of, timezone) as timezone_before
    from {{ source('sync', 'readings') }}
),

changes as (
    select account, timezone, as_of
    from readings
    where timezone is distinct from timezone_before
)

select
    account,
    coalesce(changes.timezone, accounts.timezone) as timezone,
    case when lag(as_of) over by_age is null then timestamptz '1970-01-01 00:00+00' else as_of end as from_at,
    coalesce(lead(as_of) over by_age, timestamptz '9999-01-01 00:00+00') as until_at
from (select account, timezone from {{ ref('int_accounts') }}) as accounts
left join changes using (account)
window by_age as (partition by account order by as_of)
