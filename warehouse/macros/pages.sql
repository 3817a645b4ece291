{# The page that a link leads to: without scheme, query, fragment, slashes at the end and capital letters, as
   links to one page differ in these. #}
{% macro page_of(link) -%}
    rtrim(split_part(split_part(regexp_replace(lower(trim({{ link }})), '^(https?:)?//(www\.)?', ''), '#', 1),
        '?', 1), '/')
{%- endmacro %}
