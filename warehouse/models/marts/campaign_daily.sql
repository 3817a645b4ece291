-- How each campaign grew from night to night; one row per campaign and day of asking.
with stats as (
    select * from {{ ref('campaign_stats_daily') }}
),

-- deleted ones too: what a campaign did stays true
campaigns as (
    select account, campaign_id, type, subject from {{ ref('stg_campaigns') }}
),

channels as (
    select account, campaign_id, can_tell_openings from {{ ref('int_campaign_channels') }}
),

-- a campaign that was asked and has no clicked link has no clicks
clicks as (
    select
        account,
        campaign_id,
        observed_on,
        true as has_links,
        {{ whole_sum('click_count') }} as click_count,
        {{ whole_sum('click_change') }} as click_change
    from {{ ref('campaign_links_daily') }}
    group by all
)

select
    account,
    campaign_id,
    observed_on,
    campaigns.subject,
    campaigns.type,
    stats.days_covered,
    stats.opened_count + stats.unopened_count + stats.bounced_count as sent_count,
    case when channels.can_tell_openings then stats.opened_count end as opened_count,
    stats.bounced_count,
    stats.unsubscribed_count,
    case when clicks.has_links then clicks.click_count else 0 end as click_count,
    stats.opened_change + stats.unopened_change + stats.bounced_change as sent_change,
    case when channels.can_tell_openings then stats.opened_change end as opened_change,
    stats.bounced_change,
    stats.unsubscribed_change,
    case when stats.days_covered is not null
        then case when clicks.has_links then clicks.click_change else 0 end end as click_change
from stats
left join campaigns using (account, campaign_id)
left join channels using (account, campaign_id)
left join clicks using (account, campaign_id, observed_on)
