-- The errorCodes of refusals that mean "nothing there"; one row per code.
with refused as (
    select {refusal_code} as code, normal_form(params ->> 'email') as address
    from sync.requests where account = $account and operation = $operation and outcome = 'refused'
),
codes as (select code, count(distinct address) as addresses from refused where code is not null
    group by code),
contradicted as (
    select code, count(distinct address) as addresses from refused
    where address in (select email_normalized from source.coupons
        where account = $account and _deleted_at is null) group by code
)
select code from codes c left join contradicted k using (code)
where c.addresses >= $fewest and coalesce(k.addresses, 0) <= $contradicting * c.addresses
    and c.addresses >= $share * (select count(distinct address) from refused)
    and exists (from sync.requests where account = $account and operation = $operation and outcome = 'ok')
