-- The clicks that each post brought through the short links in its text; one row per account, post and network.

with posts as (
    select * from {{ current('stg_social_posts') }}
),

details as (
    select * from {{ current('stg_social_post_details') }}
),

accounts as (
    select * from {{ ref('int_accounts') }}
),

asked as (
    select account, max(as_of) as as_of
    from {{ source('sync', 'coverage') }}
    where table_name = 'social_posts'
    group by all
),

post_links as (
    select *, count(*) over (partition by account, link_id, network) as post_count
    from {{ ref('int_post_links') }}
),

links_read as (
    select account, true as is_read from {{ ref('int_links_read') }}
),

clicks as (
    select account, link_id, network, max_by(click_count, observed_on) as click_count
    from {{ ref('stg_social_link_clicks') }}
    group by all
),

-- if a link is in several posts of a network, its clicks can't be separated: each post shows all of them
clicked as (
    select
        account,
        post_id,
        network,
        count(*) as link_count,
        bool_and(clicks.account is not null or links_read.is_read is not null) as is_known,
        coalesce(sum(clicks.click_count), 0)::bigint as click_count,
        bool_or(post_links.post_count > 1) as is_link_shared
    from post_links
    left join clicks using (account, link_id, network)
    left join links_read using (account)
    group by all
),

placed as (
    select
        posts.*,
        details.title,
        details.posted_at,
        coalesce(details.posted_at, posts.scheduled_at) as published_at,
        coalesce(details.posted_at, posts.scheduled_at) at time zone accounts.timezone as published_local
    from posts
    left join details using (account, post_id, network)
    left join accounts using (account)
)

select
    account,
    post_id,
    network,
    placed.channel_name,
    placed.channel_type,
    placed.title,
    placed.message,
    placed.published_at,
    placed.published_at <= asked.as_of as is_published,
    dayname(placed.published_local) as weekday,
    hour(placed.published_local) as hour,
    placed.photo_url is not null as has_photo,
    coalesce(clicked.link_count, 0) as link_count,
    case when clicked.is_known then clicked.click_count end as click_count,
    coalesce(clicked.is_link_shared, false) as is_link_shared
from placed
left join asked using (account)
left join clicked using (account, post_id, network)
