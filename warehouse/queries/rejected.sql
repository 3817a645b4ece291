-- Records that could not be read (arrow_rejected) replace the ones from the last reading of the same scopes
-- (arrow_scopes); one row per entry.
delete from sync.rejected_records r
where account = getvariable('account') and (
    (table_name, scope) in (select (table_name, scope) from arrow_scopes)
    -- for a range, also the records of the ranges within it
    or exists (
        from arrow_scopes s
        where s.table_name = r.table_name and s.is_range
            and split_part(r.scope, '..', 1) >= split_part(s.scope, '..', 1)
            and split_part(r.scope, '..', 2)
                between split_part(s.scope, '..', 1) and split_part(s.scope, '..', 2)
    )
);

-- ranges overlap: an entry that was also in an earlier range moves to this one
delete from sync.rejected_records
where account = getvariable('account')
    and (table_name, raw) in (select (table_name, raw::json) from arrow_rejected where is_range);

insert into sync.rejected_records by name
select getvariable('account') as account, * exclude (is_range) from arrow_rejected;
