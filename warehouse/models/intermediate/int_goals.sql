-- What a person must do to reach a goal; one row per goal.
with all_goals as (
    select
        account,
        goal_id,
        name,
        case when lower(value_type) = 'fixed' then value end as value,
        list_distinct([{{ page_of('link') }} for link in links if trim(link) <> '']) as pages,
        regexp_matches(lower(coalesce(event_link_rule, '')), '\ball\b') as needs_all,
        -- videos and forms also have a link; whether they were watched or submitted is not reported anywhere
        coalesce(regexp_matches(lower(event_type), 'video|form'), false) as is_elsewhere
    from {{ current('stg_goals') }}
)

select
    account,
    goal_id,
    name,
    value,
    pages,
    case when needs_all then len(pages) else 1 end as needed_count,
    coalesce(len(pages) > 0, false) and not is_elsewhere as can_be_told
from all_goals
