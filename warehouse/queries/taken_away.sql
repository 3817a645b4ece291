-- The share of a list's contacts that our own moves and deletions took away since it was last read; one row
-- per list.
with ours as (
    select account, (params ->> 'id')::bigint as contact_id, request_id, done_at,
        (case kind when 'moves' then params ->> 'sourceid' else params ->> 'listid' end)::bigint as list_id
    from sync.writebacks
    where account = $account and kind in ('moves', 'deletions') and state in ('applied', 'verified')
),
taken as (
    select distinct contact_id, list_id
    from ours join sync.coverage c on c.account = ours.account and table_name = 'contacts'
        and scope = 'list_id=' || list_id
    where coalesce(request_id > last_request, done_at > as_of)
)
select list_id, count(t.contact_id) / count(*) as share
from source.contacts left join taken t using (contact_id, list_id)
where account = $account and _deleted_at is null group by list_id having count(t.contact_id) > 0
