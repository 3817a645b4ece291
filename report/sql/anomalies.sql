-- of the last two weeks that are known
select day_on, figure, sentence from marts.anomalies
where account = $account and day_on > (select max(day_on) - 15 from marts.account_daily where account = $account)
order by day_on desc, abs(deviation) desc limit 5
