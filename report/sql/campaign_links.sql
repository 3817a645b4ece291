-- the five most clicked links of each campaign; a masked copy has no texts and addresses of links
select campaign_id, coalesce(nullif(link_text, ''), url, 'Link ' || place) as link, clicker_count, click_count
from (
    select *, row_number() over (partition by campaign_id order by click_rank, url) as place
    from marts.campaign_link_clicks where account = $account and is_current
)
where place <= 5 order by campaign_id, place
