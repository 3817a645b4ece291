{# The rows of a staging view that the service still returns; `ref` has deleted ones, too. #}
{% macro current(view) -%}
    (select * exclude (is_deleted, deleted_at) from {{ ref(view) }} where is_deleted is not true)
{%- endmacro %}
