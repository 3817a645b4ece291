-- Every version of source.webhooks; one row per webhook_id and valid_from.
{{ config(unique_key=['account', 'webhook_id', 'valid_from']) }}
{{ versions('webhooks', ['webhook_id'], [
    'name', 'type', 'domain_id', 'url_filter', 'url_link', 'action_type', 'execute_for',
    'device_filter', 'repeat_interval', 'delay_seconds', 'action_style', 'extra'
]) }}
