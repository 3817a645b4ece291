{# Rates lie between 0 and 1, or are NULL. #}
{% test shares(model, columns) %}
select * from {{ model }}
    where {% for column in columns %}{{ column }} not between 0 and 1{{ " or " if not loop.last }}{% endfor %}
{% endtest %}
