-- The contacts that have the addresses of the responses, or had them when these were requested before; one row
-- per contact and address.
select contact_id, email_normalized, min(email) as email
from (
    select contact_id, email_normalized, email from source.contacts
        where account = getvariable('account') and _deleted_at is null
    union all
    select contact_id, email_normalized, email from sync.contact_coverage
        where account = getvariable('account')
)
where email_normalized in (select address from arrow_responses)
group by all
