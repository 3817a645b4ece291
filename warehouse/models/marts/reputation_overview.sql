-- The current state of each channel, which is a review site or the own feedback page, as of the last day that
-- was read; one row per account and channel.

with accounts as (
    select * from {{ ref('int_accounts') }}
),

-- the windows are whole days, so they end with a day that was read after it was over
last_days as (
    select account, coalesce(max(day_on) filter (where good_count is not null or positive_count is not null
        or view_count is not null), max(day_on)) as as_of_on
    from {{ ref('review_daily') }}
    group by account
),

-- a figure is unknown if any day of its window was not read
windows_read as (
    select
        account,
{%- for days in [7, 28] %}
        count(positive_count) filter (where {{ in_last_days('day_on', 'as_of_on', days) }})
            = {{ days }} as is_sentiment_read_{{ days }}d,
        count(good_count + bad_count) filter (where {{ in_last_days('day_on', 'as_of_on', days) }})
            = {{ days }} as is_stats_read_{{ days }}d{{ "," if not loop.last }}
{%- endfor %}
    from {{ ref('review_daily') }}
    join last_days using (account)
    group by account
),

observations as (
    select * from {{ ref('stg_online_review_channels') }}
),

-- the rating is the service's; the earlier one is of the last request at least 28 days before the newest one
ratings as (
    select
        account,
        channel,
        max(observed_on) as observed_on,
        arg_max_null(average_rating, observed_on) as average_rating,
        arg_max_null(review_count, observed_on) as served_review_count,
        max_by(average_rating, observed_on)
            filter (where {{ observed_before('observed_on', 'last_on', 28) }}) as average_rating_before,
        arg_max_null(review_count, observed_on) filter (where average_rating is not null
            and {{ observed_before('observed_on', 'last_on', 28) }}) as served_review_count_before
    from (select *, max(observed_on) over (partition by account, channel) as last_on from observations)
    group by all
),

reviews as (
    select
        reviews.account,
        reviews.channel,
        count(*) as review_count,
        max(reviews.reviewed_at) filter (where {{ is_plausible('reviewed_on', 'today') }}) as last_review_at,
{%- for days in [7, 28] %}
        count(*) filter (where {{ in_last_days('reviewed_on', 'last_days.as_of_on',
            days) }}) as review_count_{{ days }}d,
        avg(reviews.rating) filter (where {{ in_last_days('reviewed_on', 'last_days.as_of_on', days) }})
            as average_rating_{{ days }}d{{ "," if not loop.last }}
{%- endfor %}
    from (
        select reviews.*, today,
            {{ local_date('reviews.reviewed_at', 'accounts.timezone') }} as reviewed_on
        from {{ ref('stg_online_reviews') }} as reviews
        left join accounts using (account)
    ) as reviews
    left join last_days using (account)
    group by all
),

mentions as (
    select
        account,
        mentions.channel,
{%- for days in [7, 28] %}
        count(*) filter (where mentions.polarity = 'positive'
            and {{ in_last_days('mentions.reviewed_on', 'last_days.as_of_on', days) }})
            as positive_count_{{ days }}d,
        count(*) filter (where mentions.polarity = 'negative'
            and {{ in_last_days('mentions.reviewed_on', 'last_days.as_of_on', days) }})
            as negative_count_{{ days }}d{{ "," if not loop.last }}
{%- endfor %}
    from {{ current('stg_sentiment_mentions') }} as mentions
    left join last_days using (account)
    where mentions.channel is not null
    group by all
),

sites as (
    select account, channel from ratings
    union
    select account, channel from reviews
    union
    select account, channel from mentions
),

online as (
    select
        account,
        channel,
        'review site' as kind,
        last_days.as_of_on,
        ratings.observed_on,
        ratings.average_rating,
        -- a rating means little without the number of its reviews
        case when ratings.served_review_count is not null and ratings.served_review_count_before is not null
            then ratings.average_rating - ratings.average_rating_before end as average_rating_change_28d,
        ratings.served_review_count,
        case when average_rating_change_28d is not null
            then ratings.served_review_count_before end as served_review_count_before,
        coalesce(reviews.review_count, 0) as review_count,
        reviews.last_review_at,
        reviews.average_rating_7d,
        reviews.average_rating_28d,
        coalesce(reviews.review_count_7d, 0) as review_count_7d,
        coalesce(reviews.review_count_28d, 0) as review_count_28d,
{%- for days in [7, 28] %}
        null::bigint as good_count_{{ days }}d,
        null::bigint as bad_count_{{ days }}d,
        case when is_sentiment_read_{{ days }}d
            then coalesce(mentions.positive_count_{{ days }}d, 0) end as positive_count_{{ days }}d,
        case when is_sentiment_read_{{ days }}d
            then coalesce(mentions.negative_count_{{ days }}d, 0) end as negative_count_{{ days }}d,
        null::double as view_count_mean_{{ days }}d{{ "," if not loop.last }}
{%- endfor %}
    from sites
    left join last_days using (account)
    left join windows_read using (account)
    left join ratings using (account, channel)
    left join reviews using (account, channel)
    left join mentions using (account, channel)
),

direct as (
    select
        account,
        count(*) as review_count,
{%- for days in [7, 28] %}
        count(*) filter (where {{ in_last_days('reviewed_on', 'last_days.as_of_on',
            days) }}) as review_count_{{ days }}d,
{%- endfor %}
        max(reviewed_at) filter (where {{ is_plausible('reviewed_on', 'today') }}) as last_review_at
    from (
        select reviews.account, reviews.reviewed_at, today,
            {{ local_date('reviews.reviewed_at', 'accounts.timezone') }} as reviewed_on
        from {{ current('stg_direct_reviews') }} as reviews
        left join accounts using (account)
    )
    left join last_days using (account)
    group by all
),

-- The page's reviews are only good or bad, and the service counts them by day. Only the page has views, and
-- mentions are not on it.
feedback_page as (
    select
        days.account,
        'Feedback page' as channel,
        'feedback page' as kind,
        last_days.as_of_on,
        null::date as observed_on,
        null::double as average_rating,
        null::double as average_rating_change_28d,
        null::bigint as served_review_count,
        null::bigint as served_review_count_before,
        coalesce(max(direct.review_count), 0) as review_count,
        max(direct.last_review_at) as last_review_at,
        null::double as average_rating_7d,
        null::double as average_rating_28d,
{%- for days in [7, 28] %}
        coalesce(max(direct.review_count_{{ days }}d), 0) as review_count_{{ days }}d,
{%- for name in ['good_count', 'bad_count'] %}
        case when bool_and(is_stats_read_{{ days }}d) then sum(days.{{ name }})
            filter (where {{ in_last_days('days.day_on', 'last_days.as_of_on', days) }})
            end::bigint as {{ name }}_{{ days }}d,
{%- endfor %}
        null::bigint as positive_count_{{ days }}d,
        null::bigint as negative_count_{{ days }}d,
        any_value(days.view_count_mean_{{ days }}d)
            filter (where days.day_on = as_of_on) as view_count_mean_{{ days }}d{{ "," if not loop.last }}
{%- endfor %}
    from {{ ref('review_daily') }} as days
    join last_days using (account)
    join windows_read using (account)
    left join direct using (account)
    group by days.account, last_days.as_of_on
),

channels as (
    select * from online
    union all by name
    select * from feedback_page
)

select
    account,
    channel,
    kind,
    as_of_on,
    observed_on,
    average_rating,
    average_rating_change_28d,
    served_review_count,
    served_review_count_before,
    review_count,
    last_review_at,
    average_rating_7d,
    average_rating_28d,
    review_count_7d,
    review_count_28d,
    good_count_7d,
    bad_count_7d,
    {{ rate('good_rate', '{}_count_7d') }} as good_rate_7d,
    positive_count_7d,
    negative_count_7d,
    {{ rate('positive_rate', '{}_count_7d') }} as positive_rate_7d,
    good_count_28d,
    bad_count_28d,
    {{ rate('good_rate', '{}_count_28d') }} as good_rate_28d,
    positive_count_28d,
    negative_count_28d,
    {{ rate('positive_rate', '{}_count_28d') }} as positive_rate_28d,
    view_count_mean_7d,
    view_count_mean_28d
from channels
