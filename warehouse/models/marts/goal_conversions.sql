-- Who reached which goal, and what led there; one row per goal, credited campaign and source.
-- The service counts conversions and tells none of them: they are worked out from whom it shows on the goal's links.
with all_goals as (
    select
        account,
        goal_id,
        name,
        value,
        lower(value_type) = 'fixed' as has_value,
        list_distinct([{{ page_of('link') }} for link in links if trim(link) <> '']) as pages,
        regexp_matches(lower(coalesce(event_link_rule, '')), '\ball\b') as needs_all,
        -- what a video or a form is has a link, too; that it was seen or sent shows nowhere
        coalesce(regexp_matches(lower(event_type), 'video|form'), false) as is_elsewhere
    from {{ ref('stg_goals') }}
),

goals as (
    select
        * exclude (needs_all, is_elsewhere),
        coalesce(len(pages) > 0, false) and not is_elsewhere as can_be_told,
        case when needs_all then len(pages) else 1 end as needed_count
    from all_goals
),

goal_pages as (
    select account, goal_id, needed_count, unnest(pages) as page from goals where can_be_told
),

-- several contacts with one address are one person; who is gone counts, too
people as (
    select account, contact_id, min(nullif(lower(trim(email)), '')) as email from {{ source('source', 'contacts') }} group by all
),

visits as (
    select
        account,
        goal_id,
        coalesce(people.email, 'contact ' || visits.contact_id) as person,
        page,
        needed_count,
        visited_at,
        visit_key,
        contact_id,
        first_touch.campaign_id as first_campaign_id,
        last_touch.campaign_id as last_campaign_id,
        coalesce(nullif(lower(trim(utm_source)), ''), '(none)') as source
    from (select *, {{ page_of('link') }} as page from {{ ref('int_visit_touches') }}) as visits
    join goal_pages using (account, page)
    left join people using (account, contact_id)
),

first_visits as (
    from visits
    qualify row_number() over (partition by account, goal_id, person, page order by visited_at, visit_key, contact_id) = 1
),

-- the visit that made the goal complete is what its touches are credited with
reached_by_visit as (
    select account, goal_id, person, first_campaign_id, last_campaign_id, source
    from first_visits
    qualify row_number() over (partition by account, goal_id, person order by visited_at, visit_key, contact_id) = needed_count
),

clicks as (
    select account, goal_id, lower(trim(email)) as person, page, needed_count, campaign_id
    from (select *, {{ page_of('url') }} as page from {{ ref('stg_campaign_clickers') }})
    join goal_pages using (account, page)
),

-- clicks have no moment, so that of several campaigns none is named
reached_by_click as (
    select
        account,
        goal_id,
        person,
        case when min(campaign_id) = max(campaign_id) then min(campaign_id) end as first_campaign_id,
        first_campaign_id as last_campaign_id,
        '(click)' as source
    from (
        from clicks
        union all by name
        select account, goal_id, person, page, needed_count from first_visits
    )
    anti join reached_by_visit using (account, goal_id, person)
    group by all
    having count(distinct page) >= any_value(needed_count)
),

conversions as (
    from reached_by_visit
    union all
    from reached_by_click
),

credits as (
    select account, goal_id, first_campaign_id as campaign_id, source, 1 as first_touch, 0 as last_touch from conversions
    union all
    select account, goal_id, last_campaign_id, source, 0, 1 from conversions
),

counted as (
    select account, goal_id, campaign_id, source, sum(first_touch)::bigint as first_touch_count, sum(last_touch)::bigint as last_touch_count
    from credits
    group by all
)

select
    account,
    goal_id,
    goals.name as goal_name,
    coalesce(counted.campaign_id::varchar, '(none)') as credited_to,
    coalesce(counted.source, '(none)') as source,
    counted.campaign_id,
    campaigns.subject,
    can_be_told,
    case when can_be_told then coalesce(first_touch_count, 0) end as first_touch_count,
    case when can_be_told then coalesce(last_touch_count, 0) end as last_touch_count,
    case when has_value then value end as goal_value,
    (case when can_be_told and has_value then coalesce(first_touch_count, 0) * value end)::double as first_touch_value,
    (case when can_be_told and has_value then coalesce(last_touch_count, 0) * value end)::double as last_touch_value
from goals
left join counted using (account, goal_id)
left join {{ source('source', 'campaigns') }} as campaigns using (account, campaign_id)
