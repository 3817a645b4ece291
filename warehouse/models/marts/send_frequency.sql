-- How people react to the number of e-mails they get in a week; one row per account and number of e-mails.
with accounts as (
    select account, timezone, today, date_trunc('week', today)::date as this_week
        from {{ ref('int_accounts') }}
),

-- the weeks in which contacts got a message for which it can be known whether it was opened
weeks as (
    select
        account,
        contact_id,
        date_trunc('week', {{ local_date('sent_at', 'timezone') }})::date as week_on,
        count(*) as message_count,
        count(*) filter (where is_opened) as opened_count,
        count(*) filter (where is_clicked) as clicked_count
    from {{ ref('contact_campaign') }}
    join accounts using (account)
    where {{ can_tell_opening() }} and {{ is_plausible(local_date('sent_at', 'timezone'), 'today') }}
    group by all
),

-- the day of an unsubscription is not reported: the week of the last e-mail is the best estimate
leavers as (
    select account, contact_id
    from {{ current('stg_contacts') }}
    group by all
    having bool_or(status = 'unsubscribed') and not bool_or(status = 'active')
),

last_weeks as (
    select account, contact_id, max(week_on) as last_week_on from weeks semi
        join leavers using (account, contact_id) group by all
)

select
    account,
    least(message_count, 8)::bigint as messages_a_week,
    count(*) as contact_week_count,
    count(distinct contact_id) as contact_count,
    sum(message_count)::bigint as sent_count,
    sum(opened_count)::bigint as opened_count,
    sum(clicked_count)::bigint as clicked_count,
    count(*) filter (where clicked_count > 0) as clicked_week_count,
    count(*) filter (where week_on = last_week_on) as unsubscribed_count,
    {{ safe_rate('sum(opened_count)', 'sum(message_count)') }} as open_of_sent_rate,
    {{ safe_rate('sum(clicked_count)', 'sum(message_count)') }} as click_of_sent_rate,
    {{ safe_rate('count(*) filter (where clicked_count > 0)', 'count(*)') }} as clicked_week_rate,
    {{ safe_rate('count(*) filter (where week_on = last_week_on)', 'count(*)') }} as unsubscribed_week_rate
from weeks
join accounts using (account)
left join last_weeks using (account, contact_id)
where week_on >= this_week - 364 and week_on < this_week
group by account, least(weeks.message_count, 8)
