-- The share of a list's contacts that our own pushes took away since it was last read; one row per list.
with taken as (
    select distinct contact_id, left_list_id as list_id
    from sync.writebacks as w
    join sync.coverage as c
        on c.account = w.account and c.table_name = 'contacts' and c.scope = 'list_id=' || left_list_id
    where w.account = $account and effect = 'leaves' and state in ('applied', 'verified')
        and coalesce(request_id > last_request, done_at > as_of)
)
select list_id, count(t.contact_id) / count(*) as share
from source.contacts left join taken as t using (contact_id, list_id)
where account = $account and _deleted_at is null
group by list_id
having count(t.contact_id) > 0
