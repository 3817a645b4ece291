-- The days of each table that were read completely; one row per account, table and day. Only for tables that
-- are read by ranges of days.
-- A reading of a day that was not over proves nothing about the rest of that day.
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

ranges as (
    select
        account,
        table_name,
        is_complete,
        {{ local_date('as_of', 'timezone') }} as read_on,
        split_part(scope, '..', 1)::date as first_on,
        split_part(scope, '..', 2)::date as last_on
    from {{ source('sync', 'coverage') }}
    join accounts using (account)
    where regexp_full_match(scope, '\d{4}-\d{2}-\d{2}\.\.\d{4}-\d{2}-\d{2}')
),

days as (
    select account, table_name, is_complete, read_on,
        unnest(generate_series(first_on, last_on, interval 1 day))::date as day_on
    from ranges
)

select
    account,
    table_name,
    day_on,
    bool_or(is_complete) as is_read,
    bool_or(is_complete and day_on < read_on) as is_complete
from days
group by all
