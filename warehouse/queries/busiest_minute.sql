-- Requests a second in the busiest minute of the last days, over all accounts; one row.
with minutes as (
    select count(*) as request_count
    from sync.requests
    where requested_at > now() - interval 3 day
    group by time_bucket(interval 1 minute, requested_at)
)
select max(request_count) / 60 as rate
from minutes
