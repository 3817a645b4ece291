-- Every day since the service began, for MetricFlow; one row per day.
{{ config(materialized='view') }}
select unnest(generate_series(date '2010-01-01', date '2049-12-31', interval 1 day))::date as day_on
