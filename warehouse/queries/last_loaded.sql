-- What was loaded of these contacts last, where that is certain; one row per contact.
select contact_id, timeline_digest, timeline_served, timeline_total from sync.contact_coverage
where account = $account and timeline_digest is not null
    and contact_id in (select unnest($contacts::bigint[]))
