-- What a run planned for one kind of call, and the results; one row per reason.
with known as (
    select {column} as known_key, max({prefix}_asked_at) as asked_at, max({prefix}_changed_at) as changed_at
    from sync.contact_coverage where account = $account and {prefix}_asked_at >= $at group by 1
)
insert into sync.plans by name
select $run as run_id, $account as account, $at as planned_at, $call as question, reason,
    count(*) as planned_count,
    count(asked_at) as asked_count, count(*) filter (changed_at >= $at) as changed_count,
    coalesce(sum(chance) filter (asked_at is not null), 0) as expected_count
from arrow_planned left join known on known_key = {planned_key} group by reason
