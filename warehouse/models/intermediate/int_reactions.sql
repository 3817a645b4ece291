-- What contacts did by themselves, and when; one row per opened message, clicked message and visit.
select account, contact_id, 'open' as reaction, coalesce(opened_at, sent_at) as moment, message_key
from {{ ref('contact_campaign') }}
where is_opened and coalesce(opened_at, sent_at) is not null
union all
select account, contact_id, 'click', coalesce(clicked_at, opened_at, sent_at), message_key
from {{ ref('contact_campaign') }}
where is_clicked and coalesce(clicked_at, opened_at, sent_at) is not null
union all
select account, contact_id, 'visit', visited_at, null
from {{ ref('stg_timeline_visits') }}
where visited_at is not null
