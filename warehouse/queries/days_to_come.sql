-- The rows of a daily table with dates after the load's, unless a newer response was loaded before; one row per
-- row.
select rowid from source.{table}
where account = getvariable('account')
    and observed_on > (getvariable('as_of') at time zone getvariable('zone'))::date
    and not exists (
        from sync.coverage where account = getvariable('account') and table_name = '{table}'
            and last_request > getvariable('last_request')
    )
