-- The channel that the messages of each campaign used, and when they were sent; one row per campaign.
-- The service does not report the channel of a campaign. The timelines of contacts have it for each message.
with messages as (
    select
        account,
        campaign_id,
        case when min(channel) = max(channel) then min(channel) end as channel,
        min(sent_at) filter (where {{ is_plausible_moment('sent_at', "timestamptz 'infinity'") }}) as sent_at
    from {{ ref('contact_campaign') }}
    where campaign_id is not null
    group by all
),

reactions as (
    select account, campaign_id, max(opened_count) > 0 as has_openings from {{ ref('stg_campaign_stats') }}
        group by all
)

select
    account,
    campaigns.campaign_id,
    messages.channel,
    coalesce(case when campaigns.status = 'sent' then campaigns.sent_at end, messages.sent_at) as sent_at,
    -- the service lists e-mail campaigns; an automation may send text messages, too
    coalesce(reactions.has_openings, false)
        or coalesce(messages.channel = 'email', campaigns.type = 'standard', false)
        as can_tell_openings
from {{ ref('stg_campaigns') }} as campaigns
left join messages using (account, campaign_id)
left join reactions using (account, campaign_id)
