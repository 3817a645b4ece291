-- How lists grow and shrink; one row per list and day, without gaps from its first day to the account's today.
-- Everything that a reading showed counts on the day of that reading, and the figures of a day follow from the
-- readings of that day alone. Once the day is over and the lists were read again, no later reading changes
-- them.
with accounts as (
    select account, today from {{ ref('int_accounts') }}
),

zones as (
    select account, timezone, from_at, until_at from {{ ref('int_account_zones') }}
),

lists_read as (
    select account, list_id, first_read_at, first_read_on, timezone, is_new from {{ ref('int_lists_read') }}
),

versions as (
    select account, list_id, contact_id, email_normalized, status, registered_at, valid_from, valid_to,
        ended_by
    from {{ ref('history_contacts') }}
),

sequences as (
    select
        *,
        first_value(registered_at) over by_contact as first_registered_at,
        lag(status) over by_contact as status_before,
        lag(ended_by) over by_contact as ended_before
    from versions
    window by_contact as (partition by account, list_id, contact_id order by valid_from)
    -- a contact that came back and left again between two builds has no known begin, only the end before it
    qualify not coalesce(ended_before = 'deleted' and valid_from <= lag(valid_to) over by_contact, false)
),

steps as materialized (
    select
        sequences.*,
        first_read_at,
        first_read_on,
        is_new,
        ended_before is null as is_first,
        {{ local_date('first_registered_at', 'timezone') }} as registered_on,
        coalesce(first_read_on, {{ local_date('valid_from', 'timezone') }}) as begun_on,
        -- changes that readings show up to the end of a list's first day count on the day of the registration
        case when not is_new then begun_on end as survey_on,
        case when {{ is_plausible('registered_on', 'begun_on') }} then registered_on
            else begun_on end as survivor_on
    from sequences
    join lists_read using (account, list_id)
),

-- contacts whose history begins after the list's first reading: new contacts, and contacts that had changed
-- before the models were first built
late as (
    select steps.*, greatest(coalesce(contacts.first_seen_at, valid_from),
        case when is_new then first_read_at end) as seen_at
    from steps
    left join {{ ref('stg_contacts') }} as contacts using (account, list_id, contact_id)
    where is_first and (is_new or valid_from > first_read_at)
),

-- since when the members of the first reading are on the list: only their registration shows it
past as (
    from steps
    where is_first and not is_new and coalesce(valid_from <= first_read_at, true)
    union all by name
    from late
    where seen_at <= first_read_at and not is_new
),

arrivals_and_departures as (
    select *, email_normalized as address, true as is_arrival, seen_at as moment
    from late
    where seen_at > first_read_at or is_new
    union all by name
    select *, email_normalized as address, true as is_arrival, valid_from as moment
    from steps
    where ended_before = 'deleted'
    union all by name
    select *, email_normalized as address, false as is_arrival, valid_to as moment
    from steps
    where ended_by = 'deleted'
),

dated_moments as materialized (
    select
        moments.*,
        {{ local_date('moment', 'timezone') }} as day_on,
        {{ days_begin('day_on', 1, 'timezone') }} as day_begun_at,
        row_number() over () as number
    from arrivals_and_departures as moments
    join zones on zones.account = moments.account and moment >= from_at and moment < until_at
),

readings as (
    select account, split_part(scope, '=', 2)::bigint as list_id, as_of, is_complete,
        {{ local_date('as_of', 'timezone') }} as day_on
    from {{ source('sync', 'readings') }}
    where table_name = 'contacts'
),

-- when the previous reading of the day still showed the contacts that are gone now
read_before as (
    select number, max(as_of) as read_at
    from dated_moments
    join readings using (account, list_id, day_on)
    where not is_arrival and as_of < moment
    group by number
),

-- A contact that is gone left after `after_at`. Lists are read one after the other: what another list shows in
-- between belongs to the nearer of the two readings.
crossings as materialized (
    select
        dated_moments.*,
        case
            when is_arrival then moment
            else coalesce(make_timestamptz((epoch_us(read_at) + epoch_us(moment)) // 2),
                greatest(valid_from, day_begun_at))
        end as after_at
    from dated_moments
    left join read_before using (number)
),

-- A departure and the person's next arrival on that day, in the same reading or a later one, are one step: a
-- move between lists, or a new id or a return within a list. Matched by id, then by address.
{%- set persons = [['contact_id'], ['list_id', 'address'], ['address']] %}
{%- for keys in persons %}
{%- set person = 'account, day_on, ' ~ keys | join(', ') %}
waiting_{{ loop.index }} as (
    select *, sum(case when is_arrival then -1 else 1 end) over in_order as waiting_count
    from crossings
    {%- if not loop.first %}
    anti join pairs_{{ loop.index0 }} as pairs on number = any_number
    where address <> ''
    {%- endif %}
    window in_order as (
        partition by {{ person }} order by after_at, not is_arrival, moment, list_id, contact_id
            rows between unbounded preceding and current row
    )
),

-- an arrival that takes the count to a new low has no departure waiting for it
free_{{ loop.index }} as (
    select *, waiting_count >= least(0, min(waiting_count) over before) as is_awaited
    from waiting_{{ loop.index }}
    window before as (
        partition by {{ person }} order by after_at, not is_arrival, moment, list_id, contact_id
            rows between unbounded preceding and 1 preceding
    )
),

numbered_{{ loop.index }} as (
    select *, row_number() over (
        partition by {{ person }}, is_arrival order by after_at, moment, list_id, contact_id
    ) as place
    from free_{{ loop.index }}
    where is_awaited or not is_arrival
),

pairs_{{ loop.index }} as materialized (
    {%- if not loop.first %}
    from pairs_{{ loop.index0 }}
    union all
    {%- endif %}
    select unnest([came.number, went.number]) as any_number, came.list_id <> went.list_id as is_move
    from numbered_{{ loop.index }} as came
    join numbered_{{ loop.index }} as went using (account, day_on, place, {{ keys | join(", ") }})
    where came.is_arrival and not went.is_arrival
),
{% endfor %}
dated as (
    select
        account,
        list_id,
        survey_on,
        survivor_on,
        survey_on as seen_on,
        1 as joined,
        0 as moved_in,
        0 as left_count,
        0 as moved_out,
        0 as unsubscribed,
        0 as bounced,
        1 as members,
        (status = 'active')::int as active
    from past
    union all
    select
        account,
        list_id,
        survey_on,
        survivor_on,
        day_on,
        (is_arrival and is_move is null)::int,
        (is_arrival and coalesce(is_move, false))::int,
        (not is_arrival and is_move is null)::int,
        (not is_arrival and coalesce(is_move, false))::int,
        0,
        0,
        case when is_arrival then 1 else -1 end,
        case when status <> 'active' then 0 when is_arrival then 1 else -1 end
    from crossings
    left join pairs_{{ persons | length }} on number = any_number
    union all
    select
        steps.account,
        list_id,
        survey_on,
        survivor_on,
        {{ local_date('valid_from', 'timezone') }},
        0,
        0,
        0,
        0,
        (status = 'unsubscribed')::int,
        (status = 'bounced')::int,
        0,
        (status = 'active')::int - (status_before = 'active')::int
    from steps
    join zones on zones.account = steps.account and valid_from >= from_at and valid_from < until_at
    where ended_before = 'changed' and status is distinct from status_before
),

changes as (
    select
        account,
        list_id,
        case when seen_on <= survey_on then survivor_on else seen_on end as day_on,
        sum(joined)::bigint as joined_count,
        sum(moved_in)::bigint as moved_in_count,
        sum(left_count)::bigint as left_count,
        sum(moved_out)::bigint as moved_out_count,
        sum(unsubscribed)::bigint as unsubscribed_count,
        sum(bounced)::bigint as bounced_count,
        sum(members)::bigint as member_change,
        sum(active)::bigint as active_change
    from dated
    group by all
),

nights as (
    select account, list_id, day_on,
        day_on - lag(day_on) over (partition by account, list_id order by day_on) as days_covered
    from (select distinct account, list_id, day_on from readings where is_complete)
),

ends as (
    select account, greatest(max(day_on), any_value(today)) as last_on
    from changes
    join accounts using (account)
    group by account
),

-- a day before the first reading only appears if a contact that registered then stayed on the list
calendar as (
    select
        account,
        list_id,
        unnest(generate_series(
            min(case when member_change > 0 or day_on > first_read_on or is_new
                then day_on else first_read_on end),
            any_value(last_on), interval 1 day
        ))::date as day_on
    from changes
    join ends using (account)
    join lists_read using (account, list_id)
    group by account, list_id
),

filled as (
    select
        account,
        list_id,
        day_on,
        {%- for name in ['joined_count', 'moved_in_count', 'left_count', 'moved_out_count',
            'unsubscribed_count', 'bounced_count',
            'member_change', 'active_change'] %}
        coalesce({{ name }}, 0) as {{ name }},
        {%- endfor %}
        first_read_on,
        is_new,
        days_covered,
        coalesce(day_on >= first_read_on, false) as is_observed,
        -- Changes before a list's first reading were not observed, unless the list began empty. Changes on a
        -- day without a reading were not observed either. Before readings were recorded, each day may have had
        -- one.
        is_observed and (is_new or day_on > first_read_on) and (nights.day_on is not null
            or changes.day_on is not null or coalesce(day_on < noted_from, true)) as is_told
    from calendar
    left join changes using (account, list_id, day_on)
    left join nights using (account, list_id, day_on)
    left join (select account, list_id, min(day_on) as noted_from from nights group by all)
        using (account, list_id)
    join lists_read using (account, list_id)
)

select
    account,
    list_id,
    lists.name as list_name,
    day_on,
    {%- for name in ['joined_count', 'moved_in_count', 'left_count', 'moved_out_count', 'unsubscribed_count',
        'bounced_count'] %}
    case when is_told then {{ name }} end as {{ name }},
    {%- endfor %}
    case when is_told then joined_count + moved_in_count - left_count - moved_out_count end as net_change,
    case when not is_new and coalesce(day_on <= first_read_on, true)
        then member_change end as survivor_count,
    case when is_observed then sum(member_change) over by_list end::bigint as size,
    case when is_observed then sum(active_change) over by_list end::bigint as active_size,
    days_covered,
    is_observed
from filled
left join {{ ref('stg_lists') }} as lists using (account, list_id)
window by_list as (partition by account, list_id order by day_on)
