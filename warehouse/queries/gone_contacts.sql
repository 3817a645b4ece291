-- The contacts that were no longer in any list at a moment; one row per contact.
create or replace temp table gone as
select account, contact_id from source.contacts
group by all having bool_and(coalesce(_deleted_at < ?, false));
