-- Members who clicked in the last 90 days, by list; one row per account and list.
-- `ref` names a mart or another model of this folder; macros of ours work here, too (warehouse/macros).
with members as (
    select account, email, lists, clicked_90d_count from {{ ref('contact_engagement') }}
    where status = 'active'
),

by_list as (
    select account, unnest(lists) as list_name, clicked_90d_count > 0 as has_clicked from members
)

select
    account,
    list_name,
    count(*) as member_count,
    count(*) filter (where has_clicked) as clicker_count,
    {{ safe_rate('count(*) filter (where has_clicked)', 'count(*)') }} as clicker_rate
from by_list
group by all
