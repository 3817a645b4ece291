-- What each contact received and did with it, according to its timeline; one row per contact and message.
-- Incremental by contact: a contact is computed again if an entry changed. The number of entries and the sum of
-- their times of change show that, so the order of the loads doesn't matter.
{{ config(
    materialized='incremental', incremental_strategy='delete+insert', unique_key=['account', 'contact_id'],
    on_schema_change='fail'
) }}
with accounts as (
    select account, timezone as zone from {{ ref('int_accounts') }}
),

-- not materialized: details are read for contacts that changed, everything else for all contacts
events as not materialized (
    -- email-campaign-sent, mail-sent, email-sent, …: an open set of keys
    select account, contact_id, event_key, key, snippet, occurred_at, details, changed_at
    from {{ ref('stg_timeline_events') }}
    where key like '%sent' or key like '%campaign'
),

automations as not materialized (
    select account, contact_id, automation_key, name, type, triggered_at, details, changed_at
    from {{ ref('stg_timeline_automations') }}
),

stamps as (
    select account, contact_id, count(*) as entry_count, sum(epoch_ms(changed_at))::bigint as entry_stamp
    from (
        select account, contact_id, changed_at from events
        union all
        select account, contact_id, changed_at from automations
    )
    group by all
),

changed as materialized (
    {%- if is_incremental() %}
    select stamps.* from stamps
    anti join {{ this }} as before
        on before.account = stamps.account and before.contact_id = stamps.contact_id
        and before._entry_count = stamps.entry_count and before._entry_stamp = stamps.entry_stamp
    {%- else %}
    select * from stamps
    {%- endif %}
),

entries as (
    select
        account, contact_id, 'standard' as kind, event_key as message_key,
        {{ channel_of_key('key') }} as channel,
        null::varchar as automation, snippet, occurred_at,
        {{ keys_and_texts('details') }} as entry
    from events
    {{ "semi join changed using (account, contact_id)" if is_incremental() }}
    union all
    select
        account, contact_id, 'automated', automation_key, {{ channel_of_type('type') }}, name, null,
        triggered_at,
        {{ keys_and_texts('details') }}
    from automations
    {{ "semi join changed using (account, contact_id)" if is_incremental() }}
),

messages as (
    select
        account, contact_id, kind, message_key, channel, automation,
        coalesce({{ detail('entry', 'subject') }}, snippet, {{ detail('entry', 'message') }}) as message_text,
        coalesce(occurred_at, {{ moment(detail('entry', 'send-date'), 'zone') }}) as sent_at,
        is_email_with_details,
        {{ is_told(detail('entry', 'open-date')) }} as has_open_date,
        {{ moment(detail('entry', 'open-date'), 'zone') }} as opened_at,
        {{ moment(detail('entry', 'click-date'), 'zone') }} as clicked_at,
        case
            when {{ detail('entry', 'links-clicked') }} is null then case
                when {{ is_told(detail('entry', 'click-date')) }} then 1
                when is_email_with_details or list_contains(entry.keys, 'click-date') then 0
            end
            else coalesce(
                try_cast({{ detail('entry', 'links-clicked') }} as bigint),
                -- a list of links, or an object instead of it, instead of their number
                try(greatest(json_array_length({{ detail('entry', 'links-clicked') }}::json),
                    len(json_keys({{ detail('entry', 'links-clicked') }}::json))))::bigint,
                {{ is_told(detail('entry', 'links-clicked')) }}::bigint
            )
        end as click_count
    -- in another channel, or without details of the e-mail, no sign of an opening proves nothing
    from (select *, channel = 'email' and coalesce(len(entry.keys) > 0, false) as is_email_with_details
        from entries)
    join accounts using (account)
)

select
    account,
    contact_id,
    message_key,
    kind,
    channel,
    automation,
    message_text,
    sent_at,
    case when has_open_date or click_count > 0 then true when is_email_with_details
        then false end as is_opened,
    opened_at,
    -- times have a precision of a minute: the minute of the sending or the next one is at most two minutes
    -- later
    case
        when not has_open_date and is_email_with_details and click_count = 0 then false
        when date_diff('minute', sent_at, opened_at) >= -1 then date_diff('minute', sent_at, opened_at) <= 1
    end as is_quick_open,
    click_count,
    clicked_at,
    entry_count as _entry_count,
    entry_stamp as _entry_stamp
from messages
join changed using (account, contact_id)
