{# Every row fulfils the condition; NULL counts as not fulfilled. #}
{% test holds(model, condition) %}
select * from {{ model }} where not coalesce(({{ condition }}), false)
{% endtest %}
