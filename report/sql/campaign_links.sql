-- the five most clicked links of each campaign
select campaign_id, coalesce(nullif(link_text, ''), url, 'Link ' || click_rank) as link, clicker_count, click_count
from marts.campaign_link_clicks where account = $account and is_current qualify row_number() over (partition by campaign_id order by click_rank) <= 5
order by campaign_id, click_rank
