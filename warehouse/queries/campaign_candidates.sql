-- When each existing campaign was last requested, and when it last changed, newest first; one row per campaign.
-- row_at: when its entry in the listing last changed. asked_at: when its statistics were last requested, NULL
-- for never. moved_on: the last day on which its totals differed from the ones before, or first appeared.
with moves as (
    select campaign_id, observed_on, opened_count, bounced_count, unsubscribed_count,
        coalesce(opened_count, 0) + coalesce(unopened_count, 0) + coalesce(bounced_count, 0) as reached,
        lag((reached, opened_count, bounced_count, unsubscribed_count)) over own as before
    from source.campaign_stats where account = $account
    window own as (partition by campaign_id order by observed_on)
),
moved as (
    select campaign_id, max(observed_on) as moved_on from moves
    where before is distinct from (reached, opened_count, bounced_count, unsubscribed_count)
    group by 1
),
latest as (
    select campaign_id, max(_changed_at) as asked_at from source.campaign_stats where account = $account
        group by 1
)
select c.campaign_id, c.type, c.created_at, c._changed_at as row_at, a.asked_at, m.moved_on
from source.campaigns c left join latest a using (campaign_id) left join moved m using (campaign_id)
where c.account = $account and c._deleted_at is null
order by c.campaign_id desc
