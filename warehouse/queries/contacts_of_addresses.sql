-- The contacts that have the addresses of the responses, or had them when these were requested before; one row per contact and address.
select contact_id, min(email) as email
from source.contacts
where account = {account} and _deleted_at is null and lower(trim(email)) in (select address from arrow_responses)
group by contact_id
union
select contact_id, email
from sync.contact_coverage
where account = {account} and lower(trim(email)) in (select address from arrow_responses)
