-- What contacts did themselves, and when; one row per opened message, clicked message and visit with a known
-- time.
-- A message that was clicked was also opened, but the time of the opening is unknown, so a click is not an
-- additional opening. The time of the sending is never used as the time of a reaction.
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
-- models that know the account's today exclude future days
where {{ is_plausible_moment('moment', "timestamptz 'infinity'") }}
