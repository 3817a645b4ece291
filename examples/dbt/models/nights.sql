{{ config(materialized='incremental') }}
select
    published_at,
    account,
    count(*) as contact_count,
    count(*) filter (clicked_90d_count > 0) as clicker_count
from {{ source('marts', 'contact_engagement') }}, {{ source('sync', 'published') }}
{% if is_incremental() %}
where published_at not in (select published_at from {{ this }})
{% endif %}
group by all
