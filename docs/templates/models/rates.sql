<< "{#" >> Written by `make docs`; change warehouse/models/metrics.yml. Rate → numerator and denominator. #}
{% macro rate_parts() -%}
    {{ return({
<% for metric in metrics if metric.expression is not string %>
        '<< metric.name >>': ['<< metric.expression[0] >>', '<< metric.expression[1] >>'],
<% endfor %>
    }) }}
{%- endmacro %}
