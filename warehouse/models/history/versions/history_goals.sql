-- Every version of source.goals; one row per goal_id and valid_from.
{{ config(unique_key=['account', 'goal_id', 'valid_from']) }}
{{ versions('goals', ['goal_id'], [
    'domain_id', 'name', 'value_type', 'value', 'type', 'event_type', 'event_link_rule', 'links',
    'has_action', 'action_id', 'action_name', 'extra'
]) }}
