{# The columns identify a row: together unique, none of them NULL. Rows that break it are returned. #}
{% test key(model, columns) %}
select {{ columns | join(", ") }}, count(*) as row_count
from {{ model }}
group by all
having count(*) > 1 {% for column in columns %}or {{ column }} is null {% endfor %}
{% endtest %}
