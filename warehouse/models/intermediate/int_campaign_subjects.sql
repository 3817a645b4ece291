-- Under which subject messages of which campaign went out, and when; one row per account, kind, subject and begin.
-- Timelines name subjects, not campaigns. Every subject that a campaign ever had counts, and campaigns that are gone.
with subjects as (
    select
        account,
        campaign_id,
        case when type = 'automated' then 'automated' else 'standard' end as kind,
        lower(trim(subject)) as subject,
        max(trim(subject)) as title,
        min(coalesce(created_at, valid_from)) as created_at
    from {{ ref('history_campaigns') }}
    where subject is not null and status not in ('draft', 'scheduled')
    group by all
),

ordered as (
    select
        *,
        row_number() over by_subject as place,
        lead(created_at) over by_subject as next_created_at
    from subjects
    window by_subject as (partition by account, kind, subject order by created_at, campaign_id)
)

select
    account,
    kind,
    subject,
    -- what was sent before any of them was created belongs to the first: clocks differ
    case when place = 1 then timestamptz '1970-01-01 00:00+00' else created_at end as from_at,
    coalesce(next_created_at, timestamptz '9999-01-01 00:00+00') as until_at,
    campaign_id,
    title,
    place > 1 as is_ambiguous
from ordered
-- two created in the same moment: the later id stands for both
where created_at is distinct from next_created_at
