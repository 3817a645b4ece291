{# A view is built as a table: what it takes is the model's to pay, and not the publishing's. #}
{% materialization view,
    adapter="duckdb" %}{{ return(materialization_table_duckdb()) }}{% endmaterialization %}
