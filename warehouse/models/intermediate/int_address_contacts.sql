-- Which contacts are an address's; one row per account, address and contact.
-- Who is gone counts, too: one that was merged or added again has another id, and what it was sent before and
-- did then is the address's all the same. Who was moved between the readings of two lists stands in both.
select account, email_normalized as email, contact_id, bool_or(is_deleted is not true) as is_present
from {{ ref('stg_contacts') }}
where email_normalized is not null
group by all
