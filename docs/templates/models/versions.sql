-- Every version of << table.qualified >>; one row per << table.key | join(", ") >> and valid_from.
{{ config(unique_key=[<< (["account"] + table.key | list + ["valid_from"]) | listed >>]) }}
{{ versions('<< table.name >>', [<< table.key | listed >>], [
    << table.values | map(attribute="name") | listed >>, 'extra'
]) }}
