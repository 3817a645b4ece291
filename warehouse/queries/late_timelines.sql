-- A response that is loaded late, behind newer ones, counts for nothing in the coverage, but its rows are the
-- last that were loaded.
update sync.contact_coverage as c set timeline_digest = null
from arrow_responses a
where c.account = getvariable('account') and c.contact_id = a.contact_id
    and c.timeline_request >= a.request_id
    and c.timeline_digest is distinct from a.timeline_digest
