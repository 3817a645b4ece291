-- How each campaign did, as of the last response about it; one row per account and campaign.

-- deleted ones too: a campaign's results stay true
with campaigns as (
    select * from {{ ref('stg_campaigns') }}
),

accounts as (
    select * from {{ ref('int_accounts') }}
),

latest_stats as (
    select * from {{ ref('stg_campaign_stats') }}
    qualify row_number() over (partition by account, campaign_id order by observed_on desc) = 1
),

-- as the service reports it, unless more messages were opened than that
delivery as (
    select account, campaign_id, delivered_count, coalesce(failed_count, bounced_count) as failed_count
    from campaigns
    left join latest_stats using (account, campaign_id)
    where delivered_count >= coalesce(opened_count, 0)
),

-- links and totals come in one response: links of an earlier day no longer exist
clicks as (
    select account, campaign_id, observed_on, count(*) as link_count,
        {{ whole_sum('click_count') }} as click_count, count(*) = count(clicker_count) as are_clickers_known
    from {{ ref('stg_campaign_links') }}
    group by all
),

clickers as (
    select account, campaign_id, count(distinct email_normalized) as clicker_count
    from {{ current('stg_campaign_clickers') }}
    group by all
),

channels as (
    select account, campaign_id, channel, sent_at, can_tell_openings from {{ ref('int_campaign_channels') }}
),

counted as (
    select
        account,
        campaigns.campaign_id,
        campaigns.subject,
        campaigns.name,
        campaigns.status,
        campaigns.type,
        campaigns.deleted_at is not null as is_deleted,
        campaigns.created_at,
        channels.channel,
        channels.can_tell_openings,
        channels.sent_at,
        {{ local_date('coalesce(channels.sent_at, campaigns.created_at)',
            'accounts.timezone') }} as compared_on,
        latest_stats.observed_on,
        coalesce(
            delivery.delivered_count + delivery.failed_count,
            latest_stats.opened_count + latest_stats.unopened_count + latest_stats.bounced_count
        ) as sent_count,
        coalesce(delivery.delivered_count,
            latest_stats.opened_count + latest_stats.unopened_count) as delivered_count,
        delivery.failed_count,
        case when channels.can_tell_openings then latest_stats.opened_count end as opened_count,
        case when channels.can_tell_openings then latest_stats.unopened_count end as unopened_count,
        latest_stats.bounced_count,
        latest_stats.unsubscribed_count,
        latest_stats.opened_percent,
        {{ is_percent_inconsistent('latest_stats') }} as is_percent_inconsistent,
        -- if a clicker of one link could not be read, the clicks of all links together are unknown, too
        case when latest_stats.campaign_id is not null and coalesce(clicks.are_clickers_known, true)
            then coalesce(clickers.clicker_count, 0) end as clicker_count,
        case when latest_stats.campaign_id is not null
            then case when clicks.link_count > 0 then clicks.click_count else 0 end end as click_count,
        case when latest_stats.campaign_id is not null then coalesce(clicks.link_count, 0) end as link_count
    from campaigns
    left join accounts using (account)
    left join latest_stats using (account, campaign_id)
    left join delivery using (account, campaign_id)
    left join clicks using (account, campaign_id, observed_on)
    left join clickers using (account, campaign_id)
    left join channels using (account, campaign_id)
),

rated as (
    select
        *,
        {{ rate('open_rate') }} as open_rate,
        {{ rate('click_rate') }} as click_rate,
        {{ rate('click_to_open_rate') }} as click_to_open_rate,
        {{ rate('bounce_rate') }} as bounce_rate,
        {{ rate('unsubscribe_rate') }} as unsubscribe_rate,
        type = 'standard' and sent_count > 0 and compared_on is not null as is_comparable
    from counted
),

-- an automation has no day of sending, so only standard campaigns are compared
compared as (
    select
        account,
        campaign_id,
        count(*) over others as comparable_count_90d,
        median(open_rate) over others as median_open_rate_90d,
        median(click_rate) over others as median_click_rate_90d
    from rated
    where is_comparable
    window others as (
        partition by account order by compared_on {{ days_frame(90) }} exclude current row
    )
),

ranked as (
    select
        this.account,
        this.campaign_id,
        1 + count(*) filter (where other.open_rate > this.open_rate) as open_rank_90d,
        1 + count(*) filter (where other.click_rate > this.click_rate) as click_rank_90d
    from rated as this
    join rated as other on
        other.account = this.account and other.is_comparable
        and {{ in_last_days('other.compared_on', 'this.compared_on', 90) }}
    where this.is_comparable
    group by all
)

select
    account,
    campaign_id,
    rated.subject,
    rated.name,
    rated.status,
    rated.type,
    rated.is_deleted,
    rated.channel,
    rated.created_at,
    rated.sent_at,
    rated.observed_on,
    rated.sent_count,
    rated.delivered_count,
    rated.failed_count,
    rated.opened_count,
    rated.unopened_count,
    rated.bounced_count,
    rated.unsubscribed_count,
    rated.opened_percent,
    rated.is_percent_inconsistent,
    rated.clicker_count,
    rated.click_count,
    rated.link_count,
    rated.open_rate,
    rated.click_rate,
    rated.click_to_open_rate,
    rated.bounce_rate,
    rated.unsubscribe_rate,
    {{ is_small_sample('rated.delivered_count') }} as is_small_sample,
    compared.comparable_count_90d,
    compared.median_open_rate_90d,
    rated.open_rate - compared.median_open_rate_90d as open_rate_over_median,
    case when rated.open_rate is not null then ranked.open_rank_90d end as open_rank_90d,
    compared.median_click_rate_90d,
    rated.click_rate - compared.median_click_rate_90d as click_rate_over_median,
    case when rated.click_rate is not null then ranked.click_rank_90d end as click_rank_90d,
    coalesce(messages.message_count, 0) as message_count,
    coalesce(messages.matched_count, 0) as matched_count,
    {{ safe_rate('messages.matched_count', 'messages.message_count') }} as matched_message_rate,
    coalesce(messages.timed_open_count, 0) as timed_open_count,
    messages.median_hours_to_open,
{%- for hours in [1, 24, 48] %}
    {{ safe_rate('messages.within_%dh_count' % hours,
        'messages.timed_open_count') }} as opened_within_{{ hours }}h_rate{{ "," if not loop.last }}
{%- endfor %}
from rated
left join compared using (account, campaign_id)
left join ranked using (account, campaign_id)
left join {{ ref('int_campaign_messages') }} as messages using (account, campaign_id)
