-- The short links in the text of each post; one row per account, post, network and link.

with posts as (
    select * from {{ current('stg_social_posts') }}
),

links as (
    select * from {{ current('stg_social_links') }}
),

-- without the punctuation that ends a sentence
written as (
    select distinct account, post_id, network, scheduled_at,
        unnest(regexp_extract_all(message, 'https?://[^\s<>"]*[^\s<>".,;:!?)\]'']')) as url
    from posts
)

select written.account, written.post_id, written.network, links.link_id, written.scheduled_at
from written
join links on links.account = written.account and links.short_url = written.url
