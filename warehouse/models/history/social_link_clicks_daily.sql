-- What each short link gained per network since the night before; one row per link, network and observed_on.
{{ daily_changes(ref('stg_social_link_clicks'), ['link_id', 'network'], ['click_count']) }}
