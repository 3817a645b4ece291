{# A share from 0 to 1; NULL when there is nothing to divide by, never 0: "nobody was asked" is not "nobody answered". #}
{% macro safe_rate(part, whole) -%}
    (({{ part }})::double / nullif({{ whole }}, 0))
{%- endmacro %}
