-- without dates that have not come yet, which are wrong
from (
    select reviewed_at, 'Feedback page' as channel, rating, null as username, inquiry
    from source.direct_reviews where account = $account and _deleted_at is null
    union all
    select reviewed_at, channel, case when rating is not null then format('{:.1f} of 5', rating) end, username, inquiry
    from source.online_reviews where account = $account
)
where reviewed_at is null or timezone(getvariable('zone'), reviewed_at)::date <= getvariable('today')::date
order by reviewed_at desc limit 6
