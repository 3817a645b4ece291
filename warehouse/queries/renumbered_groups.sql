-- The staged rows. Of the small groups, only content that is not stored yet, with numbers after the stored
-- ones; one row per key.
with served as (select *, {identity}, {content} as _content from {staged}),
seen as (select {outer}{identity}, {content} as _content from {held}),
unseen as (
    select distinct on ({outer}_identity, _content) *
    from served semi join {small} using ({outer}_identity) anti join seen using ({outer}_identity, _content)
    order by _part
)
select * exclude (_identity, _content) from served anti join {small} using ({outer}_identity)
union all by name
select * exclude (_identity, _content, _stored)
    replace (_identity || '-'
        || (_stored - 1 + row_number() over (partition by {outer}_identity order by _part)) as {last})
from unseen join {small} using ({outer}_identity)
