-- Every staged row that is not stored with the same values; one row per change.
with stored as (
    select rid, {system}, {columns} from {stored} t
    where exists (from {staged} s where {same_key})
),
staged as (select _part, _known, _entry_hash, _is_listed, _has_detail, {columns} from {staged}),
compared as (
    select s._part, t.rid, t.rid is null as is_new,
        t.rid is not null and ({differs}) as is_different,
        t._deleted_at is not null and {may_show} as is_back,
        t.rid is not null and s._has_detail and s._entry_hash <> coalesce(t._listing_hash, '') as is_touched,
        t.rid is not null or {may_show} as is_wanted
    from staged s left join stored t on {same_key}
)
select _part, rid, is_new, is_different, is_back from compared
where is_wanted and (is_new or is_different or is_back or is_touched)
