-- How each list did over the last 90 days: what its members received and did, and how many active ones it lost;
-- one row per list.
with accounts as (
    select
        account,
        {{ days_begin('today', 90, 'timezone') }} as since_90d,
        {{ days_end('today', 'timezone') }} as until_at
    from {{ ref('int_accounts') }}
),

lists as (
    select account, list_id, name, deleted_at is not null as is_deleted from {{ ref('stg_lists') }}
),

lists_read as (
    select account, list_id, first_read_at, first_read_on,
        -- everything is known about a list that began empty; for other lists, earlier departures are unknown
        is_new or coalesce(first_read_at <= since_90d, false) as is_read_90d
    from {{ ref('int_lists_read') }}
    join accounts using (account)
),

members as (
    select
        account,
        list_id,
        contact_id,
        coalesce(email_normalized, 'contact ' || contact_id) as address,
        deleted_at,
        status,
        -- The contact came after the reading before, and a day is enough for the welcome mail. A contact of the
        -- list's first reading counts as always there.
        case when first_seen_at > first_read_at then first_seen_at - interval 1 day end as member_from
    from {{ ref('stg_contacts') }}
    left join lists_read using (account, list_id)
),

-- a message counts for each list that its contact was on when it was sent
messages as (
    select
        account,
        list_id,
        count(*) as sent_90d_count,
        count(*) filter (where is_opened) as opened_90d_count,
        count(*) filter (where is_clicked) as clicked_90d_count
    from {{ ref('contact_campaign') }}
    join members using (account, contact_id)
    join accounts using (account)
    where {{ can_tell_opening() }} and sent_at >= since_90d and sent_at < until_at
        and coalesce(sent_at >= member_from, true) and coalesce(sent_at < deleted_at, true)
    group by all
),

-- by address: a contact that was merged or added again has neither left nor joined
present as (
    select
        account,
        list_id,
        address,
        bool_or(status = 'active') as is_active,
        case when bool_or(status = 'bounced') then 'bounced' when bool_or(status = 'unsubscribed')
            then 'unsubscribed' else 'other' end as status
    from members
    where deleted_at is null
    group by all
),

was_active as (
    select
        account,
        list_id,
        address,
        bool_or(
            valid_from <= since_90d and coalesce(valid_to > since_90d, true)
        ) as is_then
    from {{ ref('history_contacts') }} as versions
    join (select account, list_id, contact_id, address from members) using (account, list_id, contact_id)
    join accounts using (account)
    where versions.status = 'active' and coalesce(valid_to > since_90d, true)
    group by all
),

people as (
    select
        account,
        list_id,
        count(present.address) as address_count,
        count(*) filter (where is_active) as active_count,
        count(was_active.address) as active_90d_count,
        count(was_active.address) filter (where is_active is null) as left_90d_count,
        count(was_active.address)
            filter (where not is_active and status = 'unsubscribed') as unsubscribed_90d_count,
        count(was_active.address) filter (where not is_active and status = 'bounced') as bounced_90d_count,
        count(was_active.address) filter (where not is_active and status = 'other') as other_90d_count,
        count(*) filter (where is_then) as active_then_count
    from present
    full join was_active using (account, list_id, address)
    group by all
)

select
    account,
    list_id,
    lists.name as list_name,
    lists.is_deleted,
    lists_read.first_read_on,
    {%- for name in ['address_count', 'active_count'] %}
    coalesce(people.{{ name }}, 0) as {{ name }},
    {%- endfor %}
    {%- for name in ['active_90d_count', 'left_90d_count', 'unsubscribed_90d_count', 'bounced_90d_count',
        'other_90d_count'] %}
    case when is_read_90d then coalesce(people.{{ name }}, 0) end as {{ name }},
    {%- endfor %}
    case when is_read_90d
        then coalesce(people.active_90d_count - people.active_count, 0) end as lost_90d_count,
    case when is_read_90d
        then coalesce(people.active_count - people.active_then_count, 0) end as active_change_90d,
    case when is_read_90d then {{ safe_rate('people.active_90d_count - people.active_count',
        'people.active_90d_count') }} end as churn_90d_rate,
    {%- for name in ['sent_90d_count', 'opened_90d_count', 'clicked_90d_count'] %}
    coalesce(messages.{{ name }}, 0) as {{ name }},
    {%- endfor %}
    {{ rate('open_of_sent_rate', 'messages.{}_90d_count') }} as open_of_sent_90d_rate,
    {{ rate('click_of_sent_rate', 'messages.{}_90d_count') }} as click_of_sent_90d_rate
from lists
left join lists_read using (account, list_id)
left join people using (account, list_id)
left join messages using (account, list_id)
