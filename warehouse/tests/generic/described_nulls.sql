{#
    NULL means "unknown" and needs a description: a count, change or rate is NULL only where its description
    says when. #}
{% test described_nulls(model) %}
select * from {{ model }} where false
{%- if execute %}
{%- for node in graph.nodes.values() if node.resource_type == "model"
    and (node.schema, node.alias) == (model.schema, model.identifier) %}
{%- for column in node.columns.values() if modules.re.search("_(count|change|rate)(_|$)", column.name)
    and "NULL" not in column.description %}
    or {{ column.name }} is null
{%- endfor %}
{%- endfor %}
{%- endif %}
{% endtest %}
