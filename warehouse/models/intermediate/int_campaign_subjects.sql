-- Which campaigns sent messages with which subject, and when; one row per account, kind, subject and from_at.
-- Timelines name subjects, not campaigns. Every subject that a campaign ever had counts, and deleted campaigns
-- count, too. Where several campaigns may have sent a message, none is named: a guess would credit one campaign
-- with the results of another.
-- Sent messages prove which campaigns have gone out. A standard campaign goes out once, within one sending. So
-- each sending means that at least one more of the campaigns created by its end has gone out. Once there were
-- as many sendings as campaigns, all of them have gone out.
with campaigns as (
    select
        account,
        campaign_id,
        case when type = 'automated' then 'automated' else 'standard' end as kind,
        lower(trim(subject)) as subject,
        trim(subject) as title,
        created_at,
        -- a standard campaign goes out once: messages sent after it was listed as sent are not its own
        case when type is distinct from 'automated' then min(valid_from) filter (where status = 'sent')
            over campaign end as gone_out_by,
        case when type is distinct from 'automated' then min(sent_at) over campaign end as sent_at
    from {{ ref('history_campaigns') }}
    where status not in ('draft', 'scheduled') or status is null
    window campaign as (partition by account, campaign_id)
),

spans as (
    select
        account,
        kind,
        subject,
        campaign_id,
        -- If the time of the sending is reported: clocks and time zones may differ by half a day, and a sending
        -- takes less than two hours. If not even the creation is reported, the campaign may always have
        -- existed.
        coalesce(min(sent_at) - interval 12 hours, min(created_at),
            timestamptz '1970-01-01 00:00+00') as begins_at,
        coalesce(min(sent_at) + interval 10 hours, min(gone_out_by)) as gone_out_by,
        max(title) as title
    from campaigns
    where subject is not null
    group by all
),

begun as (
    select
        * replace (
            -- clocks and time zones may differ by up to a day
            case when begins_at = min(begins_at) over by_subject then begins_at - interval 1 day
                else begins_at end as begins_at
        ),
        min(begins_at) over by_subject - interval 1 day as first_at
    from spans
    window by_subject as (partition by account, kind, subject)
),

-- By the hour, since there are few hours. Only subjects that were used again.
hours as (
    select account, kind, lower(trim(message_text)) as subject, min(sent_at) as from_at, max(sent_at) as until_at
    from {{ ref('int_messages') }}
    where (account, kind, lower(trim(message_text))) in (
        select (account, kind, subject) from spans where kind = 'standard'
            group by account, kind, subject having count(*) > 1
    )
    group by account, kind, lower(trim(message_text)), date_trunc('hour', sent_at)
    having min(sent_at) is not null
),

marked as (
    select *, coalesce(from_at > lag(until_at) over by_subject + interval 36 hours, true) as is_first
    from hours
    window by_subject as (partition by account, kind, subject order by from_at)
),

sendings as (
    select account, kind, subject, number, min(from_at) as from_at, max(until_at) as until_at
    from (
        select *, count_if(is_first) over (partition by account, kind, subject order by from_at) as number
        from marked
    )
    group by all
),

-- how many campaigns were created by the end of each sending, and whether the next was within a day of it
created as (
    select
        account,
        kind,
        subject,
        sendings.from_at,
        until_at,
        count_if(begins_at <= until_at) as begun_count,
        coalesce(bool_or(begins_at > until_at and begins_at <= until_at + interval 1 day), false) as is_near_next
    from sendings
    join begun using (account, kind, subject)
    where sendings.from_at >= first_at
    group by all
),

balanced as (
    select *, begun_count - row_number() over by_subject as balance
    from created
    window by_subject as (partition by account, kind, subject order by from_at)
),

-- a sending that no remaining campaign can have sent takes nothing away: the balance restarts
lowest as (
    select *, least(0, min(balance) over (
        partition by account, kind, subject order by from_at rows between unbounded preceding and 1 preceding
    )) as lowest
    from balanced
),

settled as (
    select account, kind, subject, until_at
    from lowest
    -- just before the next campaign was created: the clocks contradict each other, so nothing is settled
    qualify balance <= lowest
        and not bool_or(balance < lowest and is_near_next) over (partition by account, kind, subject)
),

subjects as (
    select
        begun.account, begun.kind, begun.subject, campaign_id, title, begins_at,
        least(gone_out_by, min(settled.until_at)) as gone_out_by
    from begun
    left join settled
        on settled.account = begun.account and settled.kind = begun.kind and settled.subject = begun.subject
            and settled.until_at >= begun.begins_at
    group by begun.account, begun.kind, begun.subject, campaign_id, title, begins_at, gone_out_by
),

begins as (
    select distinct account, kind, subject, begins_at as from_at from subjects
),

-- which campaigns may have sent the messages from then on
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
    from_at,
    coalesce(lead(from_at) over by_subject, timestamptz '9999-01-01 00:00+00') as until_at,
    case when candidate_count = 1 then campaign_id end as campaign_id,
    case when candidate_count = 1 then title end as title,
    candidate_count > 1 as is_ambiguous,
    campaign_ids
from candidates
window by_subject as (partition by account, kind, subject order by from_at)
