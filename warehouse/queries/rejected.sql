-- What could not be read (arrow_rejected) takes the place of what was set aside when the same scopes
-- (arrow_scopes) were read before; one row per entry.
delete from sync.rejected_records r
where account = getvariable('account') and (
    (table_name, scope) in (select (table_name, scope) from arrow_scopes)
    -- of a range also what belongs to ranges that lie within it
    or exists (
        from arrow_scopes s
        where s.table_name = r.table_name and s.is_range
            and split_part(r.scope, '..', 1) >= split_part(s.scope, '..', 1)
            and split_part(r.scope, '..', 2)
                between split_part(s.scope, '..', 1) and split_part(s.scope, '..', 2)
    )
);

-- ranges overlap: an entry that an earlier range had, too, moves to this one
delete from sync.rejected_records
where account = getvariable('account')
    and (table_name, raw) in (select (table_name, raw::json) from arrow_rejected where is_range);

insert into sync.rejected_records by name
select getvariable('account') as account, * exclude (is_range) from arrow_rejected;
