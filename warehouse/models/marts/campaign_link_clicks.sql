-- How often each link of each campaign was clicked, as of the last response that named it; one row per account,
-- campaign and link.

with links as (
    select * from {{ ref('stg_campaign_links') }}
),

stats as (
    select account, campaign_id, max(observed_on) as last_asked_on
    from {{ ref('stg_campaign_stats') }}
    group by all
),

observed as (
    select account, campaign_id, url, min(observed_on) as first_observed_on
    from links
    group by all
),

latest as (
    select * from links
    qualify row_number() over (partition by account, campaign_id, url order by observed_on desc) = 1
),

campaigns as (
    select
        account,
        campaign_id,
        campaigns.subject,
        campaigns.delivered_count,
        {{ local_date('campaigns.created_at', 'accounts.timezone') }} as created_on
    from {{ ref('campaign_performance') }} as campaigns
    left join {{ ref('int_accounts') }} as accounts using (account)
),

-- clicks up to seven days before the last response; without a response that old, the week is unknown
a_week_before as (
    select links.account, links.campaign_id, links.url,
        arg_max_null(links.click_count, links.observed_on) as click_count
    from links
    join stats using (account, campaign_id)
    where {{ observed_before('links.observed_on', 'stats.last_asked_on', 7) }}
    group by all
),

asked_a_week_before as (
    select distinct older.account, older.campaign_id
    from {{ ref('stg_campaign_stats') }} as older
    join stats using (account, campaign_id)
    where {{ observed_before('older.observed_on', 'stats.last_asked_on', 7) }}
)

select
    account,
    campaign_id,
    url,
    campaigns.subject,
    latest.message as link_text,
    observed.first_observed_on,
    latest.observed_on,
    coalesce(latest.observed_on = stats.last_asked_on, false) as is_current,
    latest.clicker_count,
    latest.click_count,
    case
        when campaigns.created_on > stats.last_asked_on - 7 then latest.click_count
        when asked_a_week_before.account is not null
            then latest.click_count
                - case when a_week_before.url is not null then a_week_before.click_count else 0 end
    end as click_count_7d,
    {{ safe_rate('latest.clicker_count', 'campaigns.delivered_count') }} as click_rate,
    {{ safe_rate('latest.click_count', 'case when bool_and(latest.click_count is not null) over campaign '
        ~ 'then sum(latest.click_count) over campaign end') }} as click_share_rate,
    case when latest.click_count is not null
        then rank() over (campaign order by latest.click_count desc nulls last) end as click_rank
from latest
join observed using (account, campaign_id, url)
left join stats using (account, campaign_id)
left join campaigns using (account, campaign_id)
left join a_week_before using (account, campaign_id, url)
left join asked_a_week_before using (account, campaign_id)
window campaign as (partition by account, campaign_id)
