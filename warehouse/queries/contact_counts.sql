-- How many contacts exist; one row per account.
select account, count(distinct contact_id) as contact_count
from source.contacts
where _deleted_at is null
group by account
