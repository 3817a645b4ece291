-- What the timelines of contacts show about each campaign's messages: which ones are known to belong to it, and
-- how soon they were opened. Times of openings have a precision of a minute. Campaigns without such messages
-- have no row; one row per campaign.
with messages as (
    select
        account,
        campaign_id,
        kind,
        message_text,
        sent_at,
        is_ambiguous,
        -- clocks may differ by a minute; an opening long before the sending proves nothing
        case when date_diff('minute', sent_at, opened_at) >= -1
            then greatest(date_diff('minute', sent_at, opened_at), 0) end as minutes
    from {{ ref('contact_campaign') }}
),

matched as (
    select
        account,
        campaign_id,
        count(*) as matched_count,
        count(minutes) as timed_open_count,
        median(minutes / 60.0) as median_hours_to_open,
        count(*) filter (where minutes <= 60) as within_1h_count,
        count(*) filter (where minutes <= 24 * 60) as within_24h_count,
        count(*) filter (where minutes <= 48 * 60) as within_48h_count
    from messages
    where campaign_id is not null
    group by all
),

-- each message counts for every campaign that may have sent it
ambiguous as (
    select account, campaign_id, count(*) as ambiguous_count
    from (
        select messages.account, unnest(subjects.campaign_ids) as campaign_id
        from messages
        join {{ ref('int_campaign_subjects') }} as subjects
            on subjects.account = messages.account and subjects.kind = messages.kind
            and subjects.subject = lower(trim(messages.message_text))
            and messages.sent_at >= subjects.from_at and messages.sent_at < subjects.until_at
        where messages.is_ambiguous
    )
    group by all
)

select
    account,
    campaign_id,
    coalesce(matched_count, 0) + coalesce(ambiguous_count, 0) as message_count,
    coalesce(matched_count, 0) as matched_count,
    coalesce(timed_open_count, 0) as timed_open_count,
    median_hours_to_open,
    coalesce(within_1h_count, 0) as within_1h_count,
    coalesce(within_24h_count, 0) as within_24h_count,
    coalesce(within_48h_count, 0) as within_48h_count
from matched
full join ambiguous using (account, campaign_id)
