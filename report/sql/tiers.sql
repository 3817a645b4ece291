select engagement_tier, count(*) as addresses, sum(count(*) filter (timeline_as_of is null)) over () as without_timeline
from marts.contact_engagement where account = $account group by engagement_tier order by addresses desc
