-- When each list was read for the first time, and whether it existed before; one row per account and list.
-- A list that is in the account's first listing of lists existed before the first sync: nothing is known about
-- it until its first complete reading. A list that appeared later began empty.
with zones as (
    select * from {{ ref('int_account_zones') }}
),

readings as (
    select
        account,
        split_part(scope, '=', 2)::bigint as list_id,
        min(as_of) as first_tried_at,
        min(as_of) filter (where is_complete) as first_complete_at
    from {{ source('sync', 'readings') }}
    where table_name = 'contacts'
    group by all
),

seen as (
    select account, list_id, min(first_seen_at) as first_seen_at
    from {{ ref('stg_contacts') }}
    group by all
),

lists as (
    select account, list_id, first_seen_at, deleted_at,
        first_seen_at > min(first_seen_at) over (partition by account) as is_new
    from {{ ref('stg_lists') }}
),

dated as (
    select
        account,
        list_id,
        case
            when is_new then lists.first_seen_at
            -- readings were not recorded yet: the first contacts came with the first one
            when seen.first_seen_at < coalesce(readings.first_tried_at, timestamptz '9999-01-01 00:00+00')
                then seen.first_seen_at
            else coalesce(readings.first_complete_at, lists.deleted_at)
        end as first_read_at,
        coalesce(is_new, false) as is_new
    from lists
    full join seen using (account, list_id)
    left join readings using (account, list_id)
)

select
    account,
    list_id,
    first_read_at,
    {{ local_date('first_read_at', 'zones.timezone') }} as first_read_on,
    zones.timezone,
    is_new
from dated
join zones using (account)
where coalesce(first_read_at, timestamptz '9000-01-01 00:00+00') >= zones.from_at
    and coalesce(first_read_at, timestamptz '9000-01-01 00:00+00') < zones.until_at
