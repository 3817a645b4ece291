-- Adds requests that are not stored yet. The ids of a file are close together, so few rows are compared; one
-- row per request.
insert into sync.requests by name
select *
from arrow_requests as new
where not exists (
    select 1 from sync.requests as old
    where old.request_id = new.request_id
        and old.request_id between (select min(request_id) from arrow_requests)
            and (select max(request_id) from arrow_requests)
)
