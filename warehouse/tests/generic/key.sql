{# The columns identify a row: together they are unique, and none is NULL. Returns the rows that break this. #}
{% test key(model, columns) %}
select {{ columns | join(", ") }}, count(*) as row_count
from {{ model }}
group by all
having count(*) > 1 {% for column in columns %}or {{ column }} is null {% endfor %}
{% endtest %}
