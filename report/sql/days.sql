select day_on, member_count, active_member_count from marts.account_daily where account = $account order by day_on
