{# Schemas are named as configured, without the profile's schema in front; models of the user's have one of
   their own. #}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ 'custom' if node.package_name == 'own' else custom_schema_name or target.schema }}
{%- endmacro %}
