-- Rows of source.goals, deleted ones too; one row per goal_id.
select
    account,
    goal_id,
    domain_id,
    name,
    value_type,
    value,
    type,
    event_type,
    event_link_rule,
    links,
    has_action,
    action_id,
    action_name,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'goals') }}
