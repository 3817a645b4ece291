-- What is known about the timeline of each existing contact: active contacts first, then the newest ones; one
-- row per contact.
-- asked_at: when its timeline was last requested, NULL for never. row_at, clicked_at, redeemed_at, pushed_at:
-- when an event that may concern it was last noticed.
-- list_at: when a campaign was first seen as sent that somebody with the same lists clicked, or that has no
-- clicks yet. campaign_at: the same for a contact whose timeline has messages of campaigns.
-- active_lately, active_before: the days of the last $days with entries of the contact's own or of automations.
-- Bit k of the first is k days before $today (UTC); bit k of the second is 64 days earlier. days_since_active:
-- from the last of these days to $today.
with contacts as (
    select contact_id, min(email_normalized) as email,
        coalesce(bool_or(status = 'active'), false) as is_active,
        bit_xor(hash(list_id)) as lists, max(registered_at) as registered_at,
        min(_first_seen_at) as first_seen_at, max(_changed_at) as row_at
    from source.contacts
    where account = $account and _deleted_at is null
    group by contact_id
),
clicked as (
    select email_normalized as email, max(_changed_at) as clicked_at
    from source.campaign_clickers
    where account = $account and _deleted_at is null
    group by 1
),
redeemed as (
    -- by the day that the service names: the row itself may have come after tonight's timeline
    select email_normalized as email, max(redeemed_on)::timestamptz + interval 1 day as redeemed_at
    from source.coupons
    where account = $account and is_redeemed
    group by 1
),
happened as (
    -- entries that a timeline calls messages of campaigns (observation 22) are actions of the account, not of
    -- the contact
    select contact_id, occurred_at,
        coalesce(key in ('email-campaign-sent', 'mail-sent', 'email-sent'), false) as is_message
    from source.timeline_events
    where account = $account
    union all
    select contact_id, visited_at, false
    from source.timeline_visits
    -- visits from e-mails are clicks, which campaigns name
    where account = $account and lower(utm_medium) is distinct from 'email'
    union all
    select contact_id, triggered_at, false
    from source.timeline_automations
    where account = $account
),
active as (
    -- the days with entries of its own, as bits by their distance to $today: the last 64 days, and the days
    -- before
    select contact_id,
        bit_or(1::ubigint << (ago % 64)) filter (where ago < 64 and not is_message) as active_lately,
        bit_or(1::ubigint << (ago % 64)) filter (where ago >= 64 and not is_message) as active_before,
        min(ago) filter (where not is_message) as days_since_active,
        bool_or(is_message) as has_messages
    from (select *, $today - floor(epoch(occurred_at) / 86400)::integer as ago from happened)
    where ago between 0 and $days::integer
    group by 1
),
sent as (
    select campaign_id, min(_changed_at) as sent_at
    from source.campaign_stats
    where account = $account
        and coalesce(opened_count, 0) + coalesce(unopened_count, 0) + coalesce(bounced_count, 0) > 0
    group by 1
),
clickers as (
    select distinct campaign_id, email_normalized as email
    from source.campaign_clickers
    where account = $account and _deleted_at is null
),
reached as (
    select lists, max(sent_at) as sent_at
    from sent join clickers using (campaign_id) join contacts using (email)
    group by 1
),
unclicked as (
    select max(sent_at) as sent_at from sent anti join clickers using (campaign_id)
),
pushes as (
    -- our own writes, including the ones with an unknown outcome
    select contact_id, email_normalized as email, greatest(sent_at, done_at) as pushed_at
    from sync.writebacks
    where account = $account and coalesce(done_at, sent_at) is not null
        and coalesce(state, '') not in ('rejected', 'skipped')
),
pushed as (
    select contact_id, max(pushed_at) as pushed_at from pushes where contact_id is not null group by 1
),
pushed_to as (
    select email, max(pushed_at) as pushed_at from pushes where contact_id is null group by 1
)
select p.contact_id, p.registered_at, p.first_seen_at,
    c.timeline_asked_at as asked_at, c.timeline_request as request_id,
    a.active_lately, a.active_before, a.days_since_active, p.row_at, k.clicked_at, r.redeemed_at,
    if(p.is_active, greatest(l.sent_at, u.sent_at), null) as list_at,
    if(a.has_messages, list_at, null) as campaign_at,
    greatest(w.pushed_at, t.pushed_at) as pushed_at
from contacts p
left join sync.contact_coverage c on c.account = $account and c.contact_id = p.contact_id
left join active a on a.contact_id = p.contact_id
left join clicked k on k.email = p.email
left join redeemed r on r.email = p.email
left join reached l on l.lists = p.lists
left join pushed w on w.contact_id = p.contact_id
left join pushed_to t on t.email = p.email
cross join unclicked u
order by p.is_active desc, p.registered_at desc nulls last, p.contact_id desc
