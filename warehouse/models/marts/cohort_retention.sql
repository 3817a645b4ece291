-- How many of the addresses that registered in a month still react in the months after it; one row per month of
-- registration and number of months since.
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

-- deleted contacts count, too: without them, a cohort would look better the more members it lost
contacts as (
    select account, contact_id, email from {{ ref('int_address_contacts') }}
),

coverage as (
    select account, contact_id, timeline_asked_at from {{ source('sync', 'contact_coverage') }}
),

addresses as (
    select
        account,
        email,
        date_trunc('month', {{ local_date('registered_at', 'timezone') }})::date as registered_month,
        count(timeline_asked_at) > 0 as is_read
    from contacts
    join {{ ref('int_addresses') }} using (account, email)
    left join coverage using (account, contact_id)
    join accounts using (account)
    where registered_at is not null
    group by all
),

happenings as (
    select account, contact_id, reaction as kind, moment from {{ ref('int_reactions') }}
    union all
    select account, contact_id, 'message', sent_at from {{ ref('contact_campaign') }}
        where sent_at is not null
),

months_of_addresses as (
    select
        account,
        email,
        date_trunc('month', {{ local_date('moment', 'timezone') }})::date as month_on,
        bool_or(kind = 'message') as is_mailed,
        bool_or(kind <> 'message') as has_reacted,
        bool_or(kind = 'click') as has_clicked
    from happenings
    join contacts using (account, contact_id)
    join accounts using (account)
    where {{ is_plausible(local_date('moment', 'timezone'), 'today') }}
    group by all
),

counted as (
    select
        account,
        registered_month,
        month_on,
        count(*) filter (where is_mailed) as mailed_count,
        count(*) filter (where has_reacted) as responder_count,
        count(*) filter (where has_clicked) as clicker_count
    from months_of_addresses
    join addresses using (account, email)
    where is_read
    group by all
),

cohorts as (
    select account, registered_month, count(*) as address_count, count(*) filter (where is_read) as read_count
    from addresses
    group by all
),

months as (
    select
        cohorts.*,
        unnest(generate_series(registered_month, date_trunc('month', today)::date,
            interval 1 month))::date as month_on,
        today
    from cohorts
    join accounts using (account)
)

select
    account,
    registered_month,
    date_diff('month', registered_month, month_on) as months_since,
    month_on,
    month_on + interval 1 month <= today as is_over,
    address_count,
    read_count,
    coalesce(mailed_count, 0) as mailed_count,
    coalesce(responder_count, 0) as responder_count,
    coalesce(clicker_count, 0) as clicker_count,
    {{ safe_rate('coalesce(responder_count, 0)', 'read_count') }} as responder_rate,
    {{ safe_rate('coalesce(clicker_count, 0)', 'read_count') }} as clicker_rate
from months
left join counted using (account, registered_month, month_on)
