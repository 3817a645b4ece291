-- Bad reviews on the own feedback page, who left them, and which responses are known since then; one row per
-- review.
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

reviews as (
    select
        account,
        review_id,
        email_normalized as email,
        nullif(trim(phone), '') as phone,
        reviewed_at,
        case when {{ is_plausible(local_date('reviewed_at', 'timezone'), 'today') }}
            then today - {{ local_date('reviewed_at', 'timezone') }} end as days_since_review,
        inquiry,
        nullif(trim(notes), '') as notes
    from {{ current('stg_direct_reviews') }}
    join accounts using (account)
    where lower(trim(rating)) = 'bad'
),

contacts as (
    select * from {{ ref('int_address_contacts') }}
),

engagement as (
    select account, email, status, engagement_tier from {{ ref('contact_engagement') }}
),

-- a pushed activity is a note that we left at the contact; mailings and tags are not responses
activities as (
    select account, email_normalized as email, contact_id, coalesce(done_at, sent_at) as responded_at
    from {{ source('sync', 'writebacks') }}
    where effect = 'notes' and state in ('applied', 'verified')
),

responses as (
    select account, review_id, min(responded_at) as responded_at
    from (
        select reviews.account, review_id, responded_at
        from reviews
        join activities on activities.account = reviews.account and activities.email = reviews.email
            and responded_at >= reviewed_at
        union all
        select reviews.account, review_id, responded_at
        from reviews
        join contacts using (account, email)
        join activities on activities.account = contacts.account
            and activities.contact_id = contacts.contact_id and responded_at >= reviewed_at
    )
    group by all
),

messages as (
    select reviews.account, review_id, count(*) as message_count, min(sent_at) as first_message_at
    from reviews
    join contacts using (account, email)
    join {{ ref('contact_campaign') }} as sent
        on sent.account = contacts.account and sent.contact_id = contacts.contact_id
            and sent.sent_at >= reviewed_at
    group by all
)

select
    account,
    review_id,
    reviewed_at,
    days_since_review,
    email,
    phone,
    inquiry,
    notes,
    engagement.email is not null as is_contact,
    status,
    engagement_tier,
    coalesce(message_count, 0) as message_count,
    first_message_at,
    responded_at as activity_pushed_at,
    notes is null and responded_at is null as is_waiting
from reviews
left join engagement using (account, email)
left join responses using (account, review_id)
left join messages using (account, review_id)
