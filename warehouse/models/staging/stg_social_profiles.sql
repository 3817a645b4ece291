-- Current rows of source.social_profiles; one row per network, kind, profile_id.
select
    account,
    network,
    kind,
    profile_id,
    name,
    screen_name,
    full_name,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'social_profiles') }}
where _deleted_at is null
