-- Under which subject messages of which campaign went out, and when; one row per account, kind, subject and
-- from_at.
-- Timelines name subjects, not campaigns. Every subject that a campaign ever had counts, and campaigns that
-- are gone. Where several campaigns may have sent a message, none is named: a guess would credit one campaign
-- with what another did.
with campaigns as (
    select
        account,
        campaign_id,
        case when type = 'automated' then 'automated' else 'standard' end as kind,
        lower(trim(subject)) as subject,
        trim(subject) as title,
        created_at,
        -- a standard campaign goes out once: sends that come after it was listed as sent are not its own
        case when type is distinct from 'automated' then min(valid_from) filter (where status = 'sent')
            over campaign end as gone_out_by,
        case when type is distinct from 'automated' then min(sent_at) over campaign end as sent_at
    from {{ ref('history_campaigns') }}
    where status not in ('draft', 'scheduled') or status is null
    window campaign as (partition by account, campaign_id)
),

subjects as (
    select
        account,
        kind,
        subject,
        campaign_id,
        -- where its sending is told: clocks and time zones may differ by half a day; a sending takes less
        -- than two hours then. One of which not even the creation is told may always have been there
        coalesce(min(sent_at) - interval 12 hours, min(created_at),
            timestamptz '1970-01-01 00:00+00') as begins_at,
        coalesce(min(sent_at) + interval 10 hours, min(gone_out_by)) as gone_out_by,
        max(title) as title
    from campaigns
    where subject is not null
    group by all
),

begins as (
    select distinct account, kind, subject, begins_at as from_at from subjects
),

-- which campaigns may have sent what was sent from then on
candidates as (
    select
        account,
        kind,
        subject,
        begins.from_at,
        count(*) as candidate_count,
        min(subjects.campaign_id) as campaign_id,
        list(subjects.campaign_id order by subjects.campaign_id) as campaign_ids,
        max(subjects.title) as title
    from begins
    join subjects using (account, kind, subject)
    where subjects.begins_at = begins.from_at
        or (subjects.begins_at < begins.from_at and coalesce(subjects.gone_out_by >= begins.from_at, true))
    group by all
)

select
    account,
    kind,
    subject,
    -- clocks and time zones may differ by up to a day
    case when lag(from_at) over by_subject is null then from_at - interval 1 day else from_at end as from_at,
    coalesce(lead(from_at) over by_subject, timestamptz '9999-01-01 00:00+00') as until_at,
    case when candidate_count = 1 then campaign_id end as campaign_id,
    case when candidate_count = 1 then title end as title,
    candidate_count > 1 as is_ambiguous,
    campaign_ids
from candidates
window by_subject as (partition by account, kind, subject order by from_at)
