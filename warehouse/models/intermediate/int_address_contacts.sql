-- The contacts of each address; one row per account, address and contact.
-- Deleted contacts count, too. A contact that was merged or added again has another id, but what the old id
-- received and did still belongs to the address. A contact that moved between the readings of two lists is in
-- both.
select account, email_normalized as email, contact_id, bool_or(is_deleted is not true) as is_present
from {{ ref('stg_contacts') }}
where email_normalized is not null
group by all
