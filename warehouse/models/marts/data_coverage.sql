-- How completely each table is read, and the contacts' timelines and coupons; one row per account and subject.
-- Only times, which do not change with the clock: ages are in `data_freshness`.
{#- the column with each table's own date; posts can be in the future #}
{%- set dates = {
    'campaigns': 'created_at',
    'contacts': 'registered_at',
    'coupons': 'redeemed_on',
    'direct_reviews': 'reviewed_at',
    'feedback_views': 'period_on',
    'online_reviews': 'reviewed_at',
    'review_stats': 'period_on',
    'sentiment_mentions': 'reviewed_on',
    'social_links': 'created_at',
    'social_media_stats': 'period_on',
    'timeline_automations': 'triggered_at',
    'timeline_events': 'occurred_at',
    'timeline_visits': 'visited_at',
} %}
with accounts as (
    select account, today, {{ days_end('today', 'timezone') }} as until_at from {{ ref('int_accounts') }}
),

coverage as (
    select *, regexp_full_match(scope, '\d{4}-\d{2}-\d{2}\.\.\d{4}-\d{2}-\d{2}') as is_range
    from {{ source('sync', 'coverage') }}
),

days as (
    select account, table_name, count(*) as day_count, count(*) filter (where is_read) as read_day_count
    from {{ ref('int_days_read') }}
    group by all
),

-- A part is a scope, such as one list's contacts. In tables that are read by ranges it is a day, since ranges
-- overlap.
tables as (
    select
        account,
        coverage.table_name as subject,
        case when bool_or(coverage.is_range) then 'day' else 'scope' end as part,
        case
            when bool_or(coverage.is_range)
                then arg_max(coverage.as_of, (coalesce(coverage.last_request, 0), coverage.as_of))
            else max(coverage.as_of)
        end as as_of,
        case when not bool_or(coverage.is_range) then min(coverage.as_of) end as oldest_as_of,
        case when not bool_or(coverage.is_range) then median(coverage.as_of) end as median_as_of,
        case
            when bool_or(coverage.is_range)
                then arg_max_null(
                    coverage.due_at, (coalesce(coverage.last_request, 0), coverage.as_of, coverage.scope)
                )
            else min(coverage.due_at)
        end as due_at,
        coalesce(max(days.day_count), count(*)) as part_count,
        coalesce(max(days.read_day_count), count(*) filter (where coverage.is_complete)) as read_part_count,
        max_by(coverage.reason, (coverage.as_of, coverage.scope))
            filter (where not coverage.is_complete) as reason
    from coverage
    left join days using (account, table_name)
    group by all
),

contacts as (
    select distinct account, contact_id from {{ current('stg_contacts') }}
),

-- one row per existing contact and kind of request, with the time of the last request
asked as (
    select
        account,
        contact_id,
        kinds.subject,
        kinds.table_name,
        case kinds.table_name when 'coupons' then contact_coverage.coupon_asked_at
            else contact_coverage.timeline_asked_at end as asked_at
    from contacts
    cross join (values ('contact timelines', 'timeline_events'),
        ('contact coupons', 'coupons')) as kinds(subject, table_name)
    left join {{ source('sync', 'contact_coverage') }} as contact_coverage using (account, contact_id)
),

-- The plan that made the last request reports when the first contact exceeds the maximum age. It is with the
-- table that has the responses.
of_contacts as (
    select
        asked.account,
        asked.subject,
        'contact' as part,
        max(asked.asked_at) as as_of,
        min(asked.asked_at) as oldest_as_of,
        median(asked.asked_at) as median_as_of,
        any_value(tables.due_at) as due_at,
        count(*) as part_count,
        count(asked.asked_at) as read_part_count,
        null::varchar as reason
    from asked
    left join tables on asked.account = tables.account and asked.table_name = tables.subject
    group by all
),

rejected as (
    select account, table_name as subject, count(*) as rejected_count
    from {{ source('sync', 'rejected_records') }}
    group by all
),

odd_dates as (
{%- for table, column in dates.items() %}
    select account, '{{ table }}' as subject, count(*) as odd_date_count
    from {{ ref('stg_' ~ table) }}
    join accounts using (account)
    where not {{ is_plausible(column, 'today') if column.endswith('_on')
        else is_plausible_moment(column, 'until_at') }}
    group by account
    {{ "union all" if not loop.last }}
{%- endfor %}
),

subjects as (
    select * from tables
    union all by name
    select * from of_contacts
)

select
    account,
    subject,
    subjects.part,
    subjects.as_of,
    subjects.median_as_of,
    subjects.oldest_as_of,
    subjects.due_at,
    subjects.part_count,
    subjects.read_part_count,
    {{ safe_rate('subjects.read_part_count', 'subjects.part_count') }} as coverage_rate,
    coalesce(rejected.rejected_count, 0) as rejected_count,
    coalesce(odd_dates.odd_date_count, 0) as odd_date_count,
    subjects.reason
from subjects
left join rejected using (account, subject)
left join odd_dates using (account, subject)
