{# Every combination of the columns without NULL exists in another model, under the same names unless `theirs`
   gives others. #}
{% test within(model, columns, to, theirs=none) %}
{%- set theirs = theirs or columns %}
select distinct {{ columns | join(", ") }}
from {{ model }} as ours
where {% for column in columns %}{{ column }} is not null and {% endfor %}
    not exists (
        select 1 from {{ to }} as other
        where {% for column in columns %}other.{{ theirs[loop.index0] }}
            = ours.{{ column }}{{ " and " if not loop.last }}{% endfor %}
    )
{% endtest %}
