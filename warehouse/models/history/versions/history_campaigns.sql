-- Every version of source.campaigns; one row per campaign_id and valid_from.
{{ config(unique_key=['account', 'campaign_id', 'valid_from']) }}
{{ versions('campaigns', ['campaign_id'], [
    'status', 'type', 'subject', 'message', 'reply_to', 'from_email', 'from_name', 'created_at',
    'name', 'sent_at', 'delivered_count', 'failed_count', 'extra'
]) }}
