-- How old each table's data is at the moment of the query, and whether it should have been read since; one
-- row per account and subject.
-- A view, also in the published file: a pipeline that stands still builds no models, and its data ages all
-- the same.
{{ config(materialized='view') }}
select
    account,
    subject,
    part,
    as_of,
    (epoch(now()) - epoch(as_of)) / 3600 as age_hours,
    (epoch(now()) - epoch(median_as_of)) / 3600 as median_age_hours,
    (epoch(now()) - epoch(oldest_as_of)) / 3600 as oldest_age_hours,
    due_at,
    coalesce(due_at + to_hours({{ var('grace_hours') }}) < now(), false) as is_overdue,
    part_count,
    read_part_count,
    coverage_rate,
    rejected_count,
    reason
from {{ ref('data_coverage') }}
