-- How many of each segment of contacts clicked in each campaign; one row per campaign and segment.
with contacts as (
    select min(email_normalized) as email, coalesce(bool_or(status = 'active'), false) as is_active,
        bit_xor(hash(list_id)) as lists
    from source.contacts where account = $account and _deleted_at is null group by contact_id
),
segments as (select distinct email, hash(lists, is_active) as segment from contacts),
clickers as (
    select distinct campaign_id, email_normalized as email from source.campaign_clickers
        where account = $account and _deleted_at is null
)
select campaign_id, segment, count(*) as clickers from clickers join segments using (email) group by all
    order by all
