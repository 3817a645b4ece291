-- How old each table's data is at the moment of the query, and whether it should have been read since; one row
-- per account and subject.
-- A view, also in the published file: when the pipeline stops, no models are built, but the data keeps aging. A
-- time in the future came from a clock that was ahead: then the age is unknown, and the table should be read.
{{ config(materialized='view') }}
select
    account,
    subject,
    part,
    as_of,
    case when as_of <= now() + interval 5 minute then (epoch(now()) - epoch(as_of)) / 3600 end as age_hours,
    case when median_as_of <= now() + interval 5 minute
        then (epoch(now()) - epoch(median_as_of)) / 3600 end as median_age_hours,
    case when oldest_as_of <= now() + interval 5 minute
        then (epoch(now()) - epoch(oldest_as_of)) / 3600 end as oldest_age_hours,
    due_at,
    coalesce(due_at + to_hours({{ var('grace_hours') }}) < now(), false)
        or coalesce(as_of > now() + interval 5 minute, false) as is_overdue,
    part_count,
    read_part_count,
    coverage_rate,
    rejected_count,
    odd_date_count,
    reason
from {{ ref('data_coverage') }}
