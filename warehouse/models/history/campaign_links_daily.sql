-- What each link of each campaign gained since the night before; one row per campaign, link and observed_on.
{{
    daily_changes(
        ref('stg_campaign_links'), ['campaign_id', 'url'], ['clicker_count', 'click_count'],
        nights=ref('int_campaign_nights'), asked=['campaign_id']
    )
}}
