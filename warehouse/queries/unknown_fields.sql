-- Fields that no column holds, and that no response had before; one row per field.
insert into sync.unknown_fields by name
select {account} as account, {table} as table_name, f.field, {as_of} as first_seen_at
from (select distinct unnest(json_keys(extra)) as field from {source} where extra is not null) f
where not exists (from sync.unknown_fields u where u.account = {account} and u.table_name = {table} and u.field = f.field)
order by f.field
