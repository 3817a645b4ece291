-- Messages of automations by step: the messages of the last whole week, and of the 13 weeks
-- up to today with the reactions to them. For some messages it can't be known whether they were opened or
-- clicked.
with messages as (
    -- outside e-mail, only openings are reported, so that all messages that can be judged were opened
    select if(channel = 'email', is_opened, null) as is_opened, automation, subject,
        if(subject is null, message_text, null) as message_text, channel, is_clicked,
        timezone(getvariable('zone'), sent_at)::date as sent_on, date_trunc('week', getvariable('today')::date)::date as monday
    from marts.contact_campaign where account = $account and kind = 'automated'
)
select coalesce(automation, '(no name)') as automation, subject, message_text, channel, max(sent_on) as last_sent_on,
    count(*) filter (sent_on between monday - 7 and monday - 1) as week_count, count(*) as sent_count,
    count(*) filter (is_opened) as opened_count, count(*) filter (is_clicked) as clicked_count,
    if(count(is_opened) > 0, opened_count / count(is_opened), null) as open_rate,
    if(count(is_clicked) > 0, clicked_count / count(is_clicked), null) as click_rate, count(*) over () as step_count
from messages where sent_on between getvariable('today')::date - 90 and getvariable('today')::date
group by automation, subject, message_text, channel
qualify row_number() over (order by sent_count desc, automation, subject, message_text, channel) <= 30
order by automation, sent_count desc, subject, message_text
