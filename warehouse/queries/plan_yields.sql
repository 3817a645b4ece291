-- What fetching for each reason has brought so far; one row per kind of call and reason.
select question, reason, sum(asked_count)::bigint as asked, sum(changed_count)::bigint as changed,
    sum(expected_count) as expected
from sync.plans where account = $account
group by all
order by all
