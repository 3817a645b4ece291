{# Each of the columns sums to 1 within `by`. #}
{% test credits_sum_to_one(model, columns, by) %}
select {{ by | join(", ") }}
from {{ model }}
group by all
having {% for column in columns %}abs(sum({{ column }}) - 1) > 1e-9{{ " or " if not loop.last }}{% endfor %}
{% endtest %}
