-- When addresses began to react, were lost, and came back, as far as their entries decide it, also on future
-- days; one row per address and transition. An address without transitions has one row without any.
-- Incremental by address: an address is computed again if the number or the hash of its entries, registration
-- or statuses changed.
{{ config(
    materialized='incremental', incremental_strategy='delete+insert', unique_key=['account', 'address'],
    on_schema_change='fail'
) }}
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

-- Deleted contacts count, too. An address is its hash: texts are slow to compare and not needed here.
all_contacts as (
    select distinct account, contact_id, hash(email_normalized) as address
    from {{ ref('stg_contacts') }}
    where email_normalized is not null
),

-- not materialized: the rows are wide, and each use needs few of their columns
all_messages as not materialized (
    select account, contact_id, message_key, channel, campaign_id, subject, automation, sent_at, is_opened,
        opened_at, is_clicked, clicked_at
    from {{ ref('contact_campaign') }}
),

all_reactions as not materialized (
    select account, contact_id, reaction, moment, message_key from {{ ref('int_reactions') }}
),

all_statuses as not materialized (
    select account, list_id, contact_id, hash(email_normalized) as address, status, valid_from
    from {{ ref('history_contacts') }}
    where email_normalized is not null
),

stamps as (
    select account, address, count(*) as entry_count, bit_xor(stamp) as entry_stamp
    from (
        select account, hash(email) as address, hash(registered_at) as stamp from {{ ref('int_addresses') }}
        union all
        select all_contacts.account, address, hash(all_messages)
        from all_messages
        join all_contacts using (account, contact_id)
        union all
        select all_contacts.account, address, hash(moment)
        from all_reactions
        join all_contacts using (account, contact_id)
        where reaction = 'visit'
        union all
        select account, address, hash(status, valid_from) from all_statuses
    )
    group by account, address
),

changed as materialized (
    select stamps.* from stamps
    {%- if is_incremental() %}
    anti join {{ this }} as before
        on before.account = stamps.account and before.address = stamps.address
        and before._entry_count = stamps.entry_count and before._entry_stamp = stamps.entry_stamp
    {%- endif %}
),

contacts as (
    select account, contact_id, address, timezone
    from all_contacts
    join accounts using (account)
    semi join changed using (account, address)
),

registrations as (
    select account, address, {{ local_date('registered_at', 'timezone') }} as registered_on
    from (select account, hash(email) as address, registered_at from {{ ref('int_addresses') }})
    join accounts using (account)
    semi join changed using (account, address)
),

-- narrow, since there are many rows: keys are hashes
messages as (
    select
        account,
        address,
        contact_id,
        hash(message_key) as message_hash,
        sent_at,
        {{ can_tell_opening() }} as is_told,
        {{ local_date('sent_at', 'timezone') }} as sent_on,
        row_number() over by_address as number,
        lead(sent_at) over by_address as next_sent_at
    from all_messages
    join contacts using (account, contact_id)
    where sent_at is not null
    window by_address as (partition by account, address order by sent_at, contact_id, message_key)
),

active_days as (
    select
        account,
        address,
        any_value(timezone) as timezone,
        {{ local_date('moment', 'timezone') }} as day_on,
        min(moment) as moment,
        max(moment) as last_moment,
        arg_min(
            {
                'reaction': reaction, 'contact_id': contact_id,
                'message_hash': case when message_key is not null then hash(message_key) end
            },
            (moment, reaction = 'visit', reaction = 'open', coalesce(message_key, ''), contact_id)
        ) as first_one
    from all_reactions
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
    window by_address as (partition by account, address order by day_on)
),

-- the three e-mails that make a silent address dormant, and the day until which they do
thirds as (
    select
        account, address, sent_on as from_on,
        lag(sent_on, 2) over (partition by account, address order by number) + 179 as until_on
    from messages
    where is_told
    qualify until_on >= from_on
),

silent as (
    select account, address, day_on + 181 as from_on, next_on as until_on, day_on as before_on,
        last_moment as before_at
    from spells
    where coalesce(next_on > day_on + 181, true)
    union all
    select account, address, registered_on + 31, spells.day_on, null, null
    from registrations
    left join spells using (account, address)
    where spells.before_on is null
),

dormant as (
    select account, address, before_on, before_at, min(greatest(silent.from_on, thirds.from_on)) as day_on
    from silent
    join thirds using (account, address)
    where greatest(silent.from_on, thirds.from_on) <= least(thirds.until_on, silent.until_on - 1)
    group by all
),

statuses as (
    select
        account,
        address,
        status,
        valid_from,
        lag(status) over by_contact as status_before,
        lag(valid_from) over by_contact is not null as is_day_known,
        min(valid_from) over (partition by account, address, status) as first_shown_at
    from all_statuses
    semi join changed using (account, address)
    window by_contact as (partition by account, list_id, contact_id order by valid_from)
),

ended as (
    select
        account, address, status as transition, {{ local_date('valid_from', 'zones.timezone') }} as day_on,
        bool_or(is_day_known) as is_day_known,
        min(valid_from) as moment
    from statuses
    -- the day of a reading stays the same when the account changes its time zone
    join {{ ref('int_account_zones') }} as zones using (account)
    -- when the address appears in another list with the same status, nothing has happened
    where status in ('unsubscribed', 'bounced') and status is distinct from status_before
        and (is_day_known or valid_from = first_shown_at)
        and valid_from >= zones.from_at and valid_from < zones.until_at
    group by all
),

transitions as (
    select
        account, address, case when before_on is null then 'activated'
            else 'won back' end as transition, day_on, moment,
        before_on, before_at, first_one.reaction, first_one.contact_id, first_one.message_hash
    from spells
    -- a day on which the address reacted is not a day at risk
    where before_on is null or day_on - before_on > 91
    union all by name
    select
        account, address, 'at risk' as transition, day_on + 91 as day_on,
        {{ days_begin('(day_on + 91)', 1, 'timezone') }} as moment,
        day_on as before_on, last_moment as before_at, next_on as until_on
    from spells
    where coalesce(next_on > day_on + 91, true)
    union all by name
    select account, address, 'dormant' as transition, day_on, {{ days_end('day_on', 'timezone') }} as moment,
        before_on, before_at
    from dormant
    join accounts using (account)
    union all by name
    select ended.*, case when days.day_on > ended.day_on then ended.day_on else days.day_on end as before_on,
        days.last_moment as before_at
    from ended
    left join spells as days
        on days.account = ended.account and days.address = ended.address
        and days.moment <= ended.moment and coalesce(days.next_at > ended.moment, true)
),

with_message as (
    select
        transitions.* exclude (contact_id, message_hash),
        coalesce(transitions.message_hash, before.message_hash) as message_hash,
        case when transitions.message_hash is null then before.contact_id
            else transitions.contact_id end as contact_id,
        coalesce(before.number, 0) as message_number
    from transitions
    left join messages as before
        on before.account = transitions.account and before.address = transitions.address
        and before.sent_at <= transitions.moment and coalesce(before.next_sent_at > transitions.moment, true)
),

with_both as (
    select with_message.*, message_number - coalesce(heard.number, 0) as messages_since_active_count
    from with_message
    left join messages as heard
        on heard.account = with_message.account and heard.address = with_message.address
        and heard.sent_at <= with_message.before_at
            and coalesce(heard.next_sent_at > with_message.before_at, true)
)

select
    changed.account,
    changed.address,
    transition,
    day_on,
    until_on,
    is_day_known,
    before_on,
    reaction,
    messages_since_active_count,
    message.channel as message_channel,
    message.campaign_id,
    message.subject,
    message.automation,
    message.sent_at as message_sent_at,
    changed.entry_count as _entry_count,
    changed.entry_stamp as _entry_stamp
from changed
left join with_both using (account, address)
left join all_messages as message
    on message.account = changed.account and message.contact_id = with_both.contact_id
        and hash(message.message_key) = message_hash
