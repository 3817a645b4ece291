{# A stock equals the previous row's stock plus the changes of its row, in the order of `along` within `by`. A
   change that is NULL adds nothing. The first known stock has no predecessor and is not checked. #}
{% test adds_up(model, stock, by, along, plus, minus=[]) %}
select *
from (
    select
        *,
        lag({{ stock }}) over (partition by {{ by | join(", ") }} order by {{ along }})
        {%- for column in plus %} + coalesce({{ column }}, 0){% endfor %}
        {%- for column in minus %} - coalesce({{ column }}, 0){% endfor %} as expected_stock
    from {{ model }}
    where {{ stock }} is not null
)
where {{ stock }} <> expected_stock
{% endtest %}
