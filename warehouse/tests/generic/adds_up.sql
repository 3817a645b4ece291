{# A stock is the one of the row before plus the changes of its row, in the order of `along` within `by`; a
   change that is NULL adds nothing. #}
{% test adds_up(model, stock, by, along, plus, minus=[]) %}
select *
from (
    select
        *,
        coalesce(lag({{ stock }}) over (partition by {{ by | join(", ") }} order by {{ along }}), 0)
        {%- for column in plus %} + coalesce({{ column }}, 0){% endfor %}
        {%- for column in minus %} - coalesce({{ column }}, 0){% endfor %} as expected_stock
    from {{ model }}
    where {{ stock }} is not null
)
where {{ stock }} is distinct from expected_stock
{% endtest %}
