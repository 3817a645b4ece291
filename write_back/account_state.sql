-- Queries about one account. `$keys`: a JSON list of the addresses, ids or lists in question.

-- business
select timezone from source.business where account = $account;

-- lists
select list_id, name from source.lists where account = $account and _deleted_at is null order by list_id;

-- fields
select list_id, field_id, label from source.list_fields where account = $account and _deleted_at is null
order by list_id, field_id;

-- In a warehouse of the version before, the column `last_request` is missing: then NULL.
-- read
select listed.* from (select null::bigint as last_request) as n, lateral (
    select substr(scope, 9)::bigint as list_id, epoch(as_of), last_request
    from sync.coverage
    where account = $account and table_name = 'contacts' and is_complete and as_of is not null
        and scope like 'list_id=%'
) as listed;

-- by_address
select
    keys.key, c.contact_id, c.list_id, c.email, c.status_code,
    case when $with_fields then c.custom_fields end as fields
from (select value ->> '$' as key from json_each($keys)) as keys
join source.contacts as c on c.email_normalized = keys.key
where c.account = $account and c._deleted_at is null
order by c.status_code is not distinct from 1 desc, c.contact_id, c.list_id;

-- by_id
select keys.key, c.contact_id, c.list_id, c.email, c.status_code, null as fields
from (select value::bigint as key from json_each($keys)) as keys
join source.contacts as c on c.contact_id = keys.key
where c.account = $account and c._deleted_at is null
order by c.status_code is not distinct from 1 desc, c.contact_id, c.list_id;

-- gone
select keys.key, c.contact_id, c.list_id, c.email, c.status_code, null as fields
from (select value ->> '$' as key from json_each($keys)) as keys
join source.contacts as c on c.email_normalized = keys.key
where c.account = $account and c._deleted_at is not null;

-- shown_fields
select list_id, list(shown)
from (
    select distinct list_id, unnest(json_keys(custom_fields)) as shown
    from source.contacts
    where account = $account and _deleted_at is null
        and list_id in (select value::bigint from json_each($keys))
)
group by list_id;

-- timelines_read
select contact_id, epoch(timeline_asked_at)
from sync.contact_coverage
where account = $account and timeline_asked_at is not null
    and contact_id in (select value::bigint from json_each($keys));

-- timelines
select
    e.contact_id, epoch(e.occurred_at)::bigint as at,
    list_filter([e.snippet] || coalesce(e.details ->> '$[*].value', []), lambda text: text is not null)
        as texts
from (select value::bigint[] as key from json_each($keys)) as keys
join source.timeline_events as e
    on e.contact_id = keys.key[1] and epoch(e.occurred_at)::bigint // 60 = keys.key[2]
where e.account = $account
order by all;
