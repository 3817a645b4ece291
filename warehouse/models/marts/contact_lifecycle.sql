-- When addresses began to react, were lost, and came back, and the message before; one row per address and transition.
-- Built anew every night: days pass by themselves, and an entry that is read later may belong before others.
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

-- who is gone counts, too; `address` is its number, as texts are slow to compare
addresses as materialized (
    select
        account,
        lower(trim(email)) as email,
        {{ local_date('min(registered_at)', 'any_value(timezone)') }} as registered_on,
        any_value(timezone) as timezone,
        any_value(today) as today,
        row_number() over () as address
    from {{ ref('stg_contacts') }}
    join accounts using (account)
    where trim(email) <> ''
    group by all
),

contacts as (
    select distinct addresses.account, contact_id, address, timezone, today
    from {{ ref('stg_contacts') }} as contacts
    join addresses on addresses.account = contacts.account and addresses.email = lower(trim(contacts.email))
),

-- narrow, as there are many of them: keys by their hash
messages as (
    select
        address,
        contact_id,
        hash(message_key) as message_hash,
        sent_at,
        {{ can_tell_opening() }} as is_told,
        {{ local_date('sent_at', 'timezone') }} as sent_on,
        row_number() over by_address as number,
        lead(sent_at) over by_address as next_sent_at
    from {{ ref('contact_campaign') }}
    join contacts using (account, contact_id)
    where sent_at is not null
    window by_address as (partition by address order by sent_at, contact_id, message_key)
),

active_days as (
    select
        address,
        any_value(today) as today,
        any_value(timezone) as timezone,
        least({{ local_date('moment', 'timezone') }}, today) as day_on,
        min(moment) as moment,
        max(moment) as last_moment,
        arg_min(
            {'reaction': reaction, 'contact_id': contact_id, 'message_hash': case when message_key is not null then hash(message_key) end},
            (moment, reaction = 'visit', reaction = 'open', coalesce(message_key, ''), contact_id)
        ) as first_one
    from {{ ref('int_reactions') }}
    join contacts using (account, contact_id)
    group by all
),

spells as (
    select
        *,
        lag(day_on) over by_address as before_on,
        lag(last_moment) over by_address as before_at,
        lead(day_on) over by_address as next_on,
        lead(moment) over by_address as next_at
    from active_days
    window by_address as (partition by address order by day_on)
),

-- the three e-mails that make who is silent dormant, and until when they do
thirds as (
    select address, sent_on as from_on, lag(sent_on, 2) over (partition by address order by number) + 179 as until_on
    from messages
    where is_told
    qualify until_on >= from_on
),

silent as (
    select address, day_on + 181 as from_on, coalesce(next_on, today + 1) as until_on, day_on as before_on, last_moment as before_at
    from spells
    where coalesce(next_on, today + 1) > day_on + 181
    union all
    select address, registered_on + 31, coalesce(spells.day_on, addresses.today + 1), null, null
    from addresses
    left join spells using (address)
    where spells.before_on is null
),

dormant as (
    select address, before_on, before_at, min(greatest(silent.from_on, thirds.from_on)) as day_on
    from silent
    join thirds using (address)
    where greatest(silent.from_on, thirds.from_on) <= least(thirds.until_on, silent.until_on - 1)
    group by all
),

statuses as (
    select
        account,
        lower(trim(email)) as email,
        status,
        valid_from,
        lag(status) over by_contact as status_before,
        lag(valid_from) over by_contact is not null as is_day_known
    from {{ ref('history_contacts') }}
    where trim(email) <> ''
    window by_contact as (partition by account, list_id, contact_id order by valid_from)
),

ended as (
    select
        address, status as transition, {{ local_date('valid_from', 'timezone') }} as day_on, bool_or(is_day_known) as is_day_known,
        min(valid_from) as moment
    from statuses
    join addresses using (account, email)
    where status in ('unsubscribed', 'bounced') and status is distinct from status_before
    group by all
),

transitions as (
    select
        address, case when before_on is null then 'activated' else 'won back' end as transition, day_on, moment,
        before_on, before_at, first_one.reaction, first_one.contact_id, first_one.message_hash,
        day_on - before_on - 91 as days_at_risk
    from spells
    -- a day on which it reacted is none at risk
    where before_on is null or day_on - before_on > 91
    union all by name
    select
        address, 'at risk' as transition, day_on + 91 as day_on, {{ days_begin('(day_on + 91)', 1, 'timezone') }} as moment,
        day_on as before_on, last_moment as before_at, coalesce(next_on, today) - day_on - 91 as days_at_risk
    from spells
    where day_on + 91 <= today and coalesce(next_on > day_on + 91, true)
    union all by name
    select address, 'dormant' as transition, day_on, {{ days_end('day_on', 'timezone') }} as moment, before_on, before_at
    from dormant
    join addresses using (address)
    union all by name
    select ended.*, days.day_on as before_on, days.last_moment as before_at
    from ended
    left join spells as days
        on days.address = ended.address and days.moment <= ended.moment and coalesce(days.next_at > ended.moment, true)
),

with_message as (
    select
        transitions.*,
        coalesce(transitions.message_hash, before.message_hash) as last_message_hash,
        case when transitions.message_hash is null then before.contact_id else transitions.contact_id end as last_contact_id,
        coalesce(before.number, 0) as message_number
    from transitions
    left join messages as before
        on before.address = transitions.address and before.sent_at <= transitions.moment
        and coalesce(before.next_sent_at > transitions.moment, true)
),

with_both as (
    select with_message.*, message_number - coalesce(heard.number, 0) as messages_since_active_count
    from with_message
    left join messages as heard
        on heard.address = with_message.address and heard.sent_at <= with_message.before_at
        and coalesce(heard.next_sent_at > with_message.before_at, true)
)

select
    addresses.account,
    addresses.email,
    row_number() over by_address as transition_number,
    transition,
    day_on,
    coalesce(is_day_known, true) as is_day_known,
    lead(day_on) over by_address is null as is_last,
    reaction,
    day_on - before_on as days_since_active,
    days_at_risk,
    messages_since_active_count,
    channel as message_channel,
    campaign_id,
    subject,
    automation,
    sent_at as message_sent_at
from with_both
join addresses using (address)
left join {{ ref('contact_campaign') }} as message
    on message.account = addresses.account and message.contact_id = last_contact_id and hash(message.message_key) = last_message_hash
window by_address as (
    partition by address order by day_on, list_position(['at risk', 'dormant', 'unsubscribed', 'bounced'], transition) nulls first
)
