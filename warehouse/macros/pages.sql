{# The page that a link leads to. Links to one page differ in scheme, query, fragment, final slashes and
   capital letters, so these are removed. #}
{% macro page_of(link) -%}
    rtrim(split_part(split_part(regexp_replace(lower(trim({{ link }})), '^(https?:)?//(www\.)?', ''), '#', 1),
        '?', 1), '/')
{%- endmacro %}
