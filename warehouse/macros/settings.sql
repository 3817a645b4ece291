{# A variable as an SQL literal: text unchanged, a mapping as JSON. #}
{% macro text_of(value) -%}
    '{{ (value if value is string else tojson(value)) | replace("'", "''") }}'
{%- endmacro %}
