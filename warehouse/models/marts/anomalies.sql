-- Days on which a figure left its usual band; one row per account, day and figure.
{%- set figures = {
    'joined_count': ('New members', 'list_days_covered'),
    'left_count': ('Members who left', 'list_days_covered'),
    'visit_count': ('Visits', none),
    'good_count': ('Good reviews', none),
    'bad_count': ('Bad reviews', none),
    'online_review_count': ('Reviews on review sites', none),
    'view_count': ('Views of the feedback page', none),
    'positive_count': ('Positive mentions', none),
    'negative_count': ('Negative mentions', none),
    'social_click_change': ('Clicks in social posts', 'social_days_covered'),
} %}
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

-- people react on the day of a campaign and on the next day
mailings as (
    select distinct account, {{ local_date('sent_at', 'timezone') }} + days_later::integer as day_on
    from {{ ref('campaign_performance') }}
    join accounts using (account)
    cross join range(2) as later (days_later)
    where sent_at is not null and sent_count > 0
),

-- A change over several days does not belong to a single day. A change below 0 is a correction.
figures as (
{%- for name, (words, days_covered) in figures.items() %}
    select account, day_on, '{{ name }}' as figure, '{{ words }}' as words, {{ name }}::double as value
    from {{ ref('account_daily') }}
    where {{ name }} >= 0 {{ "and " ~ days_covered ~ " = 1" if days_covered }}
    {{ "union all" if not loop.last }}
{%- endfor %}
),

-- Each of the last days with the twelve weeks before it. 2 √(count + 3/8) varies by about 1 for any count
-- (Anscombe 1948).
earlier as (
    select
        figures.account,
        figures.day_on,
        figures.figure,
        earlier.value,
        2 * sqrt(earlier.value + 0.375) as root,
        (figures.day_on - earlier.day_on) % 7 as weekday
    from figures
    join accounts using (account)
    join figures as earlier
        on earlier.account = figures.account and earlier.figure = figures.figure
            and figures.day_on - earlier.day_on between 1 and 84
    where {{ in_last_days('figures.day_on', 'today', 91) }} and figures.day_on < today
),

usual as (
    select
        account,
        day_on,
        figure,
        count(*) filter (where weekday = 0) as week_count,
        median(value) filter (where weekday = 0) as usual_value,
        any_value(weekday_root) filter (where weekday = 0) as usual_root,
        4 * greatest(1.4826 * median(abs(root - weekday_root)), 1) as width
    from (select *, median(root) over (partition by account, day_on, figure, weekday) as weekday_root
        from earlier)
    group by all
),

banded as (
    select
        figures.*,
        mailings.day_on is not null as is_after_campaign,
        usual.usual_value,
        greatest(0, power(greatest(usual.usual_root - usual.width, 0) / 2, 2) - 0.375) as usual_low,
        power((usual.usual_root + usual.width) / 2, 2) - 0.375 as usual_high,
        4 * (2 * sqrt(figures.value + 0.375) - usual.usual_root) / usual.width as deviation
    from figures
    join usual using (account, day_on, figure)
    left join mailings using (account, day_on)
    where usual.week_count >= 6
)

select
    account,
    day_on,
    figure,
    value,
    usual_value,
    usual_low,
    usual_high,
    deviation,
    is_after_campaign,
    format(
        '{}: {} on {}, usually {} on a {}{}',
        words, value::bigint, strftime(day_on, '%A, %-d %B %Y'), round(usual_value)::bigint, strftime(day_on, '%A'),
        case when is_after_campaign then ' (a campaign was just sent)' else '' end
    ) as sentence
from banded
where value < usual_low or value > usual_high
