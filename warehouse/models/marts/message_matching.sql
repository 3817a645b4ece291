-- How many messages have a known campaign; one row per account, kind and channel.
select
    account,
    kind,
    channel,
    count(*) as message_count,
    count(campaign_id) as matched_count,
    count(*) filter (where is_ambiguous) as ambiguous_count,
    count(*) filter (where campaign_id is null and not is_ambiguous) as unmatched_count,
    {{ safe_rate('count(campaign_id)', 'count(*)') }} as matched_message_rate
from {{ ref('contact_campaign') }}
group by all
