-- The accounts whose newest response about short links was read completely; one row per account.
-- A response names the networks on which a link was clicked. So if everything was read, a link without networks
-- had no clicks.
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

rejected as (
    select distinct account from {{ source('sync', 'rejected_records') }}
        where table_name = 'social_link_clicks'
)

select account, {{ local_date('max(coverage.as_of)', 'any_value(accounts.timezone)') }} as read_on
from {{ source('sync', 'coverage') }} as coverage
join accounts using (account)
anti join rejected using (account)
where coverage.table_name = 'social_link_clicks'
group by all
having bool_and(coverage.is_complete)
