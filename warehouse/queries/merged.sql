-- Two JSON objects as one; the second's members win, in the order of their names. So the result is the same for
-- any order in which they came. (json_merge_patch leaves the order open and drops members that are null.)
create or replace temp macro pointer_to(name) as '/' || replace(replace(name, '~', '~0'), '/', '~1');
create or replace temp macro merged(a, b) as ('{' || array_to_string([
    to_json(name)::varchar || ':'
        || coalesce(json_extract(b, pointer_to(name)), json_extract(a, pointer_to(name)))::varchar
    for name in list_sort(list_distinct(list_concat(json_keys(a), json_keys(b))))
], ',') || '}')::json;
