-- Each week, month and quarter, with the one before and the same one a year before; one row per account, period
-- and first day.
-- Counts are added up first and divided then: in a mean of rates, a small campaign would weigh as much as a
-- large one.
{%- set mails = ['sent_count', 'delivered_count', 'opened_count', 'clicker_count', 'unsubscribed_count'] %}
{%- set others = ['joined_count', 'online_review_count', 'average_rating', 'rating_count'] %}
{%- set compared = ['sent_count', 'open_rate', 'click_rate', 'unsubscribe_rate'] + others
    + ['redeemed_count'] %}
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

kinds as (
    from (values ('week', 0, 7), ('month', 1, 0), ('quarter', 3, 0)) as kinds(period, months, days)
),

-- an automation has no day of sending
campaigns as (
    select
        {{ local_date('coalesce(sent_at, created_at)', 'timezone') }} as day_on,
        opened_count is not null and delivered_count is not null as is_told,
        campaigns.*
    from {{ ref('campaign_performance') }} as campaigns
    join accounts using (account)
    -- a sent campaign counts even if its counts are unknown
    where type = 'standard' and coalesce(sent_count > 0, status = 'sent')
),

happenings as (
    select
        account, day_on, campaign_id, sent_count,
        {%- for name in mails[1:] %} case when is_told
            then {{ name }} end as {{ name }}{{ "," if not loop.last }}{% endfor %}
    from campaigns
    union all by name
    select account, day_on, joined_count, online_review_count from {{ ref('account_daily') }}
    union all by name
    select account, {{ local_date('reviewed_at', 'timezone') }} as day_on, rating as average_rating
    from {{ ref('stg_online_reviews') }}
    join accounts using (account)
    union all by name
    select account, redeemed_on as day_on, coupon_id from {{ ref('stg_coupons') }} where is_redeemed
),

-- A count without any event is 0 if the account has any data of the kind, else unknown. A sum is unknown if the
-- period began before the first day with a known figure, or went on after the last one.
first_days as (
    select
        account,
        min(day_on) filter (where {{ is_plausible('day_on', 'today') }}) as first_on,
        {%- for name in others[:2] %}
        min(day_on) filter (where {{ name }} is not null) as {{ name }}_from,
        max(day_on) filter (where {{ name }} is not null) as {{ name }}_until,
        {%- endfor %}
        case when count(campaign_id) > 0 then 0 end as no_campaign,
        case when account in (select account from {{ ref('stg_coupons') }}) then 0 end as no_coupon
    from happenings
    join accounts using (account)
    group by account
),

summed as (
    select
        account,
        period,
        date_trunc(period, day_on)::date as begins_on,
        count(campaign_id) as campaign_count,
        {{ whole_sum('sent_count', 'campaign_id is not null') }} as sent_count,
        {%- for name in mails[1:] %}
        {{ whole_sum(name, 'delivered_count is not null') }} as {{ name }},
        {%- endfor %}
        {%- for name in others[:2] %}
        sum({{ name }})::bigint as {{ name }},
        {%- endfor %}
        avg(average_rating) as average_rating,
        nullif(count(average_rating), 0) as rating_count,
        count(coupon_id) as redeemed_count
    from happenings
    join accounts using (account)
    cross join kinds
    where {{ is_plausible('day_on', 'today') }}
    group by all
),

periods as (
    select
        account,
        period,
        unnest(generate_series(date_trunc(period, first_on), today::timestamp,
            to_months(months) + to_days(days)))::date as begins_on,
        to_months(months) + to_days(days) as length,
        first_days.* exclude (account, first_on),
        today
    from first_days
    join accounts using (account)
    cross join kinds
),

filled as (
    select
        account,
        period,
        begins_on,
        (begins_on + length)::date - 1 as ends_on,
        begins_on + length <= today as is_over,
        (begins_on - length)::date as before_on,
        case when period = 'week' then begins_on - 364
            else (begins_on - interval 1 year)::date end as year_before_on,
        coalesce(nullif(campaign_count, 0), no_campaign) as campaign_count,
        {%- for name in mails %}
        coalesce({{ name }}, case when coalesce(campaign_count, 0) = 0 then no_campaign end) as {{ name }},
        {%- endfor %}
        {%- for name in others[:2] %}
        case when begins_on >= {{ name }}_from
            and least(ends_on, today - 1) <= {{ name }}_until then {{ name }} end as {{ name }},
        {%- endfor %}
        average_rating,
        rating_count,
        coalesce(nullif(redeemed_count, 0), no_coupon) as redeemed_count
    from periods
    left join summed using (account, period, begins_on)
),

rated as (
    select
        *,
        {{ rate('open_rate') }} as open_rate,
        {{ rate('click_rate') }} as click_rate,
        {{ rate('unsubscribe_rate') }} as unsubscribe_rate
    from filled
)

select
    rated.account,
    rated.period,
    rated.begins_on,
    rated.ends_on,
    rated.is_over,
    rated.campaign_count,
    {%- for name in mails + ['open_rate', 'click_rate', 'unsubscribe_rate'] + others + ['redeemed_count'] %}
    rated.{{ name }},
    {%- endfor %}
    {%- for name in compared %}
    before.{{ name }} as {{ name }}_before,
    {%- endfor %}
    {%- for name in compared %}
    year_before.{{ name }} as {{ name }}_year_before{{ "," if not loop.last }}
    {%- endfor %}
from rated
left join rated as before on before.account = rated.account and before.period = rated.period
    and before.begins_on = rated.before_on
left join rated as year_before
    on year_before.account = rated.account and year_before.period = rated.period
        and year_before.begins_on = rated.year_before_on
