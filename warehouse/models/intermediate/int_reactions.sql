-- What contacts did by themselves, and when; one row per opened message, clicked message and visit of which the
-- moment is known.
-- A message that was clicked was opened, but nobody knows when: a click is no opening of its own. The moment of
-- the sending is none of a reaction.
select *
from (
    select account, contact_id, 'open' as reaction, opened_at as moment, message_key
    from {{ ref('contact_campaign') }}
    union all
    select account, contact_id, 'click', coalesce(clicked_at, opened_at), message_key
    from {{ ref('contact_campaign') }}
    where is_clicked
    union all
    select account, contact_id, 'visit', visited_at, null
    from {{ ref('stg_timeline_visits') }}
)
-- days to come are left to those who know the account's today
where {{ is_plausible_moment('moment', "timestamptz 'infinity'") }}
