-- The requests that are not planned contact by contact, as in the account's last run that read contacts.
with last as (
    select started_at, coalesce(ended_at, now()) as ended_at from sync.runs
    where exists (from sync.plans p where p.run_id = runs.run_id) order by started_at desc limit 1
)
select count(*) from sync.requests, last
where account = $account and list_contains($operations, operation) and requested_at between last.started_at and last.ended_at
