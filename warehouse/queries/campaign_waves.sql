-- What the statistics of the last days noticed; one row per campaign and observation at which it moved.
-- share: of those reached, 1 when it was first seen sent, else newly opened over not opened before. clickers:
-- addresses that clicked, of the whole campaign.
with stats as (
    select campaign_id, observed_on, _changed_at as seen_at,
        coalesce(opened_count, 0) + coalesce(unopened_count, 0) + coalesce(bounced_count, 0) as reached,
        coalesce(opened_count, 0) as opened, coalesce(unopened_count, 0) as unopened
    from source.campaign_stats where account = $account
),
steps as (
    select *, lag(reached) over own as reached_before, lag(opened) over own as opened_before,
        lag(unopened) over own as unopened_before
    from stats window own as (partition by campaign_id order by observed_on)
),
clickers as (
    select campaign_id, count(distinct email_normalized) as clickers from source.campaign_clickers
    where account = $account and _deleted_at is null group by 1
)
select s.campaign_id, s.seen_at,
    case when coalesce(reached_before, 0) = 0 then 1.0
        else least(1.0, greatest(opened - opened_before, reached - reached_before, 0)
            / greatest(unopened_before, 1))
    end as share,
    s.reached, coalesce(k.clickers, 0) as clickers
from steps s left join clickers k using (campaign_id)
where s.reached > 0 and share > 0 and s.seen_at > now() - to_days($days::integer)
    and s.seen_at < now() + interval 12 hour
order by s.seen_at, s.campaign_id
