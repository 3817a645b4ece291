with members as (
    select account, unnest(lists) as list_name, clicked_90d_count > 0 as has_clicked
    from {{ source('marts', 'contact_engagement') }}
    where status = 'active'
)
select account, list_name, count(*) as member_count, count(*) filter (has_clicked) as clicker_count
from members
group by all
