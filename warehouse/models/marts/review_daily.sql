-- Reviews, sentiment and views of the feedback page by day, with rolling means; one row per account and day.

with accounts as (
    select * from {{ ref('int_accounts') }}
),

-- a day that was read completely has 0 where there is nothing; on any other day, every count is unknown
days_read as (
    select
        account,
        day_on,
        bool_or(table_name = 'review_stats') as is_stats_read,
        bool_or(table_name = 'sentiment_mentions') as is_sentiment_read,
        bool_or(table_name = 'feedback_views') as is_views_read
    from {{ ref('int_days_read') }}
    where is_complete and table_name in ('review_stats', 'sentiment_mentions', 'feedback_views')
    group by all
),

stats as (
    select account, period_on as day_on, good_count, bad_count, true as is_told
        from {{ current('stg_review_stats') }}
),

online as (
    select
        reviews.account,
        {{ local_date('reviews.reviewed_at', 'accounts.timezone') }} as day_on,
        count(*) as online_review_count,
        count(reviews.rating) as rated_count,
        sum(reviews.rating) as rating_sum
    from {{ ref('stg_online_reviews') }} as reviews
    left join accounts using (account)
    where reviews.reviewed_at is not null
    group by all
),

sentiment as (
    select
        account,
        reviewed_on as day_on,
        count(*) filter (where polarity = 'positive') as positive_count,
        count(*) filter (where polarity = 'negative') as negative_count
    from {{ current('stg_sentiment_mentions') }}
    where reviewed_on is not null
    group by all
),

views as (
    select account, period_on as day_on, view_count, true as is_told from {{ current('stg_feedback_views') }}
),

-- sites show their newest reviews: reviews before the first reading are unknown
sites_read as (
    select account, min(observed_on) as first_on, max(observed_on) as last_on
    from {{ ref('stg_online_review_channels') }}
    group by account
),

told_days as (
    select account, day_on from stats
    union
    select account, day_on from online
    union
    select account, day_on from sentiment
    union
    select account, day_on from views
),

spans as (
    select account, min(day_on) as first_on, max(day_on) as last_on
    from (
        select account, day_on
        from told_days
        join accounts using (account)
        where {{ is_plausible('day_on', 'today') }}
        union all
        select account, day_on from days_read
    )
    group by account
),

days as (
    select account, unnest(generate_series(first_on, last_on, interval 1 day))::date as day_on
    from spans
),

counted as (
    select
        account,
        day_on,
        case when is_stats_read then if(stats.is_told, stats.good_count, 0) end as good_count,
        case when is_stats_read then if(stats.is_told, stats.bad_count, 0) end as bad_count,
        case when day_on between sites_read.first_on and sites_read.last_on
            then coalesce(online.online_review_count, 0) end as online_review_count,
        coalesce(online.rated_count, 0) as rated_count,
        coalesce(online.rating_sum, 0) as rating_sum,
        case when is_sentiment_read then coalesce(sentiment.positive_count, 0) end as positive_count,
        case when is_sentiment_read then coalesce(sentiment.negative_count, 0) end as negative_count,
        case when is_views_read then if(views.is_told, views.view_count, 0) end as view_count
    from days
    left join days_read using (account, day_on)
    left join stats using (account, day_on)
    left join sites_read using (account)
    left join online using (account, day_on)
    left join sentiment using (account, day_on)
    left join views using (account, day_on)
)

select
    account,
    day_on,
    good_count,
    bad_count,
    {{ rate('good_rate') }} as good_rate,
    online_review_count,
    rating_sum / nullif(rated_count, 0) as average_rating,
    positive_count,
    negative_count,
    {{ rate('positive_rate') }} as positive_rate,
    view_count,
{%- for days in [7, 28] %}
    avg(good_count) over last_{{ days }} as good_count_mean_{{ days }}d,
    avg(bad_count) over last_{{ days }} as bad_count_mean_{{ days }}d,
    {{ rate('good_rate', over='sum({}) over last_%d' % days) }} as good_rate_{{ days }}d,
    avg(online_review_count) over last_{{ days }} as online_review_count_mean_{{ days }}d,
    sum(rating_sum) over last_{{ days }}
        / nullif(sum(rated_count) over last_{{ days }}, 0) as average_rating_{{ days }}d,
    {{ rate('positive_rate', over='sum({}) over last_%d' % days) }}
        as positive_rate_{{ days }}d,
    avg(view_count) over last_{{ days }} as view_count_mean_{{ days }}d{{ "," if not loop.last }}
{%- endfor %}
from counted
window
    last_7 as (partition by account order by day_on {{ days_frame(7) }}),
    last_28 as (partition by account order by day_on {{ days_frame(28) }})
