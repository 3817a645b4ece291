-- When each address was first registered, as far as any reading showed it; one row per account and address.
-- A person who is deleted and added again gets another contact or another date: the first plausible date
-- counts.
select account, email_normalized as email,
    min(registered_at) filter (where
        {{ is_plausible(local_date('registered_at', 'timezone'), 'today') }}) as registered_at
from (
    select account, email_normalized, registered_at from {{ ref('stg_contacts') }}
    union all
    select account, email_normalized, registered_at from {{ ref('history_contacts') }}
)
join {{ ref('int_accounts') }} using (account)
where email_normalized is not null
group by all
