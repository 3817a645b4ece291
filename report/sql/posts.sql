select network, published_at, message, click_count from marts.social_post_performance
where account = $account and is_published order by click_count desc nulls last, published_at desc limit 5
