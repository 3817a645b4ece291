-- Views for the statements. They are temporary, so a change of them does not change the file.

create temp view entry as
select
    item_id, push_id, account, kind, source_name as source, rows, email, contact_id, operation,
    coalesce(params, '{}') as params, coalesce(expected, '{}') as expected, must_look_up,
    state, message, rejected_by, attempts, planned_at, sent_at, changed_at, done_at, verified_at, drift,
    request_id, run, revision
from item join push using (push_id);

-- Items with a subject that a later item has changed or is going to change: sending them again would undo that.
create temp view superseded as
select mine.item_id
from effect as mine
join effect as other using (account, kind, subject)
join item as newer on newer.item_id = other.item_id
where other.item_id > mine.item_id and newer.state not in ('skipped', 'rejected');

-- Items that were rejected, have a mismatch, or have an unknown outcome. A request to a known contact may have
-- arrived even if the service refused it.
create temp view retriable as
select
    item_id, push_id, account, kind, sent_at is not null and contact_id is not null as may_have_arrived,
    exists (select 1 from superseded where superseded.item_id = item.item_id) as is_superseded
from item join push using (push_id)
where operation is not null and (state in ('rejected', 'unknown') or (state = 'applied' and drift <> '{}'));
