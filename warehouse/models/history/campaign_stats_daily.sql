-- What each campaign gained since the night before; one row per campaign and observed_on.
{{
    daily_changes(
        ref('stg_campaign_stats'), ['campaign_id'],
        ['opened_count', 'unopened_count', 'bounced_count', 'unsubscribed_count'],
        nights=ref('int_campaign_nights'), asked=['campaign_id']
    )
}}
