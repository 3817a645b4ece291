{# Every row meets the condition; NULL counts as not met. #}
{% test holds(model, condition) %}
select * from {{ model }} where not coalesce(({{ condition }}), false)
{% endtest %}
