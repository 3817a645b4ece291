-- What each contact received and did with it; one row per contact and message.
with messages as (
    select * from {{ ref('int_messages') }}
),

matched as (
    select messages.*, subjects.campaign_id, subjects.title as subject, subjects.is_ambiguous
    from messages
    left join {{ ref('int_campaign_subjects') }} as subjects
        on subjects.account = messages.account and subjects.kind = messages.kind
            and subjects.subject = lower(trim(messages.message_text))
        and messages.sent_at >= subjects.from_at and messages.sent_at < subjects.until_at
),

links as (
    select distinct account, campaign_id, url from {{ ref('stg_campaign_links') }}
),

visits as (
    select account, contact_id, link as url, visited_at from {{ ref('stg_timeline_visits') }}
),

-- timelines count the clicks on campaigns without their times
visited as (
    select account, contact_id, message_key, min(visited_at) as visited_at
    from (select * from matched where click_count > 0 and clicked_at is null)
    join links using (account, campaign_id)
    join visits using (account, contact_id, url)
    where visited_at >= sent_at
    group by all
)

select
    account,
    contact_id,
    message_key,
    kind,
    channel,
    campaign_id,
    coalesce(is_ambiguous, false) as is_ambiguous,
    automation,
    subject,
    message_text,
    sent_at,
    is_opened,
    opened_at,
    is_quick_open,
    click_count > 0 as is_clicked,
    click_count,
    coalesce(clicked_at, visited.visited_at) as clicked_at
from matched
left join visited using (account, contact_id, message_key)
