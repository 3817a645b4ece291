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

-- cut_timelines
select count(*) from sync.contact_coverage
where account = $account and timeline_served < timeline_total
    and contact_id in (select contact_id from source.contacts where account = $account and _deleted_at is null);

-- Custom fields of contacts that have a number for a name, and no label in their list.
-- unlabelled_fields
with keys_of_contacts as (
    select distinct list_id, json_keys(custom_fields) as field_ids
    from source.contacts where account = $account and _deleted_at is null
),
fields as (select distinct list_id, unnest(field_ids) as field_id from keys_of_contacts),
labelled as (
    select list_id, field_id from source.list_fields
    where account = $account and _deleted_at is null and label is not null
)
select count(distinct field_id) from fields anti join labelled using (list_id, field_id)
where regexp_full_match(field_id, '[0-9]+');
