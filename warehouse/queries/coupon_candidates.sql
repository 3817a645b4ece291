-- What is known about the coupons of each e-mail address of existing contacts, in the order of
-- timeline_candidates; one row per normal form of an address.
-- email: one of its spellings in the service, which is the one to request, since it is unknown how the service
-- compares addresses. clicked_at: any event that was noticed here.
with contacts as (
    select email_normalized, min(email) as email, max(contact_id) as number,
        coalesce(bool_or(status = 'active'), false) as is_active,
        max(registered_at) as registered_at, min(_first_seen_at) as first_seen_at
    from source.contacts
    where account = $account and _deleted_at is null and email_normalized is not null
    group by 1
),
requested as (
    select email_normalized, arg_max_null(coupon_asked_at, coalesce(coupon_request, 0)) as asked_at,
        max(coupon_request) as request_id, min(coupon_first_asked_at) as first_asked_at,
        max(coupon_times_changed) as times_changed
    from sync.contact_coverage
    where account = $account and coupon_asked_at is not null
    group by 1
),
refused as (
    select normal_form(params ->> 'email') as email_normalized, arg_max(requested_at, request_id) as asked_at,
        max(request_id) as request_id, min(requested_at) as first_asked_at,
        0 as times_changed
    from sync.requests
    where account = $account and operation = 'emailmarketing/getcoupon' and outcome = 'refused'
        and list_contains($nothing::bigint[], {refusal_code})
    group by 1
),
latest as (
    select email_normalized, arg_max_null(asked_at, coalesce(request_id, 0)) as asked_at,
        max(request_id) as request_id, min(first_asked_at) as first_asked_at,
        sum(times_changed)::bigint as times_changed
    from (from requested union all by name from refused)
    group by 1
),
clicked as (
    select email_normalized, max(_changed_at) as clicked_at
    from source.campaign_clickers
    where account = $account and _deleted_at is null
    group by 1
)
select p.email, p.registered_at, p.first_seen_at,
    a.asked_at, a.request_id, a.first_asked_at, a.times_changed, k.clicked_at
from contacts p
left join latest a using (email_normalized)
left join clicked k using (email_normalized)
order by p.is_active desc, p.registered_at desc nulls last, p.number desc
