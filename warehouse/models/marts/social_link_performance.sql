-- How often each short link was clicked and from where, as of the last answer: one row per account and link.

with links as (
    select * from {{ ref('stg_social_links') }}
),

accounts as (
    select * from {{ ref('int_accounts') }}
),

clicks as (
    select *, max(observed_on) over (partition by account, link_id) as last_asked_on
    from {{ ref('stg_social_link_clicks') }}
),

-- the last total of each network, and what it was when last asked at least 7 and 28 days before the link's last asking
networks as (
    select
        account,
        link_id,
        network,
        max(last_asked_on) as last_asked_on,
        max_by(click_count, observed_on) as click_count,
        max_by(click_count, observed_on) filter (where {{ observed_before('observed_on', 'last_asked_on', 7) }}) as click_count_before_7d,
        max_by(click_count, observed_on) filter (where {{ observed_before('observed_on', 'last_asked_on', 28) }}) as click_count_before_28d
    from clicks
    group by account, link_id, network
),

totals as (
    select
        account,
        link_id,
        max(last_asked_on) as observed_on,
        sum(click_count)::bigint as click_count,
        sum(click_count_before_7d)::bigint as click_count_before_7d,
        sum(click_count_before_28d)::bigint as click_count_before_28d,
        count(*) filter (where click_count > 0) as network_count,
        arg_max(network, (click_count, network)) filter (where click_count > 0) as top_network,
        max(click_count) as top_click_count
    from networks
    group by all
),

posts as (
    select account, link_id, count(*) as post_count, min(scheduled_at) as first_posted_at
    from {{ ref('int_post_links') }}
    group by all
),

dated as (
    select
        links.*,
        {{ local_date('links.created_at', 'accounts.timezone') }} as created_on
    from links
    left join accounts using (account)
)

select
    account,
    link_id,
    dated.short_url,
    dated.real_url,
    dated.message,
    dated.created_at,
    totals.observed_on,
    dated.track_count,
    totals.click_count,
    totals.click_count - case
        when dated.created_on > totals.observed_on - 7 then 0 else totals.click_count_before_7d
    end as click_count_7d,
    totals.click_count - case
        when dated.created_on > totals.observed_on - 28 then 0 else totals.click_count_before_28d
    end as click_count_28d,
    totals.click_count / (1 + totals.observed_on - dated.created_on) as clicks_per_day,
    totals.network_count,
    totals.top_network,
    {{ safe_rate('totals.top_click_count', 'totals.click_count') }} as top_network_rate,
    coalesce(posts.post_count, 0) as post_count,
    posts.first_posted_at
from dated
left join totals using (account, link_id)
left join posts using (account, link_id)
