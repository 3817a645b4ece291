{#
    A share from 0 to 1; NULL when there is nothing to divide by, never 0: "nobody was asked" is not "nobody answered". NULL, too, where
    the part exceeds the whole: the service's counts contradict each other then (more clickers than mails), and stand beside it.
#}
{% macro safe_rate(part, whole) -%}
    (case when ({{ whole }}) > 0 and ({{ part }}) between 0 and ({{ whole }}) then ({{ part }})::double / ({{ whole }}) end)
{%- endmacro %}
