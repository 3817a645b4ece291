-- How lists grow and shrink; one row per list and day, without gaps from its first day to the account's today.
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

versions as (
    select account, list_id, contact_id, status, registered_at, valid_from, valid_to, is_current, ended_by
    from {{ ref('history_contacts') }}
),

sequences as (
    select
        *,
        lag(status) over by_contact as status_before,
        lag(ended_by) over by_contact as ended_before
    from versions
    window by_contact as (partition by account, list_id, contact_id order by valid_from)
),

-- what each version did to its list, and when
steps as (
    select
        account,
        list_id,
        -- a contact joined when it registered; one that came back, when it was seen again
        case when ended_before is null then coalesce(least(registered_at, valid_from), valid_from) else valid_from end as begun_at,
        valid_to as ended_at,
        ended_before is null or ended_before = 'deleted' as is_join,
        coalesce(ended_by = 'deleted', false) as is_leave,
        status = 'active' as is_active,
        ended_before = 'changed' and status = 'unsubscribed' and status_before is distinct from status as is_unsubscribe,
        ended_before = 'changed' and status = 'bounced' and status_before is distinct from status as is_bounce
    from sequences
),

dated as (
    select
        account, list_id, {{ local_date('begun_at', 'timezone') }} as day_on,
        is_join::int as joined, 0 as left_count, is_unsubscribe::int as unsubscribed, is_bounce::int as bounced, is_active::int as active
    from steps
    join accounts using (account)
    union all
    select account, list_id, {{ local_date('ended_at', 'timezone') }}, 0, is_leave::int, 0, 0, -is_active::int
    from steps
    join accounts using (account)
    where ended_at is not null
),

changes as (
    select
        account,
        list_id,
        day_on,
        sum(joined) as joined_count,
        sum(left_count) as left_count,
        sum(unsubscribed) as unsubscribed_count,
        sum(bounced) as bounced_count,
        sum(active) as active_change
    from dated
    group by all
),

calendar as (
    select account, list_id, unnest(generate_series(min(day_on), greatest(max(day_on), any_value(today)), interval 1 day))::date as day_on
    from changes
    join accounts using (account)
    group by account, list_id
),

first_nights as (
    select account, {{ local_date('min(valid_from)', 'any_value(timezone)') }} as first_read_on
    from versions
    join accounts using (account)
    group by all
),

filled as (
    select
        account,
        list_id,
        day_on,
        coalesce(joined_count, 0)::bigint as joined_count,
        coalesce(left_count, 0)::bigint as left_count,
        coalesce(unsubscribed_count, 0)::bigint as unsubscribed_count,
        coalesce(bounced_count, 0)::bigint as bounced_count,
        coalesce(active_change, 0)::bigint as active_change,
        first_read_on
    from calendar
    left join changes using (account, list_id, day_on)
    join first_nights using (account)
)

select
    account,
    list_id,
    lists.name as list_name,
    day_on,
    joined_count,
    case when day_on >= first_read_on then left_count end as left_count,
    case when day_on >= first_read_on then unsubscribed_count end as unsubscribed_count,
    case when day_on >= first_read_on then bounced_count end as bounced_count,
    joined_count - left_count as net_change,
    sum(joined_count - left_count) over by_list::bigint as size,
    case when day_on >= first_read_on then sum(active_change) over by_list end::bigint as active_size,
    day_on >= first_read_on as is_observed
from filled
left join {{ source('source', 'lists') }} as lists using (account, list_id)
window by_list as (partition by account, list_id order by day_on)
