{#
    NULL is "not known" and has to be said: a count, change or rate is NULL only where its description says when. Descriptions are
    COMMENTs in the file, so that a column is tested from its first day on.
#}
{% test described_nulls(model) %}
{%- set silent %}
    select column_name from duckdb_columns()
    where database_name = current_database() and schema_name = '{{ model.schema }}' and table_name = '{{ model.identifier }}'
        and regexp_matches(column_name, '_(count|change|rate)(_|$)') and not contains(coalesce(comment, ''), 'NULL')
{%- endset %}
select * from {{ model }} where false
{%- if execute %}{% for row in run_query(silent).rows %} or {{ row[0] }} is null{% endfor %}{% endif %}
{% endtest %}
