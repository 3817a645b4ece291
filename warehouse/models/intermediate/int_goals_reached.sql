-- The people who reached each goal; one row per goal and person.
-- The service counts conversions but lists none of them. They are computed from the people that it shows at the
-- goal's links.
with goal_pages as (
    select account, goal_id, needed_count, unnest(pages) as page from {{ ref('int_goals') }} where can_be_told
),

-- several contacts with one address are one person; deleted contacts count, too
people as (
    select account, contact_id, min(email_normalized) as email from {{ ref('stg_contacts') }} group by all
),

visits as (
    select
        account,
        goal_id,
        coalesce(people.email, 'contact ' || visits.contact_id) as person,
        people.email,
        page,
        needed_count,
        visited_at,
        visit_key,
        contact_id,
        link,
        utm_source,
        utm_medium,
        utm_campaign
    from (select *, {{ page_of('link') }} as page from {{ ref('stg_timeline_visits') }}
        where visited_at is not null) as visits
    join goal_pages using (account, page)
    left join people using (account, contact_id)
),

first_visits as (
    from visits
    qualify row_number()
        over (partition by account, goal_id, person, page order by visited_at, visit_key, contact_id) = 1
),

-- the visit that completed the goal
reached_by_visit as (
    select * from first_visits
    qualify row_number()
        over (partition by account, goal_id, person order by visited_at, visit_key, contact_id) = needed_count
),

clicks as (
    select account, goal_id, email_normalized as person, page, needed_count, campaign_id
    from (select *, {{ page_of('url') }} as page from {{ current('stg_campaign_clickers') }})
    join goal_pages using (account, page)
),

-- clicks have no time, so if there are several campaigns, none is named
reached_by_click as (
    select account, goal_id, person, case when min(campaign_id) = max(campaign_id)
        then min(campaign_id) end as campaign_id
    from (
        from clicks
        union all by name
        select account, goal_id, person, page, needed_count from first_visits
    )
    anti join reached_by_visit using (account, goal_id, person)
    group by all
    having count(distinct page) >= any_value(needed_count)
),

numbered as (
    select *, row_number() over (partition by account, goal_id order by person) as number
        from reached_by_click
),

clickers as (
    select numbered.*, min(people.contact_id) as contact_id
    from numbered
    left join people on people.account = numbered.account and people.email = numbered.person
    group by all
)

select
    account,
    goal_id,
    goal_id || '/' || contact_id as goal_key,
    contact_id,
    email,
    visited_at as reached_at,
    link,
    utm_source,
    utm_medium,
    utm_campaign,
    null::bigint as campaign_id
from reached_by_visit
union all by name
select account, goal_id, goal_id || '/' || coalesce(contact_id::varchar, 'clicker ' || number) as goal_key,
    contact_id, person as email, campaign_id
from clickers
