-- Current rows of source.webhooks; one row per webhook_id.
select
    account,
    webhook_id,
    name,
    type,
    domain_id,
    url_filter,
    url_link,
    action_type,
    execute_for,
    device_filter,
    repeat_interval,
    delay_seconds,
    action_style,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'webhooks') }}
where _deleted_at is null
