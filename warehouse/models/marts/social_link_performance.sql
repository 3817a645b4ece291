-- How often each short link was clicked and from where, as of the last response; one row per account and link.

with links as (
    select * from {{ current('stg_social_links') }}
),

accounts as (
    select * from {{ ref('int_accounts') }}
),

clicks as (
    select *, max(observed_on) over (partition by account, link_id) as last_asked_on
    from {{ ref('stg_social_link_clicks') }}
),

asked as (
    select account, read_on as asked_on from {{ ref('int_links_read') }}
),

first_nights as (
    select account, min(observed_on) as first_asked_on from clicks group by all
),

-- the last total of each network, and its total at the last request at least 7 and 28 days before the newest
-- one
networks as (
    select
        account,
        link_id,
        network,
        max(last_asked_on) as last_asked_on,
        max_by(click_count, observed_on) as click_count,
        max_by(click_count, observed_on)
            filter (where {{ observed_before('observed_on', 'last_asked_on', 7) }}) as click_count_before_7d,
        max_by(click_count, observed_on)
            filter (where {{ observed_before('observed_on', 'last_asked_on', 28) }}) as click_count_before_28d
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
        coalesce(totals.observed_on, asked.asked_on) as observed_on,
        case when {{ is_plausible(local_date('links.created_at', 'accounts.timezone'),
                'coalesce(totals.observed_on, asked.asked_on)') }}
            then {{ local_date('links.created_at', 'accounts.timezone') }} end as created_on,
        case when totals.link_id is not null then totals.click_count when asked.asked_on is not null
            then 0 end as click_count,
        case when totals.link_id is not null then totals.network_count when asked.asked_on is not null
            then 0 end as network_count,
{%- for days in [7, 28] %}
        case
            when {{ local_date('links.created_at', 'accounts.timezone') }}
                > coalesce(totals.observed_on, asked.asked_on) - {{ days }} then 0
            when first_nights.first_asked_on <= coalesce(totals.observed_on, asked.asked_on) - {{ days }}
                then coalesce(totals.click_count_before_{{ days }}d, 0)
        end as click_count_before_{{ days }}d,
{%- endfor %}
        totals.top_network,
        totals.top_click_count
    from links
    left join accounts using (account)
    left join totals using (account, link_id)
    left join asked using (account)
    left join first_nights using (account)
)

select
    account,
    link_id,
    dated.short_url,
    dated.real_url,
    dated.message,
    dated.created_at,
    dated.observed_on,
    dated.track_count,
    dated.click_count,
    dated.click_count - dated.click_count_before_7d as click_count_7d,
    dated.click_count - dated.click_count_before_28d as click_count_28d,
    dated.click_count / (1 + dated.observed_on - dated.created_on) as clicks_per_day,
    dated.network_count,
    dated.top_network,
    {{ safe_rate('dated.top_click_count', 'dated.click_count') }} as top_network_rate,
    coalesce(posts.post_count, 0) as post_count,
    posts.first_posted_at
from dated
left join posts using (account, link_id)
