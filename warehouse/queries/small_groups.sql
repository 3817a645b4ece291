-- Groups of cut responses that have fewer entries than are stored, with the stored number; one row per group.
with served as (
    select {outer}{identity}, count(*) as _served, bool_or(_response in ({uncut})) as _is_uncut
    from {staged} group by all
),
stored as (select {outer}{identity}, count(*) as _stored from {held} group by all)
select {outer}_identity, _stored from served join stored using ({outer}_identity)
    where _served < _stored and not _is_uncut
