-- The shorter queries of `warehouse.warehouse`, by name, each over one account.

-- list_ids
select list_id from source.lists where account = $account and _deleted_at is null order by list_id;

-- vanished_list_ids
select distinct list_id from source.contacts
where account = $account and _deleted_at is null
    and list_id not in (select list_id from source.lists where account = $account and _deleted_at is null)
order by list_id;

-- domain_ids
select distinct domain_id from source.webhooks
where account = $account and _deleted_at is null and domain_id is not null
order by 1;
