-- The coverage of the contacts that were requested: the stored values, updated by the responses; one row per
-- contact.
-- `name`: timeline or coupon, the columns to update. Coupons belong to an address: if the contact has another
-- address now, its coupons were not requested yet.
create or replace temp table noted as
with responses as ({responses}),
changed as ({changed}),
live as (
    select contact_id, min(email) as email from source.contacts
    where account = getvariable('account') and _deleted_at is null
        and contact_id in (select contact_id from responses)
        group by contact_id
),
before as (
    select c.* replace (if(is_same, coupon_asked_at, null) as coupon_asked_at,
        if(is_same, coupon_first_asked_at, null) as coupon_first_asked_at)
    from (
        select c.*, coalesce(c.email_normalized = normal_form(p.email), true) as is_same
        from sync.contact_coverage c left join live p using (contact_id)
        where account = getvariable('account') and contact_id in (select contact_id from responses)
    ) c
),
fresh as (
    select contact_id, arg_min(a.requested_at, a.request_id) as first,
        arg_max(a.requested_at, a.request_id) as at,
        max(a.request_id) as request, {newest_columns} count(*) as times, max(a.email) as email,
        contact_id in (select contact_id from changed) as is_changed
    from responses a left join before b using (contact_id)
    where b.{name}_request is null or a.request_id > b.{name}_request
    group by contact_id
)
select getvariable('account') as account, contact_id, coalesce(p.email, f.email, b.email) as email,
    nullif(normal_form(coalesce(p.email, f.email, b.email)), '') as email_normalized,
    b.* exclude (account, contact_id, email, email_normalized, is_same, {own_columns}),
    coalesce(b.{name}_first_asked_at, b.{name}_asked_at, f.first) as {name}_first_asked_at,
    f.at as {name}_asked_at,
    f.request as {name}_request,
    case when is_changed then f.at else b.{name}_changed_at end as {name}_changed_at,
    coalesce(b.{name}_times_asked, 0) + f.times as {name}_times_asked,
    coalesce(b.{name}_times_changed, 0) + is_changed::bigint as {name}_times_changed,
    {received_columns}
from fresh f left join before b using (contact_id) left join live p using (contact_id);

delete from sync.contact_coverage
    where account = getvariable('account') and contact_id in (select contact_id from noted);
insert into sync.contact_coverage by name from noted order by contact_id;
drop table noted;
