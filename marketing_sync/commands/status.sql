-- The queries of `status`. `counted`: rows of each table.

-- tables
select table_name as "table", account, coalesce(any_value(counted.rows), 0) as rows, min(as_of) as oldest, max(as_of) as newest,
    count(*) as parts, count(*) filter (not is_complete) as incomplete,
    case when contains(any_value(scope), '..') then max(due_at) else min(due_at) end as due
from sync.coverage left join ({counted}) as counted using (account, table_name) group by all order by account, min(coverage.rowid);

-- accounts
select account, max(as_of) filter (is_complete) as read_at, count(*) filter (not is_complete) as incomplete
from sync.coverage group by account;

-- contacts
with contacts as (select distinct account, contact_id from source.contacts where _deleted_at is null)
select p.account, count(*) as contacts, count(c.timeline_asked_at) as timelines, count(c.coupon_asked_at) as coupons,
    min(c.timeline_asked_at) as oldest, count(*) filter (c.timeline_served < c.timeline_total) as cut
from contacts p left join sync.contact_coverage c using (account, contact_id) group by p.account order by p.account;

-- rejected
select account, table_name as "table", reason, count(*) as records
from sync.rejected_records group by all order by records desc, "table" limit 20;

-- schema_changes
select account, noticed_at, table_name as "table", field, change, before, after, sample
from sync.schema_changes order by noticed_at desc, rowid desc limit 20;

-- The last plan of each account, by kind of request.
-- plans
with runs as (select account, question, arg_max(run_id, planned_at) as run_id from sync.plans group by all),
lines as (from sync.plans join runs using (account, question, run_id))
select account, question, max(planned_at) as planned_at, sum(planned_count)::bigint as planned, sum(asked_count)::bigint as asked,
    sum(changed_count)::bigint as changed, string_agg(reason || ' ' || planned_count, ', ' order by planned_count desc) as why
from lines group by account, question order by account, question;

-- runs
select started_at, ended_at, job, if({died}, 'failed', outcome) as outcome, request_count, waited_s, message
from sync.runs order by started_at desc limit 5;
