-- Mentions, posts and link clicks by day; one row per account, network and day.

with mentions as (
    select account, network, period_on as day_on, mention_count from {{ current('stg_social_media_stats') }}
),

accounts as (
    select * from {{ ref('int_accounts') }}
),

posts as (
    select
        posts.account,
        posts.network,
        {{ local_date('posts.published_at', 'accounts.timezone') }} as day_on,
        count(*) as post_count
    from {{ ref('social_post_performance') }} as posts
    left join accounts using (account)
    where posts.is_published
    group by all
),

days_read as (
    select account, day_on, true as is_read from {{ ref('int_days_read') }}
        where is_complete and table_name = 'social_posts'
),

clicks as (
    select account, network, observed_on as day_on, sum(click_change)::bigint as click_change,
        max(days_covered) as click_days_covered
    from {{ ref('social_link_clicks_daily') }}
    group by all
),

days as (
    select account, network, day_on from mentions
    union
    select account, network, day_on from posts
    union
    select account, network, day_on from clicks where click_change is not null
)

select
    account,
    network,
    day_on,
    mentions.mention_count,
    case when days_read.is_read then coalesce(posts.post_count, 0) end as post_count,
    clicks.click_change,
    clicks.click_days_covered,
    avg(mentions.mention_count) over last_7 as mention_count_mean_7d,
    avg(mentions.mention_count) over last_28 as mention_count_mean_28d
from days
left join mentions using (account, network, day_on)
left join posts using (account, network, day_on)
left join days_read using (account, day_on)
left join clicks using (account, network, day_on)
join accounts using (account)
where (coalesce(mentions.mention_count, clicks.click_change) is not null or days_read.is_read)
    and {{ is_plausible('day_on', 'accounts.today') }}
window
    last_7 as (partition by account, network order by day_on {{ days_frame(7) }}),
    last_28 as (partition by account, network order by day_on {{ days_frame(28) }})
