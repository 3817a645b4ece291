select day_on, member_count, joined_count, left_count, good_count, bad_count from marts.account_daily where account = $account order by day_on
