-- The headline numbers of each account by day; one row per account and day.
{%- set covered = 'days_covered is not null' %}
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

-- The first day on which every list that existed at the first sync had been read. Lists that came later have no
-- earlier members.
first_days as (
    select account, case when count(*) = count(first_read_on) then max(first_read_on) end as first_read_on
    from {{ ref('int_lists_read') }}
    where not is_new
    group by account
),

members as (
    select
        account,
        day_on,
        -- if a list was not read, its growth appears on a later day
        case when count(*) filter (where size > 0 and days_covered is null) = 0
            and day_on > any_value(first_read_on) then max(days_covered) end as list_days_covered,
        {%- for name in ['size', 'active_size'] %}
        case when day_on >= any_value(first_read_on) then sum({{ name }}) end::bigint as {{ name }},
        {%- endfor %}
        {%- for name in ['joined_count', 'moved_in_count', 'left_count', 'moved_out_count'] %}
        case when day_on > any_value(first_read_on)
            then sum({{ name }}) end::bigint as {{ name }}{{ "," if not loop.last }}
        {%- endfor %}
    from {{ ref('list_growth_daily') }}
    left join first_days using (account)
    group by account, day_on
),

mails as (
    select
        account,
        observed_on as day_on,
        max(days_covered) as mail_days_covered,
        -- The sum of all campaigns, or unknown. On a campaign's first day the change is unknown.
        {{ whole_sum('sent_change', covered) }} as sent_change,
        {{ whole_sum('sent_change * (not can_tell_openings)::bigint', covered) }} as other_sent_change,
        {{ whole_sum('opened_change', covered ~ ' and coalesce(can_tell_openings, true)') }} as opened_change,
        {{ whole_sum('click_change', covered) }} as click_change,
        {{ whole_sum('bounced_change', covered) }} as bounced_change,
        {{ whole_sum('unsubscribed_change', covered) }} as unsubscribed_change
    from {{ ref('campaign_daily') }}
    left join {{ ref('int_campaign_channels') }} using (account, campaign_id)
    group by all
),

timelines_read as (
    select account, {{ local_date('max(timeline_asked_at)', 'any_value(timezone)') }} as last_on
    from {{ source('sync', 'contact_coverage') }}
    join accounts using (account)
    group by account
),

visits as (
    select account, {{ local_date('visits.visited_at', 'accounts.timezone') }} as day_on,
        count(*) as visit_count
    from {{ ref('stg_timeline_visits') }} as visits
    join accounts using (account)
    where visits.visited_at is not null
    group by all
),

reviews as (
    select * from {{ ref('review_daily') }}
),

social as (
    select
        account,
        day_on,
        sum(mention_count)::bigint as mention_count,
        sum(post_count)::bigint as post_count,
        max(click_days_covered) as social_days_covered,
        sum(click_change)::bigint as social_click_change
    from {{ ref('social_daily') }}
    where day_on is not null
    group by all
),

posts_read as (
    select account, day_on, 0 as post_count from {{ ref('int_days_read') }}
        where is_complete and table_name = 'social_posts'
),

days as (
    select account, day_on
    from (
        select account, day_on from members
        union
        select account, day_on from mails
        union
        select account, day_on from visits
        union
        select account, day_on from reviews
        union
        select account, day_on from social
    )
    join accounts using (account)
    where {{ is_plausible('day_on', 'today') }}
)

select
    account,
    day_on,
    members.size as member_count,
    members.active_size as active_member_count,
    members.joined_count,
    members.moved_in_count,
    members.left_count,
    members.moved_out_count,
    members.list_days_covered,
    mails.mail_days_covered,
    mails.sent_change,
    mails.other_sent_change,
    mails.opened_change,
    mails.click_change,
    mails.bounced_change,
    mails.unsubscribed_change,
    coalesce(visits.visit_count, case when day_on <= timelines_read.last_on then 0 end) as visit_count,
    reviews.good_count,
    reviews.bad_count,
    reviews.online_review_count,
    reviews.average_rating,
    reviews.positive_count,
    reviews.negative_count,
    reviews.view_count,
    social.mention_count,
    coalesce(social.post_count, posts_read.post_count) as post_count,
    social.social_days_covered,
    social.social_click_change
from days
left join members using (account, day_on)
left join mails using (account, day_on)
left join visits using (account, day_on)
left join timelines_read using (account)
left join reviews using (account, day_on)
left join social using (account, day_on)
left join posts_read using (account, day_on)
