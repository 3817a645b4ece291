-- Schema drift: classifies and lists the differences in the responses of a load.
-- `arrow_facts`: facts that are new (kind type, word, always), no longer true (missing, not always), or
-- without a column (extra): table_name, field, kind, what, request_id, sample.

-- Masks values that may be somebody's address (`sql.MASKED`).
-- masked
create or replace temp macro masked(text) as {masked};

-- The listed name of a field. All fields with an address as name count as one, which is listed once.
-- listed
create or replace temp macro listed(field) as left(masked(field), 200);

-- known_of
select table_name, field, kind, what from sync.known_shapes
where account = getvariable('account') and table_name in ({tables});

-- One row per fact; `change` is the listed kind of change, NULL if the fact is only recorded.
-- drifted
create or replace temp table drifted as
with facts as (select *, regexp_replace(field, '\.?[^.]*$', '') as parent from arrow_facts),
known as (
    from sync.known_shapes
    where account = getvariable('account') and table_name in (select table_name from facts)
),
types as (
    select table_name, field, string_agg(what, ', ' order by what) filter (what <> 'null') as types
    from known where kind = 'type' group by all
),
members as (
    select table_name, parent, count(distinct field) as members
    from (
        select table_name, field, regexp_replace(field, '\.?[^.]*$', '') as parent from types
        union all by name
        select table_name, field, parent from facts where kind = 'type'
    )
    group by all
),
words as (select table_name, field, count(*) as words from known where kind = 'word' group by all),
-- Until the asset is read completely once, new facts are only recorded, not listed: for at most a week of
-- request ids.
begun as (select table_name, min(first_request) as first_request from known group by all),
learnt as (
    select table_name from begun b
    where getvariable('last_request') - first_request <= 7 * 86_400::bigint * 1_000_000 * 1024
        and not exists (
        from sync.loads l
        where l.account = getvariable('account') and l.asset = getvariable('asset') and len(l.tables) = 0
            and l.last_request > b.first_request
    )
),
judged as (
    select f.*, t.types, w.words, case
        when f.kind = 'extra' then 'new field'
        when f.table_name in (from learnt) or f.table_name not in (select table_name from begun) then null
        when f.kind = 'missing' then 'field missing'
        when f.kind = 'word' and w.words is not null then 'new value'
        when f.kind <> 'type' or f.what = 'null' then null
        when t.types is not null then 'new type'
        when t.table_name is null and contains(f.field, '.')
            and (f.parent = 'response.data' or regexp_matches(p.types, 'object|list')) then 'new field'
    end as change
    from facts f
    left join types t using (table_name, field)
    left join words w using (table_name, field)
    left join types p on p.table_name = f.table_name and p.field = f.parent
    left join members m on m.table_name = f.table_name and m.parent = f.parent
    where case f.kind
        when 'word' then coalesce(w.words, 0) <= {most_words}
        -- an object with more members is a map, and they are not fields
        when 'type' then f.parent = '' or m.members <= 50
        else true
    end
)
select table_name, field, listed(field) as listed, kind, what, change, request_id, sample,
    case
        when change in ('new type', 'field missing') then types
        when change = 'new value' then words || ' values'
    end as before,
    case when change in ('new type', 'new value') then what end as after
from judged
order by request_id, table_name, field, kind, what;

-- changes
insert into sync.schema_changes by name
select getvariable('account') as account, getvariable('as_of') as noticed_at,
    table_name, change, before, request_id, listed as field,
    left(masked(after), 60) as after,
    left(masked(sample), 60) as sample
from drifted d
where change is not null and not exists (
    from sync.schema_changes s
    where s.account = getvariable('account') and s.table_name = d.table_name and s.change = d.change
        and s.field = d.listed and s.after is not distinct from d.after
)
qualify row_number() over (partition by table_name, listed, change, after order by request_id) = 1
returning table_name, {line};

-- known
insert into sync.known_shapes by name
select getvariable('account') as account, table_name, field, kind, what, request_id as first_request
from drifted
where kind in ('type', 'word', 'always');

-- gone
delete from sync.known_shapes k
where account = getvariable('account') and kind = 'always' and exists (
    from drifted d
    where d.kind in ('missing', 'not always') and d.table_name = k.table_name and d.field = k.field
        and d.what = k.what
);

-- Unknown fields of a table's staged rows that are not listed yet, by their listed names; each with its value in
-- the first response that has it.
-- extras
select listed(field) as listed, _response,
    json_extract(extra, '/' || replace(replace(field, '~', '~0'), '/', '~1'))
from (select unnest(json_keys(extra)) as field, extra, _part, _response from {source} where extra is not null)
where listed not in (
    select field from sync.schema_changes
    where account = getvariable('account') and table_name = '{table}' and change = 'new field'
)
qualify row_number() over (partition by listed order by _part) = 1
order by _part
limit 200;
