-- The day on which each campaign was observed before; one row per campaign and observed_on.
-- A campaign that was created after the account's previous observed_on did not exist then, so its totals grew
-- from zero. What an older campaign did before it was first requested is unknown.
with asked as (
    select account, campaign_id, observed_on from {{ ref('stg_campaign_stats') }}
),

nights as (
    select account, observed_on,
        lag(observed_on) over (partition by account order by observed_on) as night_before
    from (select distinct account, observed_on from asked)
),

accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

-- deleted ones too: their results stay true
campaigns as (
    select account, campaign_id, {{ local_date('created_at', 'accounts.timezone') }} as created_on
    from {{ ref('stg_campaigns') }}
    left join accounts using (account)
)

select
    account,
    campaign_id,
    observed_on,
    coalesce(
        lag(observed_on) over (partition by account, campaign_id order by observed_on),
        case when campaigns.created_on >= nights.night_before then nights.night_before end
    ) as night_before
from asked
join nights using (account, observed_on)
left join campaigns using (account, campaign_id)
