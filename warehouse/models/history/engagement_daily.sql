-- How many addresses were in each engagement tier; one row per tier and day on which the models were built.
-- Tiers of past days can't be computed later: timelines are cut and contacts are deleted.
{{ config(
    materialized='incremental', incremental_strategy='delete+insert', unique_key=['account', 'day_on'],
    full_refresh=false, on_schema_change='append_new_columns'
) }}
select
    account,
    today as day_on,
    engagement_tier,
    count(*) as address_count,
    sum(sent_90d_count)::bigint as sent_90d_count,
    sum(opened_90d_count)::bigint as opened_90d_count,
    sum(clicked_90d_count)::bigint as clicked_90d_count
from {{ ref('contact_engagement') }}
join {{ ref('int_accounts') }} using (account)
group by all
