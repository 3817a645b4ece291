-- How each campaign grew from night to night; one row per campaign and observed_on.
with stats as (
    select * from {{ ref('campaign_stats_daily') }}
),

-- deleted ones too: a campaign's results stay true
campaigns as (
    select account, campaign_id, type, subject from {{ ref('stg_campaigns') }}
),

channels as (
    select account, campaign_id, can_tell_openings from {{ ref('int_campaign_channels') }}
),

-- a campaign that was requested and has no clicked link has no clicks
clicks as (
    select
        account,
        campaign_id,
        observed_on,
        true as has_links,
        {{ whole_sum('click_count') }} as click_count
    from {{ ref('stg_campaign_links') }}
    group by all
),

counted as (
    select
        stats.*,
        case when clicks.has_links then clicks.click_count else 0 end as click_count
    from stats
    left join clicks using (account, campaign_id, observed_on)
)

select
    account,
    campaign_id,
    observed_on,
    campaigns.subject,
    campaigns.type,
    days_covered,
    opened_count + unopened_count + bounced_count as sent_count,
    case when channels.can_tell_openings then opened_count end as opened_count,
    bounced_count,
    unsubscribed_count,
    click_count,
    opened_change + unopened_change + bounced_change as sent_change,
    case when channels.can_tell_openings then opened_change end as opened_change,
    bounced_change,
    unsubscribed_change,
    -- of all links together, so that a link that disappears takes its clicks with it
    case when days_covered is not null
        then click_count - lag(click_count, 1, 0)
            over (partition by account, campaign_id order by observed_on) end as click_change
from counted
left join campaigns using (account, campaign_id)
left join channels using (account, campaign_id)
